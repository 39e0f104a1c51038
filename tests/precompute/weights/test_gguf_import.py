"""GGUF files become Hub folders that compute what the original computes; broken ones are named and refused."""

import json
import os
import struct
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import gguf
import numpy as np
import pytest
import torch
from safetensors.torch import load_file
from transformers import LlamaConfig
from transformers import modeling_gguf_pytorch_utils as gguf_utils
from transformers.modeling_rope_utils import ROPE_INIT_FUNCTIONS

from lexiscope.precompute.errors import BadWeights, DiskFull, UnsupportedArchitecture, WeightsError
from lexiscope.precompute.weights.architectures import describe
from lexiscope.precompute.weights.checkpoint import Checkpoint
from lexiscope.precompute.weights.gguf.convert import convert
from lexiscope.precompute.weights.sources import resolve
from tests.precompute.weights.gguf_files import write_gguf
from tests.support.families import FAMILIES
from tests.support.models import load, tiny_gpt2, tiny_llama
from tests.support.small_disk import small_disk

TOKENS = torch.tensor([[5, 300, 17, 256, 100, 5, 42]])


def logits(folder: Path) -> torch.Tensor:
    with torch.no_grad():
        result: torch.Tensor = load(folder)(TOKENS).logits
    return result


def converted(path: Path, folder: Path) -> Path:
    folder.mkdir()
    convert(path, folder)
    return folder


@pytest.mark.parametrize(("make", "sizes"), [
    (tiny_llama, {}),
    (tiny_llama, {"tied": False, "n_kv_heads": 4}),
    (tiny_llama, {"n_heads": 3, "n_kv_heads": 1, "d_model": 24, "d_head": 16}),
    (tiny_llama, {"biases": True}), (tiny_gpt2, {"biases": True}),
    (tiny_gpt2, {"tied": False, "d_mlp": 40}),
    (FAMILIES["qwen2"].save, {"vocab_size": 512}), (FAMILIES["qwen3"].save, {"vocab_size": 512}),
])  # fmt: skip
def test_the_same_logits_and_the_same_tensors(tmp_path: Path, make: Callable[..., Path], sizes: dict[str, Any]) -> None:
    original = make(tmp_path / "hub", **sizes)
    ours = converted(write_gguf(original, tmp_path / "m.gguf"), tmp_path / "ours")
    torch.testing.assert_close(logits(ours), logits(original), rtol=0, atol=0)
    theirs = load_file(original / "model.safetensors")
    checkpoint = Checkpoint.open(ours)
    assert checkpoint.names() == set(theirs)
    assert all(torch.equal(checkpoint.tensor(name), theirs[name]) for name in theirs)
    assert describe(checkpoint).shape == describe(Checkpoint.open(original)).shape


@pytest.mark.parametrize("kind", ["BF16", "Q8_0", "Q4_1"])
def test_quantised_values_are_what_transformers_reads(tmp_path: Path, kind: str) -> None:
    original = tiny_llama(tmp_path / "hub", d_mlp=64)
    path = write_gguf(original, tmp_path / "m.gguf", quantisation=gguf.GGMLQuantizationType[kind])
    checkpoint = Checkpoint.open(converted(path, tmp_path / "ours"))
    read: Any = gguf_utils.load_gguf_checkpoint
    theirs = read(str(path), return_tensors=True, model_to_load=load(original))["tensors"]
    assert {name for name in checkpoint.names() if "proj" in name} <= set(theirs)
    for name in checkpoint.names():
        assert torch.equal(checkpoint.tensor(name), theirs[name].float())


def test_a_repeated_embedding_is_a_tied_model(tmp_path: Path) -> None:
    original = tiny_gpt2(tmp_path / "hub")
    copy = load_file(original / "model.safetensors")["transformer.wte.weight"].numpy()
    folder = converted(write_gguf(original, tmp_path / "m.gguf", tensors={"output.weight": copy}), tmp_path / "ours")
    assert describe(Checkpoint.open(folder)).shape.tied
    assert "lm_head.weight" not in Checkpoint.open(folder).names()


def llama3_factors(factor: float) -> np.ndarray[Any, np.dtype[np.float32]]:
    rope = {"rope_type": "llama3", "factor": factor, "low_freq_factor": 1.0, "high_freq_factor": 4.0,
            "original_max_position_embeddings": 8192, "rope_theta": 10000.0}  # fmt: skip
    config = LlamaConfig(
        max_position_embeddings=131072, hidden_size=64, num_attention_heads=1, head_dim=64, rope_parameters=rope
    )
    scaled = ROPE_INIT_FUNCTIONS["llama3"](config, "cpu")[0]
    return (10000.0 ** -(torch.arange(0, 64, 2) / 64) / scaled).numpy().astype(np.float32)


def test_llama_3_positions(tmp_path: Path) -> None:
    original = tiny_llama(tmp_path / "hub", n_heads=1, n_kv_heads=1, d_model=64)
    path = write_gguf(original, tmp_path / "m.gguf", tensors={"rope_freqs.weight": llama3_factors(8.0)})
    config = json.loads((converted(path, tmp_path / "ours") / "config.json").read_text())
    assert (config["rope_scaling"]["rope_type"], config["rope_scaling"]["factor"]) == ("llama3", 8.0)


def test_linear_positions(tmp_path: Path) -> None:
    fields = {"llama.rope.scaling.type": "linear", "llama.rope.scaling.factor": 4.0}
    path = write_gguf(tiny_llama(tmp_path / "hub"), tmp_path / "m.gguf", fields=fields)
    folder = converted(path, tmp_path / "ours")
    assert json.loads((folder / "config.json").read_text())["rope_scaling"] == {"rope_type": "linear", "factor": 4.0}


NAN = np.full((32, 32), np.nan, dtype=np.float32)


@pytest.mark.parametrize(("change", "error", "said"), [
    ({"fields": {"general.architecture": "mamba"}}, UnsupportedArchitecture, "mamba.*gpt2, llama, qwen2"),
    ({"fields": {"llama.rope.scaling.type": "yarn"}}, UnsupportedArchitecture, "yarn"),
    ({"tensors": {"rope_freqs.weight": np.arange(1, 5, dtype=np.float32)}}, UnsupportedArchitecture, "rotary"),
    ({"tensors": {"blk.0.ffn_gate_inp.weight": NAN}}, UnsupportedArchitecture, "ffn_gate_inp"),
    ({"tensors": {"blk.1.ffn_up.weight": None}}, BadWeights, "no tensor blk.1.ffn_up.weight"),
    ({"tensors": {"blk.1.attn_q.weight": NAN}}, BadWeights, "blk.1.attn_q.weight.*not finite"),
    ({"tensors": {"blk.1.attn_v.weight": np.ones((8, 32), np.float32)}}, BadWeights, r"v_proj.*\(8, 32\)"),
    ({"tensors": {"blk.0.attn_q.weight": np.ones((31, 32), np.float32)}}, BadWeights, "attn_q.weight"),
    ({"fields": {"llama.block_count": 3}}, BadWeights, "blk.2"),
    ({"fields": {"llama.block_count": 2**31}}, BadWeights, "block_count|no tensor"),
    ({"fields": {"llama.feed_forward_length": [48, 48]}}, BadWeights, "feed_forward_length"),
    ({"fields": {"split.count": 3}}, BadWeights, "one part of 3"),
    ({"fields": {"tokenizer.ggml.tokens": None}}, BadWeights, "no tokens for 481"),
    ({"pre": "tekken"}, BadWeights, "tekken.*smollm"),
])  # fmt: skip
def test_files_that_cannot_be_used(
    tmp_path: Path, change: dict[str, Any], error: type[WeightsError], said: str
) -> None:
    path = write_gguf(tiny_llama(tmp_path / "hub"), tmp_path / "m.gguf", **change)
    with pytest.raises(error, match=said):
        resolve(str(path), cache=tmp_path / "cache")
    assert not [found for found in (tmp_path / "cache" / "converted").iterdir() if found.suffix != ".lock"]


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    folder = tmp_path_factory.mktemp("gguf")
    return write_gguf(tiny_llama(folder / "hub"), folder / "m.gguf").read_bytes()


@pytest.mark.parametrize("keep", [0, 3, 7, 23, 400, 12_000, 60_000, -1])
def test_truncated_files(tmp_path: Path, whole: bytes, keep: int) -> None:
    path = tmp_path / "m.gguf"
    path.write_bytes(whole[:keep])
    with pytest.raises(BadWeights, match=r"m\.gguf is not a"):
        convert(path, tmp_path)


@pytest.mark.parametrize("seed", range(10))
def test_flipped_bytes_of_the_header_never_crash(tmp_path: Path, whole: bytes, seed: int) -> None:
    """Whatever the header says, the answer is a conversion or an error of ours: no traceback, no endless loop."""
    random = np.random.default_rng(seed)
    data = bytearray(whole)
    for place in random.integers(0, 1500, size=4):
        data[place] = int(random.integers(256))
    path = tmp_path / "m.gguf"
    path.write_bytes(data)
    with suppress(WeightsError):
        convert(path, tmp_path)


@pytest.mark.parametrize("content", [
    b"PK\x03\x04" + bytes(100),
    b"GGUF" + struct.pack("<IQQ", 99, 0, 0),
    b"GGUF" + struct.pack("<IQQ", 3, 2**60, 0),
    b"GGUF" + struct.pack("<IQQ", 3, 0, 2**60),
    b"GGUF" + struct.pack("<IQQ", 3, 0, 1) + struct.pack("<Q", 1) + b"k" + struct.pack("<IIQ", 9, 5, 2**60),
    b"GGUF" + struct.pack("<IQQ", 3, 0, 1) + struct.pack("<Q", 2**63) + b"k",
    b"GGUF" + struct.pack("<IQQ", 3, 0, 1) + struct.pack("<Q", 1) + b"k" + struct.pack("<IIQ", 9, 9, 1) * 5000,
])  # fmt: skip
def test_hostile_files(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "m.gguf").write_bytes(content)
    with pytest.raises(BadWeights, match=r"m\.gguf is not a"):
        convert(tmp_path / "m.gguf", tmp_path)


def test_a_full_disk_leaves_nothing(tmp_path: Path) -> None:
    path = write_gguf(tiny_llama(tmp_path / "hub", d_model=64), tmp_path / "m.gguf")
    with small_disk(40_000), pytest.raises(DiskFull, match="Free some space"):
        resolve(str(path), cache=tmp_path / "cache")
    assert [found.suffix for found in (tmp_path / "cache" / "converted").iterdir()] == [".lock"]
    assert resolve(str(path), cache=tmp_path / "cache").names()


def test_converted_bytes_are_always_the_same(tmp_path: Path) -> None:
    path = write_gguf(tiny_llama(tmp_path / "hub"), tmp_path / "m.gguf")
    first, second = (converted(path, tmp_path / name) for name in "ab")
    assert sorted(os.listdir(first)) == sorted(os.listdir(second))
    assert all((first / name).read_bytes() == (second / name).read_bytes() for name in os.listdir(first))
