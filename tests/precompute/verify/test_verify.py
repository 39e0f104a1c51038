"""An index that was tampered with, in its files or with a manifest that vouches for them, does not pass.
Each fault names what is wrong, where, and what to do."""

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from safetensors.torch import load_file, save_file

from precompute.build.shard_writer import write_neighbours
from precompute.errors import LexiscopeError
from precompute.index.data_folder import open_model
from precompute.index.index import Index
from precompute.index.manifest import MANIFEST, TOKENIZER
from precompute.index.tensor_file import TensorFile
from precompute.verify.sample import check_sample, new_seed
from precompute.verify.sums import check_sums
from precompute.weights.architectures import describe
from precompute.weights.architectures.base import Model
from precompute.weights.checkpoint import Checkpoint
from tests.support.builds import copy, quick_build, small_gpt2
from tests.support.models import tiny_llama
from tests.support.synthetic import rewrite_shard

pytestmark = pytest.mark.slow

Arrays = dict[str, NDArray[Any]]


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Model:
    return describe(Checkpoint.open(small_gpt2(tmp_path_factory.mktemp("source") / "tiny", n_layers=2)))


@pytest.fixture(scope="module")
def built(model: Model, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return quick_build(model.checkpoint.folder, tmp_path_factory.mktemp("built"))


def faults(index: Path, model: Model | None = None) -> list[str]:
    """Everything that is wrong, with a sample of all there is."""
    opened = Index.open(index)
    results = [*check_sums(opened)]
    if model:
        results += check_sample(opened, model, sample=1000, seed=1, rows=1000)
    return [f"{name}: {fault}" for name, fault in results if fault]


def test_good_index(model: Model, built: Path) -> None:
    assert faults(built, model) == []
    names = [name for name, _ in check_sample(Index.open(built), model, sample=2, seed=0)]
    assert len(names) == 1 + 2 * (6 + 1 + 2 + 3)
    assert names == [name for name, _ in check_sample(Index.open(built), model, sample=2, seed=0)]
    assert 0 <= new_seed() < 1 << 31


def test_good_index_with_long_lists(model: Model, tmp_path: Path) -> None:
    """Hubs come from the stored lists then."""
    assert faults(quick_build(model.checkpoint.folder, tmp_path, k=120), model) == []


@pytest.mark.parametrize("small", ["all of them", "all but the embedding", "the embedding"])
def test_good_index_of_tiny_numbers(tmp_path: Path, small: str) -> None:
    """Numbers at and below the least that float32 holds."""
    source = small_gpt2(tmp_path / "tiny", n_layers=1)
    tensors = load_file(source / "model.safetensors")
    for name, tensor in tensors.items():
        if small == "all of them" or ("wte" in name) == (small == "the embedding"):
            tensor *= 1e-43
    save_file(tensors, source / "model.safetensors", {"format": "pt"})
    assert faults(quick_build(source, tmp_path / "data"), describe(Checkpoint.open(source))) == []


def test_untied_grouped_heads(tmp_path: Path) -> None:
    source = tiny_llama(tmp_path / "llama", tied=False, n_layers=1, n_heads=2, n_kv_heads=1, d_model=8, d_mlp=5)
    index = quick_build(source, tmp_path)
    assert faults(index, describe(Checkpoint.open(source))) == []


def _flip(path: Path, at: int) -> None:
    content = bytearray(path.read_bytes())
    content[at] ^= 1
    path.write_bytes(content)


@pytest.mark.parametrize(
    ("name", "damage", "said"),
    [
        ("layer-1.safetensors", lambda path: os.truncate(path, 5000), "cut short"),
        ("layer-1.safetensors", lambda path: _flip(path, -1000), "checksum"),
        ("layer-1.safetensors", lambda path: _flip(path, 8), "header"),
        ("layer-1.safetensors", lambda path: _flip(path, 5), "claims a header"),
        ("layer-1.safetensors", Path.unlink, "missing"),
        ("vocabulary.safetensors", lambda path: _flip(path, 1500), "checksum"),
        ("neighbours.safetensors", lambda path: _flip(path, -100), "checksum"),
        ("neighbours.safetensors", lambda path: _flip(path, 100), "header"),
        ("neighbours.safetensors", Path.unlink, "missing"),
        (TOKENIZER, Path.unlink, "cannot be read"),
        (TOKENIZER, lambda path: _flip(path, 50), "not the model's tokenizer"),
    ],
)
def test_damaged_files(built: Path, tmp_path: Path, name: str, damage: Callable[[Path], None], said: str) -> None:
    index = copy(built, tmp_path)
    damage(index / name)
    (fault,) = faults(index)
    assert str(index / name) in fault
    assert said in fault
    assert "`lexiscope precompute tiny` again" in fault
    if "Delete this file" in fault:
        (index / name).unlink()
    quick_build(Path(Index.open(built).manifest.source), tmp_path)  # what it says to do helps
    assert faults(index) == []


@pytest.mark.parametrize(
    ("name", "old", "new", "said"),
    [
        (MANIFEST, b'"format": 2', b'"format": 7', "Upgrade lexiscope"),
        (MANIFEST, b'"format": 2', b'"format_version": 1', "`lexiscope precompute .*` builds it anew"),
        (MANIFEST, b'"k": 8', b'"k": 7', "fingerprint"),
        (MANIFEST, b'"k"', b'"q"', "k"),
        ("vocabulary.safetensors", b'"format":"2"', b'"format":"3"', "Upgrade lexiscope"),
    ],
)
def test_indexes_that_do_not_open(built: Path, tmp_path: Path, name: str, old: bytes, new: bytes, said: str) -> None:
    path = copy(built, tmp_path) / name
    path.write_bytes(path.read_bytes().replace(old, new, 1))
    with pytest.raises(LexiscopeError, match=said) as caught:
        open_model(tmp_path, "tiny")
    assert str(path) in str(caught.value)
    assert "lexiscope precompute tiny" in str(caught.value)


def test_foreign_manifest(built: Path, tmp_path: Path) -> None:
    copy(built, tmp_path).rename(tmp_path / "mine")
    with pytest.raises(LexiscopeError, match="of another model, tiny"):
        open_model(tmp_path, "mine")


def test_ties_in_another_order(tmp_path: Path) -> None:
    """All tokens are the same: the first ones must be listed, in their order."""
    source = small_gpt2(tmp_path / "tiny", n_layers=1)
    tensors = load_file(source / "model.safetensors")
    tensors["transformer.wte.weight"][:] = tensors["transformer.wte.weight"][0].clone()
    save_file(tensors, source / "model.safetensors", {"format": "pt"})
    index, model = quick_build(source, tmp_path / "data"), describe(Checkpoint.open(source))
    assert faults(index, model) == []
    for name, said in (("w_q.ids", "w_q 1 (dot, top)"), ("vo.ids", "vo of head 0 (dot, all, top)")):
        opened = Index.open(index)
        arrays = {name: np.array(opened.shard(0).array(name)) for name in opened.shard(0).file.tensors}
        ids = arrays[name][1, 0, 0] if name == "w_q.ids" else arrays[name][0, 0, 0, 0]
        ids[[2, 3]] = ids[[3, 2]]
        rewrite_shard(index, opened.manifest, 0, arrays)
        assert any(said in fault for fault in faults(index, model))


@pytest.mark.parametrize("part", ["ids", "scores", "an impossible id"])
def test_nearest_tokens_that_the_weights_do_not_give(model: Model, built: Path, tmp_path: Path, part: str) -> None:
    index = copy(built, tmp_path)
    opened = Index.open(index)
    file = TensorFile(index / "neighbours.safetensors")
    arrays = {name: file.array(name).copy() for name in file.tensors}
    if part == "ids":
        arrays["neighbours.ids"][7, [0, 1]] = arrays["neighbours.ids"][7, [1, 0]]
    elif part == "scores":
        arrays["neighbours.scores"][7] -= 1e-4
    else:
        arrays["neighbours.ids"][7, 3] = 60_000
    opened.manifest.with_changes(neighbours=write_neighbours(index, opened.manifest, arrays)).save(index)
    (fault,) = faults(index, model)
    assert "nearest to" in fault or "nearest tokens of token 7" in fault
    assert "neighbours.safetensors" in fault


def _altered_score(arrays: Arrays) -> None:
    arrays["w_q.scores"][3, 1, 0, 5] *= 1 + 1e-5


def _swapped_ids(arrays: Arrays) -> None:
    ids = arrays["ff_key.ids"][2, 0, 1]
    ids[[3, 4]] = ids[[4, 3]]


def _repeated_id(arrays: Arrays) -> None:
    for part in ("ids", "scores"):
        lists = arrays[f"w_o.{part}"][0, 0, 0]
        lists[1] = lists[0]


def _missing_token(arrays: Arrays) -> None:
    """The best one is gone, the others are true."""
    for part in ("ids", "scores"):
        lists = arrays[f"ff_value.{part}"][1, 0, 0]
        lists[:-1] = lists[1:].copy()


def _altered_norm(arrays: Arrays) -> None:
    arrays["w_k.norm"][1] *= 1.001


def _altered_similarity(arrays: Arrays) -> None:
    arrays["ff.similarity"][3, 1] += 0.01


def _similarity_of_what_is_stored(arrays: Arrays) -> None:
    """Eight tokens of each list, where a hundred count."""
    for neuron, (key, value) in enumerate(zip(arrays["ff_key.ids"], arrays["ff_value.ids"], strict=True)):
        shared = len(set(key[0, 0].tolist()) & set(value[0, 0].tolist()))
        arrays["ff.similarity"][neuron, 0] = shared / (16 - shared)


def _altered_coherence(arrays: Arrays) -> None:
    arrays["w_o.coherence"][2, 1, 0] -= 3e-4


def _altered_pair_coherence(arrays: Arrays) -> None:
    arrays["qk.coherence"][0, 0, 1, 1] -= 3e-4


def _unlisted_tokens(arrays: Arrays) -> None:
    """None of these is a token that one could ask for."""
    arrays["ff_value.ids"][:] = arrays["vo.ids"][:] = 60_000


def _altered_pair_score(arrays: Arrays) -> None:
    arrays["vo.scores"][0, 0, 0, 0, 2] *= 1 - 1e-5


def _turned_pair(arrays: Arrays) -> None:
    arrays["qk.ids"][0, 1, 0, 1, 0] = arrays["qk.ids"][0, 1, 0, 1, 0, ::-1].copy()


def _missing_pair(arrays: Arrays) -> None:
    for part in ("ids", "scores"):
        lists = arrays[f"qk.{part}"][0, 0, 0, 0]
        lists[:-1] = lists[1:].copy()
        lists[-1] = 0
    arrays["qk.count"][0, 0, 0, 0] -= 1


def _missing_best_pair_of_a_full_list(arrays: Arrays) -> None:
    for part in ("ids", "scores"):
        lists = arrays[f"vo.{part}"][0, 1, 1, 0]
        lists[:-1] = lists[1:].copy()


def _pair_of_another_preset(arrays: Arrays) -> None:
    for part in ("ids", "scores", "count"):
        arrays[f"vo.{part}"][0, 0, 2, 0] = arrays[f"vo.{part}"][0, 0, 0, 0]


def _impossible_token(arrays: Arrays) -> None:
    arrays["w_v.ids"][0, 0, 0, 0] = 60_000


def _misled_token(arrays: Arrays) -> None:
    arrays["inverted.vector"][:] = np.roll(arrays["inverted.vector"], 1)


def _forgotten_places(arrays: Arrays) -> None:
    offsets = arrays["paired.offsets"]
    offsets[:, :, 1:-1] = offsets[:, :, :1]  # but for the last token, so that they still end with their array


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (_altered_score, "w_q 3 (cosine, top)"),
        (_swapped_ids, "ff_key 2 (dot, bottom)"),
        (_repeated_id, "w_o 0 (dot, top)"),
        (_missing_token, "ff_value 1 (dot, top)"),
        (_altered_norm, "the norm of w_k 1"),
        (_altered_similarity, "the similarity of neuron 3 (cosine)"),
        (_similarity_of_what_is_stored, "the similarity of neuron"),
        (_altered_coherence, "the coherence of w_o 2 (cosine, top)"),
        (_altered_pair_coherence, "the coherence of qk of head 0 (dot, distinct, bottom)"),
        (_unlisted_tokens, "token 60000"),
        (_altered_pair_score, "vo of head 0 (dot, all, top)"),
        (_turned_pair, "qk of head 0 (cosine, all, bottom)"),
        (_missing_pair, "qk of head 0 (dot, all, top)"),
        (_missing_best_pair_of_a_full_list, "vo of head 0 (cosine, distinct, top)"),
        (_pair_of_another_preset, "vo of head 0 (dot, words, top)"),
        (_impossible_token, "token 60000"),
        (_misled_token, "inverted list"),
        (_forgotten_places, "inverted lists of token"),
    ],
)
def test_lists_that_the_weights_do_not_give(
    model: Model, built: Path, tmp_path: Path, change: Callable[[Arrays], None], said: str
) -> None:
    index = copy(built, tmp_path)
    opened = Index.open(index)
    arrays = {name: np.array(opened.shard(1).array(name)) for name in opened.shard(1).file.tensors}
    change(arrays)
    rewrite_shard(index, opened.manifest, 1, arrays)
    found = faults(index, model)
    assert found
    assert any(said in fault for fault in found), found
    for fault in found:
        assert str(index / "layer-1.safetensors") in fault
        assert "`lexiscope precompute tiny` again" in fault
