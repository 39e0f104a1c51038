"""`lexiscope worker`: one model in memory, to compute what visitors of live pages type, for one or more servers.
The server starts it by itself; by hand it runs elsewhere, such as on a machine with a GPU."""

import argparse
import contextlib
import logging
import os
import socket
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING

from app.commands import options

if TYPE_CHECKING:
    from app.commands.options import Subparsers
    from precompute.weights.checkpoint import Checkpoint

KEEP_ALIVE = 120  # seconds; longer than the server keeps idle connections (live/connections.py)
GRACE = 1  # seconds that answers under way have when the worker is to stop


def add_parser(subparsers: "Subparsers") -> None:
    parser = subparsers.add_parser(
        "worker",
        help="compute what visitors of live pages type (the server starts one by itself)",
        description="Keep a model in memory and compute what visitors of live pages type. The server starts a worker "
        "by itself; run one by hand on another machine, and name it to the server in LEXISCOPE_WORKER_URL. "
        "Whoever can reach its address can use it: let that be the server only.",
    )
    parser.add_argument(
        "--model", required=True, help="a model that is built, or a Hub id, a folder, a .gguf file, demo"
    )
    options.add_data(parser)
    parser.add_argument("--device", help="auto, cpu, cuda, cuda:1, ... (default: LEXISCOPE_DEVICE, else auto)")
    parser.add_argument("--threads", type=options.positive, metavar="N", help="on the CPU (default: one per core)")
    parser.add_argument("--socket", type=Path, metavar="PATH", help="listen at a Unix socket instead of a port")
    parser.add_argument("--host", default="127.0.0.1", help="the address to listen at (default: 127.0.0.1)")
    parser.add_argument("--port", type=int, default=8100, metavar="N", help="the port; 0: any (default: 8100)")
    parser.add_argument("--child", action="store_true", help=argparse.SUPPRESS)  # ends when its standard input does
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    from app.settings import load
    from app.workers.keeper import READY

    settings = load(data=args.data, device=args.device)
    logging.basicConfig(level=settings.log_level.upper(), format="%(levelname)s: %(message)s")
    loaded = threading.Event()
    if args.child:
        threading.Thread(target=_end_with_parent, args=(args.socket,), daemon=True).start()
        threading.Thread(target=_say_alive, args=(loaded,), daemon=True).start()
    import uvicorn

    from app.commands.weights import find
    from app.worker.limits import Limits
    from app.worker.service import create_worker
    from precompute.live.engine import Engine

    checkpoint = find(args.model, args.data)
    with ThreadPoolExecutor(1) as beside:
        hashing = beside.submit(_checked_hash, checkpoint, args.data)
        engine = Engine.load(checkpoint, settings.device, args.threads)
        weights = hashing.result()
    listener, address = _listen(args)
    config = uvicorn.Config(
        create_worker(engine, checkpoint.name, weights, Limits.of(settings)),
        log_level=settings.log_level,
        access_log=settings.access_log,
        ws="none",
        lifespan="on",
        server_header=False,
        timeout_keep_alive=KEEP_ALIVE,
        timeout_graceful_shutdown=GRACE,
    )
    loaded.set()
    print(READY if args.child else f"The worker of {checkpoint.name} is at {address} (Ctrl-C ends it)", flush=True)
    try:
        uvicorn.Server(config).run(sockets=[listener])
    finally:
        listener.close()
        if args.socket:
            args.socket.unlink(missing_ok=True)
    return 0


def _checked_hash(checkpoint: "Checkpoint", data: Path) -> str:
    """Of the weights: those that the index of this name was made from, if there is one."""
    from precompute.errors import BadWeights, IndexFault
    from precompute.index.manifest import Manifest

    weights = checkpoint.weights_hash()
    with contextlib.suppress(IndexFault):
        if (manifest := Manifest.load(data / checkpoint.name)).weights_sha256 != weights:
            raise BadWeights(
                f"{checkpoint.source} holds other weights than the index {data / checkpoint.name} was made from: put "
                f"those back, or rebuild the index: `lexiscope precompute {manifest.model} --force`"
            )
    return weights


def _listen(args: argparse.Namespace) -> tuple[socket.socket, str]:
    """The socket, and its address for people."""
    from app.commands.http_server import browser_address, listen, listen_at_path

    if args.socket:
        return listen_at_path(args.socket), f"unix:{args.socket.absolute()}"
    listener = listen(args.host, args.port)
    return listener, browser_address(listener)


def _end_with_parent(path: Path | None) -> None:
    while os.read(sys.stdin.fileno(), 1024):
        pass
    if path:  # what the parent, if it was killed, cannot remove
        with contextlib.suppress(OSError):
            path.unlink(missing_ok=True)
            path.parent.rmdir()
    os._exit(0)


def _say_alive(loaded: threading.Event) -> None:
    from app.workers.keeper import ALIVE

    while not loaded.wait(1):
        print(ALIVE, flush=True)
