"""A disk that is soon full, for tests of downloads and conversions."""

import resource
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def small_disk(limit: int) -> Iterator[None]:
    """Files cannot grow beyond `limit` bytes: what a full disk or a quota looks like, without filling one."""
    old = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (limit, old[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, old)
