"""`lexiscope worker --ray`: serve models as applications of Ray Serve, each at its own path, until the command ends."""

import argparse
import logging
import re
import signal
import sys
import time
from collections.abc import Mapping
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from lexiscope.app.asgi.http_server import WORKER_KEEP_ALIVE_SECONDS, browser_address, listen, url_of
from lexiscope.app.commands.command import say_line
from lexiscope.app.live.connections import WorkerAddress, plain_client
from lexiscope.app.settings import Settings, load
from lexiscope.app.weights import find_weights
from lexiscope.precompute.errors import ServeError
from lexiscope.precompute.ray_cluster import LOCAL, keep_others_out

if TYPE_CHECKING:
    from lexiscope.app.worker.ray_serve import WorkerArguments

OBJECT_STORE_BYTES = 200 << 20  # memory for objects in a cluster that this command starts; answers are far smaller
# how much longer the server waits, so that a replica can itself report that it took too long
REPLICA_MARGIN_SECONDS = 1
START_SECONDS = 60  # longest time until an application that has started answers at its address
APPLICATION_OPTIONS = (
    "threads", "min_replicas", "target_requests", "cpus_per_replica", "gpus_per_replica", "scale_up_seconds",
    "scale_down_seconds",
)  # fmt: skip


def run_on_ray(args: argparse.Namespace) -> int:
    if args.ray_address == LOCAL:
        keep_others_out()
    import ray

    from lexiscope.app.worker.ray_serve import bound_application
    from lexiscope.precompute.ray_cluster.connection import connected

    settings = load(data=args.data, device=args.device)
    applications = _applications(args)
    address = _address(args)
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, lambda number, _: sys.exit(128 + number))
    logging.getLogger("ray.serve").setLevel(logging.WARNING)
    with connected("--ray-address", args.ray_address, object_store_memory=OBJECT_STORE_BYTES):
        if args.ray_address == LOCAL:
            check_room(applications, ray.cluster_resources())
        start_serve(settings, args.host, urlsplit(address).port or 0, everywhere=args.ray_address != LOCAL)
        try:
            for name, arguments in applications.items():
                deploy(name, bound_application(arguments, settings))
                _wait_for_answer(name, f"{address}/{name}")
                say_line(f"The worker of {name} is at {address}/{name} (Ctrl-C ends it)")
            while True:
                signal.pause()
        finally:
            _take_down(applications)


def start_serve(settings: Settings, host: str, port: int, *, everywhere: bool) -> None:
    """Start Ray Serve with its HTTP proxies, on every node or on this one; leave it as it is if it already runs."""
    from ray import serve

    start = partial(
        serve.start,
        proxy_location="EveryNode" if everywhere else "HeadOnly",
        http_options={
            "host": host,
            "port": port,
            "request_timeout_s": settings.request_seconds + REPLICA_MARGIN_SECONDS,
            "keep_alive_timeout_s": WORKER_KEEP_ALIVE_SECONDS,
        },
        logging_config={"log_level": "WARNING", "enable_access_log": False},
    )
    try:
        start()
    except TimeoutError:  # on a busy machine a proxy takes more than a minute; `_wait_for_answer` waits for it
        start()  # Serve itself runs: this connects to it


def deploy(name: str, application: Any) -> None:
    """Deploy an application and return once its replicas have loaded the model. Raise ServeError with the reason if
    they cannot."""
    from ray import serve

    logs = {"log_level": "WARNING", "enable_access_log": False}
    try:
        serve.run(application, name=name, route_prefix=f"/{name}", logging_config=logs)
    except RuntimeError:
        state = serve.status().applications[name]
        (message,) = [status.message for status in state.deployments.values()] or [state.message]
        raise ServeError(f"the worker of {name} cannot start on Ray: {reason_of(message)}") from None


def reason_of(message: str) -> str:
    """Return the reason in an error message of Ray Serve: the last line of its traceback, without the name of the
    error."""
    return re.sub(r"^[\w.]+: ", "", message.strip().rpartition("\n")[2])


def _applications(args: argparse.Namespace) -> "dict[str, WorkerArguments]":
    """Return the arguments of each application by its model's name, which is also its path. Raise a ServeError about
    wrong weights or numbers before anything starts."""
    from pydantic import ValidationError

    from lexiscope.app.worker.ray_serve import WorkerArguments
    from lexiscope.precompute.weights.difference import Difference

    if args.socket:
        raise ServeError("Ray Serve listens at a port: leave out --socket, or --ray")
    applications: dict[str, WorkerArguments] = {}
    for model in args.model:
        found = find_weights(model, args.data)
        name = found.checkpoint.name if isinstance(found, Difference) else found.name
        if name in applications:
            raise ServeError(f"two models are called {name}: each has its path by its name, so leave one out")
        try:
            applications[name] = WorkerArguments(
                model=str(Path(model).absolute()) if Path(model).exists() else model,
                data=args.data.absolute(),
                max_replicas=args.max_replicas or args.min_replicas,
                **{name: getattr(args, name) for name in APPLICATION_OPTIONS},
            )
        except ValidationError as error:
            raise ServeError("; ".join(reason["msg"] for reason in error.errors())) from None
    return applications


def _address(args: argparse.Namespace) -> str:
    """Return the address at which Ray Serve will listen. On a cluster that this command starts, raise ServeError if
    another program listens there."""
    if args.ray_address != LOCAL:
        if not args.port:
            raise ServeError("--port 0 is for a cluster of its own: give the port at which every node is to listen")
        return url_of(args.host, args.port)
    listener = listen(args.host, args.port)
    address = browser_address(listener)
    listener.close()
    return address


def check_room(applications: "Mapping[str, WorkerArguments]", there: Mapping[str, float]) -> None:
    """Raise a ServeError if the replicas need more than this machine has, because Ray Serve would then wait forever."""
    for what in ("cpus", "gpus"):
        wanted = sum(one.min_replicas * getattr(one, f"{what}_per_replica") for one in applications.values())
        has = there.get(what.upper()[:-1], 0)
        if wanted > has:
            raise ServeError(
                f"the replicas want {wanted:g} {what.upper()} and this machine has {has:g}: give fewer --min-replicas, "
                f"or less --{what}-per-replica"
            )


def _wait_for_answer(name: str, url: str) -> None:
    """Return once the application answers at its address. If Ray Serve was running before, it may listen at another
    one."""
    import httpx2

    deadline = time.monotonic() + START_SECONDS
    with plain_client(WorkerAddress(url), 5) as client:
        while time.monotonic() < deadline:
            with suppress(httpx2.HTTPError):
                if client.get("/health").is_success:
                    return
            time.sleep(0.1)
    raise ServeError(
        f"{name} runs on Ray Serve but does not answer at {url}: where Serve ran before, it keeps its address, so give "
        "that as --host and --port"
    )


def _take_down(applications: "Mapping[str, WorkerArguments]") -> None:
    from ray import serve

    for name in applications:
        serve.delete(name)
