"""Compiles kernels to machine code, once: `@kernel()` keeps what it compiled on disk for as long as no source changes.

numba's own rule looks at the file of a kernel alone; but a kernel holds the code and constants of others it uses.
"""

import hashlib
import os
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import TypeVar

from numba import config, njit

SOURCES = Path(__file__).parent

F = TypeVar("F", bound=Callable[..., object])


def kernel(*, fastmath: bool | set[str] = False) -> Callable[[F], F]:
    """Compiles a function at its first call; threads run it side by side."""

    def compile_(function: F) -> F:
        folder, before = _folder(), config.CACHE_DIR
        config.CACHE_DIR = str(folder or "")
        try:
            compiled: F = njit(cache=folder is not None, nogil=True, fastmath=fastmath)(function)
        finally:
            config.CACHE_DIR = before
        return compiled

    return compile_


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
