"""Compile kernels (functions for numba) to machine code once: `@kernel()` keeps the compiled code on disk for as long
as no source file changes.

numba's own cache checks the file of a kernel alone, but a kernel also contains the code and constants of functions that
it uses.
"""

import hashlib
import os
from collections.abc import Callable, Iterable
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any, TypeVar

from numba import config, njit
from numba.core.caching import FunctionCache

PACKAGE = Path(__file__).parents[1]
# Whatever a kernel uses stands below one of these.
KERNEL_FOLDERS = (PACKAGE / "project", PACKAGE / "live", PACKAGE / "compare")
FASTMATH = {"reassoc", "contract", "nsz"}  # only where candidates are found: exact scores keep their order of sums

F = TypeVar("F", bound=Callable[..., object])


def kernel(*, fastmath: bool | set[str] = False) -> Callable[[F], F]:
    """Return a decorator that compiles a function at its first call; several threads can run the compiled code at
    once."""

    def compile_(function: F) -> F:
        compiled = njit(nogil=True, fastmath=fastmath)(function)
        folder = _cache_folder()
        if folder:
            config.CACHE_DIR = str(folder)
            compiled._cache = TolerantCache(function)
        dispatcher: F = compiled
        return dispatcher

    return compile_


# This uses a class and an attribute that numba does not document: with plain `njit(cache=True)` the first call
# of a kernel raises whatever unpickling a damaged file raises, or the OSError of a full disk, and numba has no public
# way to go on without its cache. test_compiled.py damages files, so an update of numba that changes this is noticed.
class TolerantCache(FunctionCache):  # type: ignore[misc]
    """A cache of compiled code: code that cannot be read is compiled anew, code that cannot be written is not kept."""

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        try:
            return super().load_overload(sig, target_context)
        except Exception:  # whatever a damaged pickle raises
            with suppress(OSError):
                self.flush()
            return None

    def save_overload(self, sig: Any, data: Any) -> None:
        with suppress(OSError):
            super().save_overload(sig, data)


@cache
def _cache_folder() -> Path | None:
    """Return the folder for compiled code: NUMBA_CACHE_DIR if it is set; else a folder beside the sources, or with the
    user's caches. Return None if no such folder can be written."""
    users = Path(os.environ.get("XDG_CACHE_HOME") or Path("~/.cache").expanduser()) / "lexiscope"
    configured = [Path(config.CACHE_DIR)] if config.CACHE_DIR else []
    name = f"kernels-{digest(KERNEL_FOLDERS)}"
    return first_writable([parent / name for parent in (*configured, PACKAGE / "__pycache__", users)])


def first_writable(folders: list[Path]) -> Path | None:
    for folder in folders:
        try:
            folder.mkdir(parents=True, exist_ok=True)
        except OSError:
            continue
        if os.access(folder, os.W_OK | os.X_OK):
            return folder
    return None


def digest(folders: Iterable[Path]) -> str:
    """Hash the names and contents of every source file below these folders."""
    total = hashlib.blake2b(digest_size=8)
    for folder in folders:
        for path in sorted(folder.rglob("*.py")):
            total.update(path.relative_to(folder.parent).as_posix().encode() + b"\0")
            total.update(hashlib.blake2b(path.read_bytes()).digest())
    return total.hexdigest()
