"""The connection to a Ray cluster: one that runs, or one of this machine alone that ends with the command."""

import logging
import os
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import ray

from precompute.errors import BuildError

LOCAL = "local"


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
        ray.init(address, **options)
    except (ConnectionError, RuntimeError, ValueError) as error:  # nobody there; other versions; no address
        raise BuildError(_refusal(address, error)) from error
    try:
        if threading.current_thread() is threading.main_thread():
            signal.signal(signal.SIGTERM, handler)  # Ray puts in one that ends the command without a word
        yield
    finally:
        ray.shutdown()


def _refusal(address: str, error: Exception) -> str:
    why = str(error).splitlines()[0] if str(error) else type(error).__name__
    if address == LOCAL:
        return f"--ray local: no cluster can be started on this machine: {why}"
    remedies = {
        "auto": "start one here with `ray start --head`, name one with RAY_ADDRESS=HOST:PORT, or use --ray local",
    }
    remedy = remedies.get(address, "check that it runs there, with the same versions of Ray and Python as here")
    return f"--ray {address}: there is no Ray cluster to be used: {why}; {remedy}"
