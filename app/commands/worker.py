"""`lexiscope worker`: keep a model in memory and compute what visitors of live pages ask for. The server starts workers
by itself; start one by hand to run it elsewhere, such as on a machine with a GPU. With --ray the worker is an
application of Ray Serve (ray_worker.py)."""

import argparse
import contextlib
import logging
import os
import socket
import threading
from pathlib import Path

from lexiscope.app.commands.command import CHILD, amount, command, flag, group, option, positive, say_line
from lexiscope.precompute.errors import ServeError

WORKER_GRACE_SECONDS = 1


@command(
    "worker",
    "compute what visitors of live pages type (the server starts one by itself)",
    "Keep a model in memory and compute what visitors of live pages type. The server starts a worker by itself; run "
    "one by hand on another machine, and name it to the server in LEXISCOPE_WORKER_URL. Whoever can reach its address "
    "can use it, unless it has a token, LEXISCOPE_WORKER_TOKEN, that the server has, too.",
    option(
        "--model",
        "a model that is built, or a Hub id, a folder, a .gguf file, demo, minilm; with --ray also several times",
        required=True,
        action="append",
    ),
    option("--device", "auto, cpu, cuda, cuda:1, ... (default: LEXISCOPE_DEVICE, else auto)"),
    option("--threads", "on the CPU (default: one per core; with --ray, one per CPU of a replica)", positive),
    option("--socket", "listen at a Unix socket instead of a port", Path, metavar="PATH"),
    option("--host", "the address to listen at (default: 127.0.0.1)", default="127.0.0.1"),
    option("--port", "the port; 0: any (default: 8100)", int, default=8100),
    CHILD,
    group(
        "with --ray, of each model",
        flag("--ray", "run replicas as an application of Ray Serve"),
        option(
            "--ray-address",
            "a cluster that runs already, auto or HOST:PORT (default: local, one on this machine that ends with this)",
            metavar="ADDRESS",
            default="local",
        ),
        option("--min-replicas", "at least (default: 1)", positive, default=1),
        option("--max-replicas", "at most, under load (default: as --min-replicas)", positive),
        option(
            "--target-requests",
            "requests under way in a replica, above which there will be more replicas (default: 4)",
            positive,
            default=4,
        ),
        option("--cpus-per-replica", "set aside for each (default: 1)", amount, default=1.0, metavar="X"),
        option(
            "--gpus-per-replica",
            "set aside for each; 0.25 lets four replicas share a GPU (default: 0)",
            amount,
            default=0.0,
            metavar="X",
        ),
        option("--scale-up-seconds", "of load before (default: 10)", amount, default=10.0, metavar="S"),
        option("--scale-down-seconds", "of quiet before (default: 300)", amount, default=300.0, metavar="S"),
    ),
)
def run(args: argparse.Namespace) -> int:
    if args.ray:
        from lexiscope.app.commands.ray_worker import run_on_ray

        return run_on_ray(args)
    if len(args.model) > 1:
        raise ServeError(f"a worker has one model, not {' and '.join(args.model)}: start one for each, or add --ray")
    return _run_one(args)


def _run_one(args: argparse.Namespace) -> int:
    from lexiscope.app.live.process import READY
    from lexiscope.app.settings import load

    settings = load(data=args.data, device=args.device)
    logging.basicConfig(level=settings.log_level.upper(), format="%(levelname)s: %(message)s")
    loaded = threading.Event()
    if args.child:
        from lexiscope.app.live.process import when_parent_ends

        when_parent_ends(lambda: _exit(args.socket))
        threading.Thread(target=_say_loading, args=(loaded,), daemon=True).start()

    from lexiscope.app.asgi.http_server import WORKER_KEEP_ALIVE_SECONDS, make_server
    from lexiscope.app.worker.loading import load_model
    from lexiscope.app.worker.service import create_worker

    loaded_model = load_model(args.model[0], args.data, settings.device, args.threads)
    name = loaded_model.name
    listener, address = _listen(args)
    exit_code = 0

    def stop() -> None:
        nonlocal exit_code
        exit_code = 1
        server.should_exit = True

    app = create_worker(loaded_model.engine, name, loaded_model.weights, settings, stop)
    keep_alive = WORKER_KEEP_ALIVE_SECONDS
    server = make_server(app, settings, grace_seconds=WORKER_GRACE_SECONDS, keep_alive_seconds=keep_alive)
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
    """Return the socket on which the worker listens, and its address as text for people."""
    from lexiscope.app.asgi.http_server import browser_address, listen, listen_at_path

    if args.socket:
        return listen_at_path(args.socket), f"unix:{args.socket.absolute()}"
    listener = listen(args.host, args.port)
    return listener, browser_address(listener)


def _exit(socket_path: Path | None) -> None:
    """End the process at once. Remove its socket and the socket's folder first, because a parent that was killed
    cannot."""
    if socket_path:
        with contextlib.suppress(OSError):
            socket_path.unlink(missing_ok=True)
            socket_path.parent.rmdir()
    os._exit(0)


def _say_loading(loaded: threading.Event) -> None:
    from lexiscope.app.live.process import LOADING

    while not loaded.wait(1):
        say_line(LOADING)
