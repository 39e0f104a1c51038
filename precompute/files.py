"""Write files so that they are complete or absent, and read JSON strictly. Nothing here depends on arrays, models or
manifests."""

import contextlib
import errno
import hashlib
import io
import json
import os
import stat
from collections.abc import Iterable
from pathlib import Path
from typing import Any, TypeAlias

from lexiscope.precompute.errors import (
    BuildError,
    DiskFull,
    IndexMissing,
    ManifestDamaged,
    ShardDamaged,
    ShardUnreadable,
)
from lexiscope.precompute.rebuild_command import is_comparison, rebuild_command_for

FULL = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}  # what a system says when there is no room for more of a file
Stamp: TypeAlias = tuple[int, int, int, int]  # inode, size and times of a file
PARTIAL = ".partial"  # the end of a name that a killed writer leaves behind; the next writer of the file replaces it


def write_beside(path: Path, pieces: Iterable[bytes | memoryview]) -> tuple[str, int]:
    """Write a file under another name, read it back, flush it and rename it; return its SHA-256 and its length.

    If something with that other name exists, it is removed, never written to: it may be a link to somewhere else.
    """
    beside = path.with_name(path.name + PARTIAL)
    digest, n_bytes = hashlib.sha256(), 0
    try:
        beside.unlink(missing_ok=True)
        with open(os.open(beside, _NEW_FILE, 0o666), "wb") as file:
            for piece in pieces:
                digest.update(piece)
                n_bytes += file.write(piece)
            file.flush()
            os.fsync(file.fileno())
        if sha256_of(beside) != digest.hexdigest():
            raise BuildError(f"{beside} reads back differently from what was written: check the disk, then try again")
        os.replace(beside, path)
        flush(path.parent)
    except BaseException as error:
        with contextlib.suppress(OSError):
            beside.unlink()
        if isinstance(error, OSError):
            raise _write_error(path, error) from error
        raise
    return digest.hexdigest(), n_bytes


def open_descriptor(path: Path) -> int:
    """Open a file for reading; raise OSError for a folder, and for a pipe or a device, which might never answer."""
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    mode = os.fstat(descriptor).st_mode
    if stat.S_ISREG(mode):
        return descriptor
    os.close(descriptor)
    number, why = (errno.EISDIR, "Is a directory") if stat.S_ISDIR(mode) else (errno.EINVAL, "Not a regular file")
    raise OSError(number, why, str(path))


def open_regular(path: Path) -> io.BufferedReader:
    return open(open_descriptor(path), "rb")


def stamp_of(path: str | Path | int) -> Stamp | None:
    """Return a stamp that changes whenever a file is written to; that of an open descriptor changes also when its file
    is replaced or removed. Return None if there is no file."""
    try:
        status = os.stat(path)
    except OSError:
        return None
    return status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns


def read_stamped(path: Path, most_bytes: int, if_missing: str) -> tuple[bytes, Stamp | None]:
    """Read a manifest or record, and the stamp of the very file it was read from; raise ValueError if it is too
    long."""
    try:
        with open_regular(path) as file:
            stamp = stamp_of(file.fileno())
            content = file.read(most_bytes + 1)
    except (FileNotFoundError, NotADirectoryError):
        raise IndexMissing(if_missing) from None
    except OSError as error:
        raise ManifestDamaged(
            f"{path} cannot be read: {error.strerror}. Check its permissions and the disk, then try again"
        ) from error
    if len(content) > most_bytes:
        raise ValueError(f"it is longer than {most_bytes} bytes")
    return content, stamp


def read_regular(path: Path) -> bytes:
    with open_regular(path) as file:
        return file.read()


def sha256_of(path: Path) -> str:
    with open_regular(path) as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def strict_json(text: bytes) -> Any:
    """Parse JSON; raise ValueError for what parsers treat differently: repeated names, NaN and infinities, encodings
    other than UTF-8, and deep nesting."""
    try:
        return json.loads(text.decode("utf-8"), object_pairs_hook=_unique, parse_constant=_no_constant)
    except RecursionError:
        raise ValueError("it is nested too deeply") from None
    except UnicodeDecodeError:
        raise ValueError("it is not UTF-8") from None
    except json.JSONDecodeError as error:
        raise ValueError(f"it is not JSON ({error.msg} at line {error.lineno})") from None


def canonical_json(value: Any) -> bytes:
    """Return a value as JSON in one standard form, so that equal values give equal bytes."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), allow_nan=False).encode("ascii")


def damaged(path: Path, what: str) -> ShardDamaged:
    """Return the error for a damaged file. `what` completes the sentence "PATH ..."; the folder of an index has the
    name of its model."""
    folder = path.parent
    verify = "" if is_comparison(folder) else f"; `lexiscope verify {folder.name}` checks the rest of the index"
    return ShardDamaged(f"{path} {what}. Delete this file and run `{rebuild_command_for(folder)}` again{verify}")


def unreadable(path: Path, error: OSError) -> ShardUnreadable:
    folder = path.parent
    if isinstance(error, FileNotFoundError):
        return ShardUnreadable(f"{path} is missing. Run `{rebuild_command_for(folder)}` again to make it")
    verify = "" if is_comparison(folder) else f"; `lexiscope verify {folder.name}` checks the whole index"
    return ShardUnreadable(
        f"{path} cannot be read: {error.strerror or error}. Check the file's permissions and the disk, then try "
        f"again{verify}"
    )


def folder_gone(folder: Path) -> BuildError:
    return BuildError(f"{folder} was removed during the build: run the same command again to begin anew")


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    names = dict(pairs)
    if len(names) < len(pairs):
        raise ValueError("a name occurs twice in it")
    return names


def _no_constant(name: str) -> Any:
    raise ValueError(f"it contains {name}")


def _write_error(path: Path, error: OSError) -> BuildError:
    if error.errno in FULL:
        return DiskFull(
            f"no space left to write {path} ({error.strerror}): free some and run the same command again, it goes on "
            "from here"
        )
    if isinstance(error, FileNotFoundError) and not path.parent.is_dir():
        return folder_gone(path.parent)
    return BuildError(f"cannot write {path}: {error.strerror or error}; check the folder and its permissions")


_NEW_FILE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC


def flush(path: Path) -> None:
    """Make sure that a file, or the names in a folder, have reached the disk."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
