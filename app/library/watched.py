"""Keep a value that is made from files, and make it again when the files change: indexes, comparisons and labels."""

import threading
import time
from collections.abc import Callable
from typing import Generic, TypeVar

T = TypeVar("T")


def never(_: object) -> bool:
    return False


class Watched(Generic[T]):
    """A value made from files. `read` gets the value before (None at first) and returns it if no file has changed, else
    a new one. It is called at most once in `every` seconds, or at once if `is_outdated` returns True for the value."""

    def __init__(self, read: Callable[[T | None], T], every: float, is_outdated: Callable[[T], bool] = never) -> None:
        self._read = read
        self._every = every
        self._is_outdated = is_outdated
        self._lock = threading.RLock()
        self._held: tuple[float, T] | None = None  # the time of the last check, and the value that it gave

    def value(self) -> T:
        held = self._held
        if held is None or self._is_due(held):
            with self._lock:
                held = self._held
                # checked again under the lock: another thread may have been faster
                if held is None or self._is_due(held):
                    value = self._read(held[1] if held else None)
                    held = self._held = time.monotonic(), value
        return held[1]

    def _is_due(self, held: tuple[float, T]) -> bool:
        looked, value = held
        return time.monotonic() - looked >= self._every or self._is_outdated(value)
