"""Start the threads that a build computes on: each computes alone, so that no two pools get in each other's way."""

from collections.abc import Iterator
from concurrent.futures import Executor, ThreadPoolExecutor
from contextlib import contextmanager

import torch


def workers_on(device: torch.device, threads: int) -> int:
    return threads if device.type == "cpu" else 1


@contextmanager
def compute_threads(device: torch.device, threads: int) -> Iterator[Executor]:
    """Start a pool for make_layer. On the CPU each of its threads computes alone; float32 products stay float32."""
    before = torch.get_num_threads()
    torch.backends.cuda.matmul.allow_tf32 = False
    torch.set_num_threads(1)
    pool = ThreadPoolExecutor(workers_on(device, threads), initializer=lambda: torch.set_num_threads(1))
    try:
        yield pool
        pool.shutdown()
    finally:
        pool.shutdown(wait=False, cancel_futures=True)  # after Ctrl-C, because a running search cannot be stopped
        torch.set_num_threads(before)
