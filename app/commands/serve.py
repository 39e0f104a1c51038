"""`lexiscope serve`: the explorer at an address of this machine, over all indexes of the data folder.
What it answers is for server.py."""

import argparse
import gc
import logging
import os
import socket
import sys
import threading
from typing import TYPE_CHECKING

from app.commands import options
from precompute.errors import ServeError

if TYPE_CHECKING:
    import uvicorn
    from starlette.types import ASGIApp

    from app.commands.options import Subparsers
    from app.settings import Settings

GRACE = 3  # seconds that answers under way have when the server is to stop


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
    from app.settings import load

    settings = load(data=args.data, host=args.host, port=args.port)
    logging.basicConfig(level=settings.log_level.upper(), format="%(levelname)s: %(message)s")
    try:
        listener = listen(settings.host, settings.port)
    except ServeError:
        if not args.or_any_port:
            raise
        listener = listen(settings.host, 0)
    try:
        print(f"Lexiscope is at {address(listener)} (Ctrl-C ends it)", flush=True)
        serve(settings, listener, args.child)
    finally:
        listener.close()
    return 0


def serve(settings: "Settings", listener: socket.socket, child: bool = False) -> None:
    gc.disable()  # what is made until the app is there stays: to look through it again and again only takes time
    try:
        from app.server import create_app

        app = create_app(settings)
        gc.freeze()
        gc.set_threshold(20_000, 50, 50)  # what a request leaves is freed by itself, so collecting may be rare
    finally:
        gc.enable()
    run_app(app, settings, listener, child)


def run_app(app: "ASGIApp", settings: "Settings", listener: socket.socket, child: bool = False) -> None:
    import uvicorn

    from app.connection import connection_class

    config = uvicorn.Config(
        app,
        http=connection_class(settings),
        log_level=settings.log_level,
        access_log=settings.access_log,
        ws="none",
        lifespan="on",
        server_header=False,
        timeout_graceful_shutdown=GRACE,
    )
    server = uvicorn.Server(config)
    if child:
        threading.Thread(target=_stop_at_eof, args=(server,), daemon=True).start()
    server.run(sockets=[listener])


def listen(host: str, port: int) -> socket.socket:
    """A socket that takes connections from now on; ServeError says why there can be none."""
    try:
        family, kind, protocol, _, place = socket.getaddrinfo(
            host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
        listener = socket.socket(family, kind, protocol)
        try:
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            listener.bind(place)
            listener.listen(2048)
        except OSError:
            listener.close()
            raise
    except OSError as error:
        raise ServeError(
            f"cannot listen at {host} port {port}: {error.strerror}. Give another port (--port 8001, or --port 0 for "
            "any that is free), or end the program that has this one"
        ) from None
    return listener


def address(listener: socket.socket) -> str:
    """What to open in a browser on this machine."""
    host, port = listener.getsockname()[:2]
    host = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(host, host)
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


def _stop_at_eof(server: "uvicorn.Server") -> None:
    while os.read(sys.stdin.fileno(), 1024):
        pass
    server.should_exit = True
