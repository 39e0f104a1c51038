"""`lexiscope serve`: the explorer at an address of this machine, over all indexes of the data folder."""

import argparse
import gc
import logging
import socket
from typing import TYPE_CHECKING

from app.commands import options
from precompute.errors import ServeError

if TYPE_CHECKING:
    from app.commands.options import Subparsers
    from app.settings import Settings

GRACE_SECONDS = 3


def add_parser(subparsers: "Subparsers") -> None:
    parser = subparsers.add_parser(
        "serve",
        help="browse everything that is built",
        description="Serve the explorer: a website over all indexes of the data folder, also while they are built.",
    )
    options.add_data(parser)
    add_address(parser)
    parser.add_argument("--child", action="store_true", help=argparse.SUPPRESS)  # ends when its standard input does
    parser.add_argument("--or-any-port", action="store_true", help=argparse.SUPPRESS)
    parser.set_defaults(run=run)


def add_address(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--host", help="the address to listen at (default: LEXISCOPE_HOST, else 127.0.0.1)")
    parser.add_argument("--port", type=int, metavar="N", help="the port; 0: any (default: LEXISCOPE_PORT, else 8000)")


def run(args: argparse.Namespace) -> int:
    from app.commands.http_server import browser_address, listen
    from app.settings import load
    from app.workers.connections import parse_worker_urls

    settings = load(data=args.data, host=args.host, port=args.port)
    logging.basicConfig(level=settings.log_level.upper(), format="%(levelname)s: %(message)s")
    parse_worker_urls(settings.worker_url)  # what is wrong with it is said before anything is there
    try:
        listener = listen(settings.host, settings.port)
    except ServeError:
        if not args.or_any_port:
            raise
        listener = listen(settings.host, 0)
    with listener:
        print(f"Lexiscope is at {browser_address(listener)} (Ctrl-C ends it)", flush=True)
        _serve(settings, listener, args.child)
    return 0


def _serve(settings: "Settings", listener: socket.socket, child: bool) -> None:
    gc.disable()  # the app stays: to look through it again and again while it is made only takes time
    try:
        from app.commands.http_server import make_server
        from app.server import create_app

        server = make_server(create_app(settings), settings, grace_seconds=GRACE_SECONDS)
        gc.freeze()
    finally:
        gc.enable()
    if child:
        from app.workers.child_process import when_parent_ends

        when_parent_ends(lambda: setattr(server, "should_exit", True))
    server.run(sockets=[listener])
