"""Imitate a disk that is soon full, for tests of downloads and conversions."""

import resource
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def small_disk(limit: int) -> Iterator[None]:
    """Let no file grow beyond `limit` bytes, as on a full disk or under a quota, without filling a disk."""
    old = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (limit, old[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, old)
