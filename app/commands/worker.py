"""`lexiscope worker`: a model in memory, which computes what visitors of live pages type.
The server starts workers by itself; by hand one runs elsewhere, such as on a machine with a GPU. With --ray it is an
application of Ray Serve (ray_worker.py)."""

import argparse
import contextlib
import logging
import os
import socket
import sys
import threading
from pathlib import Path
from typing import TYPE_CHECKING

from app.commands import options
from precompute.errors import ServeError

if TYPE_CHECKING:
    from app.commands.options import Subparsers

KEEP_ALIVE_SECONDS = 120  # longer than the server keeps idle connections (workers/connections.py)
GRACE_SECONDS = 1


def add_parser(subparsers: "Subparsers") -> None:
    parser = subparsers.add_parser(
        "worker",
        help="compute what visitors of live pages type (the server starts one by itself)",
        description="Keep a model in memory and compute what visitors of live pages type. The server starts a worker "
        "by itself; run one by hand on another machine, and name it to the server in LEXISCOPE_WORKER_URL. "
        "Whoever can reach its address can use it, unless it has a token, LEXISCOPE_WORKER_TOKEN, that the server "
        "has, too.",
    )
    parser.add_argument(
        "--model",
        required=True,
        action="append",
        help="a model that is built, or a Hub id, a folder, a .gguf file, demo, minilm; with --ray also several times",
    )
    options.add_data(parser)
    parser.add_argument("--device", help="auto, cpu, cuda, cuda:1, ... (default: LEXISCOPE_DEVICE, else auto)")
    parser.add_argument(
        "--threads",
        type=options.positive,
        metavar="N",
        help="on the CPU (default: one per core; with --ray, one per CPU of a replica)",
    )
    parser.add_argument("--socket", type=Path, metavar="PATH", help="listen at a Unix socket instead of a port")
    parser.add_argument("--host", default="127.0.0.1", help="the address to listen at (default: 127.0.0.1)")
    parser.add_argument("--port", type=int, default=8100, metavar="N", help="the port; 0: any (default: 8100)")
    parser.add_argument("--child", action="store_true", help=argparse.SUPPRESS)  # ends when its standard input does
    ray = parser.add_argument_group("with --ray, of each model")
    ray.add_argument("--ray", action="store_true", help="run replicas as an application of Ray Serve")
    ray.add_argument(
        "--ray-address",
        metavar="ADDRESS",
        default="local",
        help="a cluster that runs already, auto or HOST:PORT (default: local, one on this machine that ends with this)",
    )
    ray.add_argument("--min-replicas", type=options.positive, default=1, metavar="N", help="at least (default: 1)")
    ray.add_argument(
        "--max-replicas", type=options.positive, metavar="N", help="at most, under load (default: as --min-replicas)"
    )
    ray.add_argument(
        "--target-requests",
        type=options.positive,
        default=4,
        metavar="N",
        help="requests under way in a replica, above which there will be more replicas (default: 4)",
    )
    ray.add_argument(
        "--cpus-per-replica", type=options.amount, default=1.0, metavar="X", help="set aside for each (default: 1)"
    )
    ray.add_argument(
        "--gpus-per-replica",
        type=options.amount,
        default=0.0,
        metavar="X",
        help="set aside for each; 0.25 lets four replicas share a GPU (default: 0)",
    )
    ray.add_argument(
        "--scale-up-seconds", type=options.amount, default=10.0, metavar="S", help="of load before (default: 10)"
    )
    ray.add_argument(
        "--scale-down-seconds", type=options.amount, default=300.0, metavar="S", help="of quiet before (default: 300)"
    )
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    if args.ray:
        from app.commands.ray_worker import run_on_ray

        return run_on_ray(args)
    if len(args.model) > 1:
        raise ServeError(f"a worker has one model, not {' and '.join(args.model)}: start one for each, or add --ray")
    return _run_one(args)


def _run_one(args: argparse.Namespace) -> int:
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
    from app.worker.loading import load_model
    from app.worker.service import create_worker

    loaded_model = load_model(args.model[0], args.data, settings.device, args.threads)
    name = loaded_model.name
    listener, address = _listen(args)
    exit_code = 0

    def stop() -> None:
        nonlocal exit_code
        exit_code = 1
        server.should_exit = True

    app = create_worker(loaded_model.engine, name, loaded_model.weights, settings, stop)
    server = make_server(app, settings, grace_seconds=GRACE_SECONDS, keep_alive_seconds=KEEP_ALIVE_SECONDS)
    loaded.set()
    say_line(READY if args.child else f"The worker of {name} is at {address} (Ctrl-C ends it)")
    try:
        server.run(sockets=[listener])
    finally:
        listener.close()
        if args.socket:
            args.socket.unlink(missing_ok=True)
    return exit_code


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
