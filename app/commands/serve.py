"""`lexiscope serve`: serve the web site over all indexes of the data folder, at an address of this machine."""

import argparse
import gc
import logging
import socket
from typing import TYPE_CHECKING

from lexiscope.app.commands.command import CHILD, LISTEN, command, flag
from lexiscope.precompute.errors import ServeError

if TYPE_CHECKING:
    from lexiscope.app.settings import Settings

SITE_GRACE_SECONDS = 3


@command(
    "serve",
    "browse everything that is built",
    "Serve the explorer: a website over all indexes of the data folder, also while they are built.",
    *LISTEN,
    CHILD,
    flag("--or-any-port", argparse.SUPPRESS),
)
def run(args: argparse.Namespace) -> None:
    from lexiscope.app.asgi.http_server import browser_address, listen
    from lexiscope.app.live.connections import parse_worker_urls
    from lexiscope.app.settings import load

    settings = load(data=args.data, host=args.host, port=args.port)
    logging.basicConfig(level=settings.log_level.upper(), format="%(levelname)s: %(message)s")
    parse_worker_urls(settings.worker_url)  # raises an error if the setting is wrong, before the server starts
    try:
        listener = listen(settings.host, settings.port)
    except ServeError:
        if not args.or_any_port:
            raise
        listener = listen(settings.host, 0)
    with listener:
        print(f"Lexiscope is at {browser_address(listener)} (Ctrl-C ends it)", flush=True)
        _serve(settings, listener, args.child)


def _serve(settings: "Settings", listener: socket.socket, child: bool) -> None:
    gc.disable()  # collecting garbage while the app is made would only cost time
    try:
        from lexiscope.app.asgi.http_server import make_server
        from lexiscope.app.site.server import create_app

        server = make_server(create_app(settings), settings, grace_seconds=SITE_GRACE_SECONDS)
        gc.freeze()
    finally:
        gc.enable()
    if child:
        from lexiscope.app.live.process import when_parent_ends

        when_parent_ends(lambda: setattr(server, "should_exit", True))
    server.run(sockets=[listener])
