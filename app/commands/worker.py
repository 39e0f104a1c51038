"""`lexiscope worker`: a model in memory, which computes what visitors of live pages type.
The server starts workers by itself; by hand one runs elsewhere, such as on a machine with a GPU."""

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

KEEP_ALIVE_SECONDS = 120  # longer than the server keeps idle connections (workers/connections.py)
GRACE_SECONDS = 1


def add_parser(subparsers: "Subparsers") -> None:
    parser = subparsers.add_parser(
        "worker",
        help="compute what visitors of live pages type (the server starts one by itself)",
        description="Keep a model in memory and compute what visitors of live pages type. The server starts a worker "
        "by itself; run one by hand on another machine, and name it to the server in LEXISCOPE_WORKER_URL. "
        "Whoever can reach its address can use it: let that be the server only.",
    )
    parser.add_argument(
        "--model", required=True, help="a model that is built, or a Hub id, a folder, a .gguf file, demo, minilm"
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
    from app.workers.process import READY

    settings = load(data=args.data, device=args.device)
    logging.basicConfig(level=settings.log_level.upper(), format="%(levelname)s: %(message)s")
    loaded = threading.Event()
    if args.child:
        from app.workers.child_process import when_parent_ends

        when_parent_ends(lambda: _exit(args.socket))
        threading.Thread(target=_say_loading, args=(loaded,), daemon=True).start()

    from app.commands.http_server import make_server
    from app.commands.weights import find_weights
    from app.worker.service import create_worker
    from precompute.live.engine import Engine
    from precompute.weights.difference import Difference

    found = find_weights(args.model, args.data)
    # of a difference the tuned model's, under the name of the difference
    checkpoint, base = (found.checkpoint, found.base.checkpoint) if isinstance(found, Difference) else (found, None)
    with ThreadPoolExecutor(1) as beside:
        hashing = beside.submit(_checked_weights, checkpoint, base, args.data)
        engine = Engine.load(found, settings.device, args.threads)
        weights = hashing.result()
    listener, address = _listen(args)
    exit_code = 0

    def stop() -> None:
        nonlocal exit_code
        exit_code = 1
        server.should_exit = True

    app = create_worker(engine, checkpoint.name, weights, settings, stop)
    server = make_server(app, settings, grace_seconds=GRACE_SECONDS, keep_alive_seconds=KEEP_ALIVE_SECONDS)
    loaded.set()
    say_line(READY if args.child else f"The worker of {checkpoint.name} is at {address} (Ctrl-C ends it)")
    try:
        server.run(sockets=[listener])
    finally:
        listener.close()
        if args.socket:
            args.socket.unlink(missing_ok=True)
    return exit_code


def _checked_weights(checkpoint: "Checkpoint", base: "Checkpoint | None", data: Path) -> str:
    """What the weights are called, which must be those that the index of this name was made from, if there is one."""
    from app.workers.protocol import weights_name
    from precompute.errors import BadWeights, IndexFault
    from precompute.index.manifest import Manifest

    weights = weights_name(checkpoint.weights_hash(), base.weights_hash() if base else None)
    with contextlib.suppress(IndexFault):
        manifest = Manifest.load(data / checkpoint.name)
        if weights != weights_name(manifest.weights_sha256, manifest.minus.weights_sha256 if manifest.minus else None):
            sources = f"{checkpoint.source} or {base.source}" if base else checkpoint.source
            raise BadWeights(
                f"{sources} holds other weights than the index {data / checkpoint.name} was made from: put those back, "
                f"or rebuild the index: `lexiscope precompute {manifest.model} --force`"
            )
    return weights


def _listen(args: argparse.Namespace) -> tuple[socket.socket, str]:
    """The socket, and its address for people."""
    from app.commands.http_server import browser_address, listen, listen_at_path

    if args.socket:
        return listen_at_path(args.socket), f"unix:{args.socket.absolute()}"
    listener = listen(args.host, args.port)
    return listener, browser_address(listener)


def _exit(socket_path: Path | None) -> None:
    """Ends the process at once and removes the socket and its folder: a parent that was killed could not."""
    if socket_path:
        with contextlib.suppress(OSError):
            socket_path.unlink(missing_ok=True)
            socket_path.parent.rmdir()
    os._exit(0)


def _say_loading(loaded: threading.Event) -> None:
    from app.workers.process import LOADING

    while not loaded.wait(1):
        say_line(LOADING)


def say_line(line: str) -> None:
    """Writes a line at once: `print` writes its end apart, and another thread's line may come between."""
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()
