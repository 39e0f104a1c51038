"""Connect to a Ray cluster: to one that runs already, or to one of this machine alone that ends with the command."""

import logging
import os
import signal
import socket
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import ray

from lexiscope.precompute.errors import ClusterError
from lexiscope.precompute.ray_cluster import LOCAL

CLUSTER_SECONDS = 10
CONNECTION_TRIES = 3  # tries of Ray Client: its server sometimes dies or hangs when it starts a new client's process


@contextmanager
def connected(option: str, address: str, **of_our_own: Any) -> Iterator[None]:
    """Connect to `local`, `auto`, HOST:PORT or ray://HOST:PORT until the end of the block; an existing connection is
    used.

    `option` is the name of the option with the address, for messages; `of_our_own` holds arguments of `ray.init` for a
    cluster of this machine alone. Ray's messages stay in its log files: what matters of them is raised as errors.
    """
    if ray.is_initialized():
        yield
        return
    options = {"include_dashboard": False, **of_our_own} if address == LOCAL else {}
    handler = signal.getsignal(signal.SIGTERM)
    try:
        _check_that_somebody_listens(address)
        _connect(address, options)
    except (OSError, RuntimeError, ValueError) as error:  # nobody there, other versions, or no address
        raise ClusterError(_refusal(option, address, error)) from error
    try:
        if threading.current_thread() is threading.main_thread():
            signal.signal(signal.SIGTERM, handler)  # Ray sets a handler that ends the command without a message
        yield
    finally:
        ray.shutdown()


def _connect(address: str, options: dict[str, Any]) -> None:
    """Connect to the cluster; try again if Ray Client's server could not start a process for us (Ray issue 63202)."""
    for tries_left in reversed(range(CONNECTION_TRIES)):
        try:
            ray.init(address, log_to_driver=False, logging_level=logging.ERROR, **options)
            return
        except ConnectionAbortedError:
            if not tries_left:
                raise


def _check_that_somebody_listens(address: str) -> None:
    """Raise OSError if nothing listens at the address: Ray itself would try for minutes."""
    named = _address_of_auto() if address == "auto" else address
    host, _, port = named.removeprefix("ray://").rpartition(":")
    if host and port.isdecimal():
        socket.create_connection((host.strip("[]"), int(port)), timeout=CLUSTER_SECONDS).close()


def _address_of_auto() -> str:
    """Return where Ray will look for a cluster, as `ray.init` documents it: RAY_ADDRESS, else the file that `ray start`
    writes. Return an empty text if there is neither: then Ray looks through the processes of this machine, which takes
    no time."""
    with suppress(OSError):
        return os.environ.get("RAY_ADDRESS") or _current_cluster_file().read_text().strip()
    return ""


def _current_cluster_file() -> Path:
    """Return the file that names the current cluster. It stays when a cluster is killed, and then names an address at
    which nothing listens."""
    folder = os.environ.get("RAY_TMPDIR") or (os.environ.get("TMPDIR") if sys.platform == "linux" else None) or "/tmp"
    return Path(folder, "ray", "ray_current_cluster")


def _refusal(option: str, address: str, error: Exception) -> str:
    lines = [line.strip() for line in str(error).splitlines() if line.strip()] or [type(error).__name__]
    why = f"{lines[0]} {lines[-1]}" if lines[0].endswith(":") and lines[1:] else lines[0]  # only the end of a traceback
    if address == LOCAL:
        return f"{option} {address}: no cluster can be started on this machine: {why}"
    if address == "auto":
        named, where = _address_of_auto(), "on this machine"
        remedy = (
            f"start one here with `ray start --head`, name one with RAY_ADDRESS=HOST:PORT, or give {option} {LOCAL}"
        )
        if os.environ.get("RAY_ADDRESS"):
            where = f"at RAY_ADDRESS={named}"
        elif named:
            where = f"at {named}, which {_current_cluster_file()} names,"
            remedy = f"remove that file if its cluster has ended, {remedy}"
    else:
        where, remedy = "there", "check that it runs, with the same versions of Ray and Python as here"
    return f"{option} {address}: no Ray cluster {where} can be used: {why}; {remedy}"
