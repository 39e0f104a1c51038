"""The connection to a Ray cluster: one that runs, or one of this machine alone that ends with the command."""

import logging
import os
import signal
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import ray

from precompute.errors import BuildError

LOCAL = "local"
ANSWER_SECONDS = 10


@contextmanager
def connected(address: str, threads: int | None = None) -> Iterator[None]:
    """To `local`, `auto` or ray://HOST:PORT, until the end of the block; a connection that is there is used.

    Ray's messages stay in its log files: what matters of them comes back as errors of tasks.
    """
    if ray.is_initialized():
        yield
        return
    options: dict[str, Any] = {"log_to_driver": False, "logging_level": logging.ERROR}
    if address == LOCAL:
        cores = os.cpu_count() or 1
        options |= {"include_dashboard": False, "num_cpus": max(cores, threads or 1)}
    handler = signal.getsignal(signal.SIGTERM)
    try:
        _check_that_somebody_listens(address)
        ray.init(address, **options)
    except (OSError, RuntimeError, ValueError) as error:  # nobody there; other versions; no address
        raise BuildError(_refusal(address, error)) from error
    try:
        if threading.current_thread() is threading.main_thread():
            signal.signal(signal.SIGTERM, handler)  # Ray puts in one that ends the command without a word
        yield
    finally:
        ray.shutdown()


def _check_that_somebody_listens(address: str) -> None:
    """OSError if nobody does: Ray itself would try for minutes."""
    named = os.environ.get("RAY_ADDRESS", "") if address == "auto" else address
    host, _, port = named.removeprefix("ray://").rpartition(":")
    if host and port.isdecimal():
        socket.create_connection((host.strip("[]"), int(port)), timeout=ANSWER_SECONDS).close()


def _refusal(address: str, error: Exception) -> str:
    why = str(error).splitlines()[0] if str(error) else type(error).__name__
    if address == LOCAL:
        return f"--ray local: no cluster can be started on this machine: {why}"
    if address == "auto":
        named = os.environ.get("RAY_ADDRESS")
        where = f"at RAY_ADDRESS={named}" if named else "on this machine"
        remedy = "start one here with `ray start --head`, name one with RAY_ADDRESS=HOST:PORT, or use --ray local"
    else:
        where, remedy = "there", "check that it runs, with the same versions of Ray and Python as here"
    return f"--ray {address}: no Ray cluster {where} can be used: {why}; {remedy}"
