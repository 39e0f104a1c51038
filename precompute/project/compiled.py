"""Compiles kernels to machine code, once: `@kernel()` keeps what it compiled on disk for as long as no source changes.

numba's own rule looks at the file of a kernel alone; but a kernel holds the code and constants of others it uses.
"""

import hashlib
import os
from collections.abc import Callable
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any, TypeVar

from numba import config, njit
from numba.core.caching import FunctionCache

SOURCES = Path(__file__).parents[1]

F = TypeVar("F", bound=Callable[..., object])


def kernel(*, fastmath: bool | set[str] = False) -> Callable[[F], F]:
    """Compiles a function at its first call; threads run it side by side."""

    def compile_(function: F) -> F:
        folder, before = _folder(), config.CACHE_DIR
        config.CACHE_DIR = str(folder or "")
        try:
            compiled = njit(nogil=True, fastmath=fastmath)(function)
            if folder:
                compiled._cache = Kept(function)
        finally:
            config.CACHE_DIR = before
        kept: F = compiled
        return kept

    return compile_


class Kept(FunctionCache):  # type: ignore[misc]
    """Compiled code on disk is a convenience: what cannot be read is made anew, what cannot be written is not kept."""

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
def _folder() -> Path | None:
    """Where compiled code is kept: beside the sources, or with the user's caches; None if neither can be written."""
    users = Path(os.environ.get("XDG_CACHE_HOME") or Path("~/.cache").expanduser()) / "lexiscope"
    return first_writable([parent / f"kernels-{digest(SOURCES)}" for parent in (SOURCES / "__pycache__", users)])


def first_writable(folders: list[Path]) -> Path | None:
    for folder in folders:
        try:
            folder.mkdir(parents=True, exist_ok=True)
        except OSError:
            continue
        if os.access(folder, os.W_OK | os.X_OK):
            return folder
    return None


def digest(sources: Path) -> str:
    """Of every source file below a folder."""
    total = hashlib.blake2b(digest_size=8)
    for path in sorted(sources.rglob("*.py")):
        total.update(path.relative_to(sources).as_posix().encode() + b"\0")
        total.update(hashlib.blake2b(path.read_bytes()).digest())
    return total.hexdigest()
