"""Checkpoint folders: lazy float32 tensors, one or many files, and every way in which the files can be wrong."""

import hashlib
import json
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file, save_file

from lexiscope.precompute.errors import BadWeights, NoSafetensors, SourceNotFound, WeightsError
from lexiscope.precompute.weights.checkpoint import Checkpoint, safe_name
from tests.support.models import load, tiny_gpt2, tiny_llama

WTE = "transformer.wte.weight"


@pytest.mark.parametrize(("shard_size", "dtype"), [
    ("1GB", torch.float32), ("30KB", torch.float16), ("30KB", torch.bfloat16),
])  # fmt: skip
def test_tensors_are_those_of_transformers(tmp_path: Path, shard_size: str, dtype: torch.dtype) -> None:
    checkpoint = Checkpoint.open(tiny_llama(tmp_path, tied=False, shard_size=shard_size, dtype=dtype))
    theirs = load(tmp_path).state_dict()
    assert checkpoint.names() == frozenset(theirs)
    assert len(set(checkpoint.files.values())) == (1 if shard_size == "1GB" else len(list(tmp_path.glob("model-*"))))
    for name, expected in theirs.items():
        tensor = checkpoint.tensor(name)
        assert tensor.dtype == torch.float32
        assert torch.equal(tensor, expected)
        assert checkpoint.tensor_shape(name) == tuple(expected.shape)


def test_identity(tmp_path: Path) -> None:
    folder = tiny_gpt2(tmp_path / "My model (v2)")
    local = Checkpoint.open(folder)
    assert (local.name, local.source, local.revision) == ("My-model-v2", str(folder), "")
    named = Checkpoint.open(folder, name="gpt2", source="openai-community/gpt2", revision="abc")
    assert (named.name, named.source, named.revision) == ("gpt2", "openai-community/gpt2", "abc")
    assert hash(named) != hash(local)


@pytest.mark.parametrize(("text", "name"), [
    ("gpt2", "gpt2"), ("SmolLM2-135M.Q4_1", "SmolLM2-135M.Q4_1"), ("../x y", "x-y"), ("-/-", "model"), ("", "model"),
    ("日本", "model"), (".hidden", "hidden"), ("a" * 200, "a" * 96), ("a/b?c#d", "a-b-c-d"), ("model.", "model"),
    ("a" * 96 + ".md", "a" * 96), ("demo", "demo-model"), ("demo.", "demo-model"), ("demos", "demos"),
])  # fmt: skip
def test_safe_name(text: str, name: str) -> None:
    assert safe_name(text) == name


def test_weights_hash_follows_the_contents(tmp_path: Path) -> None:
    first = Checkpoint.open(tiny_gpt2(tmp_path / "a", shard_size="30KB"))
    again = Checkpoint.open(tiny_gpt2(tmp_path / "b", shard_size="30KB"))
    other = Checkpoint.open(tiny_gpt2(tmp_path / "c", shard_size="30KB", seed=1))
    assert first.weights_hash() == again.weights_hash() != other.weights_hash()
    lines = "".join(
        f"{hashlib.sha256(path.read_bytes()).hexdigest()}  {path.name}\n"
        for path in sorted(first.folder.glob("*.safetensors"))
    )
    assert first.weights_hash() == hashlib.sha256(lines.encode()).hexdigest()


def test_the_single_file_wins_over_a_left_over_index(tmp_path: Path) -> None:
    tiny_gpt2(tmp_path, shard_size="30KB")
    tiny_gpt2(tmp_path / "single")
    (tmp_path / "single" / "model.safetensors").rename(tmp_path / "model.safetensors")
    assert set(Checkpoint.open(tmp_path).files.values()) == {tmp_path / "model.safetensors"}


def edit_tensor(folder: Path, name: str, change: Callable[[torch.Tensor], torch.Tensor | None]) -> None:
    tensors = load_file(folder / "model.safetensors")
    changed = change(tensors.pop(name))
    if changed is not None:
        tensors[name] = changed
    save_file(tensors, folder / "model.safetensors", metadata={"format": "pt"})


@pytest.mark.parametrize("value", [float("nan"), float("inf"), -float("inf")])
def test_values_that_are_not_finite(tmp_path: Path, value: float) -> None:
    edit_tensor(
        tiny_gpt2(tmp_path, dtype=torch.float16), WTE, lambda tensor: tensor.index_fill(0, torch.tensor(3), value)
    )
    with pytest.raises(BadWeights, match=f"{WTE}.* 32 values that are not finite"):
        Checkpoint.open(tmp_path).tensor(WTE)


@pytest.mark.parametrize("dtype", [torch.int8, torch.uint8, torch.bool, torch.float8_e4m3fn])
def test_quantised_tensors_are_refused(tmp_path: Path, dtype: torch.dtype) -> None:
    edit_tensor(tiny_gpt2(tmp_path), WTE, lambda tensor: tensor.to(dtype))
    with pytest.raises(BadWeights, match=f"{WTE}.*{dtype}"):
        Checkpoint.open(tmp_path).tensor(WTE)


def test_a_missing_tensor(tmp_path: Path) -> None:
    edit_tensor(tiny_gpt2(tmp_path), WTE, lambda _: None)
    checkpoint = Checkpoint.open(tmp_path)
    for read in (checkpoint.tensor, checkpoint.tensor_shape):
        with pytest.raises(BadWeights, match=f"no tensor {WTE}"):
            read(WTE)


def write(name: str, content: bytes | float) -> Callable[[Path], None]:
    """Another content, or a share of the one that is there."""

    def damage(folder: Path) -> None:
        path = folder / name
        old = path.read_bytes()
        path.write_bytes(content if isinstance(content, bytes) else old[: int(len(old) * content)])

    return damage


def only_pickle(folder: Path) -> None:
    (folder / "model.safetensors").unlink()
    (folder / "pytorch_model.bin").write_bytes(b"\x80\x04.")


def only_gguf(folder: Path) -> None:
    (folder / "config.json").unlink()
    (folder / "model.Q4.gguf").write_bytes(b"GGUF")


def index(weight_map: object) -> Callable[[Path], None]:
    def damage(folder: Path) -> None:
        (folder / "model.safetensors").unlink()
        (folder / "model.safetensors.index.json").write_text(json.dumps({"weight_map": weight_map}))

    return damage


@pytest.mark.parametrize(("damage", "error", "said"), [
    (write("model.safetensors", 0.9), BadWeights, "model.safetensors is not a complete"),
    (write("model.safetensors", 0), BadWeights, "not a complete"),
    (write("model.safetensors", b"PK\x03\x04" + bytes(64)), BadWeights, "not a complete"),
    (lambda folder: (folder / "model.safetensors").unlink(), NoSafetensors, "has no model.safetensors"),
    (only_pickle, NoSafetensors, "only pickled weights.*pytorch_model.bin.*never loaded.*save_pretrained"),
    (lambda folder: (folder / "config.json").unlink(), SourceNotFound, "no config.json"),
    (only_gguf, SourceNotFound, "model.Q4.gguf"),
    (write("config.json", b"{"), BadWeights, "config.json cannot be read"),
    (write("config.json", b"[]"), BadWeights, "config.json holds list"),
    (write("config.json", b'{"n_embd": NaN}'), BadWeights, "NaN"),
    (write("config.json", b"\xff\xfe\x00"), BadWeights, "config.json cannot be read"),
    (index({"a": "model-1.safetensors"}), BadWeights, "model-1.safetensors, which is missing"),
    (index({"a": "../other/model.safetensors"}), BadWeights, "not a safetensors file of the same folder"),
    (index({}), BadWeights, "no weight_map"),
])  # fmt: skip
def test_damaged_folders(tmp_path: Path, damage: Callable[[Path], None], error: type[WeightsError], said: str) -> None:
    damage(tiny_gpt2(tmp_path))
    with pytest.raises(error, match=said):
        Checkpoint.open(tmp_path)


def test_no_such_folder(tmp_path: Path) -> None:
    with pytest.raises(SourceNotFound, match="no folder"):
        Checkpoint.open(tmp_path / "nothing")


def test_a_pickle_beside_the_safetensors_is_never_opened(tmp_path: Path) -> None:
    tiny_gpt2(tmp_path)
    (tmp_path / "pytorch_model.bin").write_bytes(b"cos\nsystem\n(S'exit 1'\ntR.")
    checkpoint = Checkpoint.open(tmp_path)
    assert {path.name for path in checkpoint.files.values()} == {"model.safetensors"}


def test_a_path_that_is_no_text_can_still_be_written_down(tmp_path: Path) -> None:
    folder = tiny_gpt2(tmp_path / "here")
    assert Checkpoint.open(folder, source="/caf\udce9").source == r"/caf\udce9"
