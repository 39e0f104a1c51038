"""An index that was tampered with, in its files or with a manifest that vouches for them, does not pass.
Each fault names what is wrong, where, and what to do."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from safetensors.torch import load_file, save_file

from lexiscope.precompute.build.shard_writer import write_piece
from lexiscope.precompute.index.index import Index
from lexiscope.precompute.index.layout import Piece
from lexiscope.precompute.index.manifest import TOKENIZER
from lexiscope.precompute.index.tensor_file import TensorFile
from lexiscope.precompute.verify.sample import check_sample, new_seed
from lexiscope.precompute.weights.architectures import describe
from lexiscope.precompute.weights.checkpoint import Checkpoint
from tests.support.builds import PAIRS, copy, faults, quick_build, small_gpt2
from tests.support.synthetic import rewrite_shard

pytestmark = pytest.mark.slow

Arrays = dict[str, NDArray[Any]]
Change = Callable[[Arrays], None]


def arrays_of(index: Index, layer: int) -> Arrays:
    shard = index.shard(layer)
    return {name: shard.array(name).copy() for name in shard.file.tensors}


@pytest.fixture(scope="module")
def one_layer(source: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return quick_build(source, tmp_path_factory.mktemp("one"), layers=(1,))


def test_good_index(source: Path, built: Path) -> None:
    assert faults(built, source) == []
    model = describe(Checkpoint.open(source))
    names = [name for name, _ in check_sample(Index.open(built), model, sample=2, seed=0)]
    assert len(names) == 3 + 3 * (6 + 6 + 2 + 3 + 2 + 3 + 1)
    assert names == [name for name, _ in check_sample(Index.open(built), model, sample=2, seed=0)]
    assert 0 <= new_seed() < 1 << 31


def test_good_index_with_long_lists(source: Path, tmp_path: Path) -> None:
    """Hubs come from the stored lists then."""
    assert faults(quick_build(source, tmp_path, k=120), source) == []


@pytest.mark.parametrize("small", ["all of them", "all but the embedding", "the embedding"])
def test_good_index_of_tiny_numbers(tmp_path: Path, small: str) -> None:
    """Numbers at and below the least that float32 holds."""
    source = small_gpt2(tmp_path / "tiny", n_layers=1)
    tensors = load_file(source / "model.safetensors")
    for name, tensor in tensors.items():
        if small == "all of them" or ("wte" in name) == (small == "the embedding"):
            tensor *= 1e-43
    save_file(tensors, source / "model.safetensors", {"format": "pt"})
    assert faults(quick_build(source, tmp_path / "data"), source) == []


def flip(path: Path, at: int) -> None:
    content = bytearray(path.read_bytes())
    content[at] ^= 1
    path.write_bytes(content)


@pytest.mark.parametrize(("name", "damage", "said"), [
    ("layer-1.safetensors", lambda path: flip(path, -1000), "checksum"),
    ("vocabulary.safetensors", lambda path: flip(path, 1500), "checksum"),
    ("neighbours.safetensors", lambda path: flip(path, -100), "checksum"),
    (TOKENIZER, lambda path: flip(path, 50), "not the model's tokenizer"),
])  # fmt: skip
def test_damaged_files(
    source: Path, built: Path, tmp_path: Path, name: str, damage: Callable[[Path], None], said: str
) -> None:
    index = copy(built, tmp_path)
    damage(index / name)
    (fault,) = faults(index)
    assert str(index / name) in fault
    assert said in fault
    assert "`lexiscope precompute tiny` again" in fault
    if "Delete this file" in fault:
        (index / name).unlink()
    quick_build(source, tmp_path)  # what it says to do helps
    assert faults(index) == []


def test_ties_in_another_order(tmp_path: Path) -> None:
    """All tokens are the same: the first ones must be listed, in their order."""
    source = small_gpt2(tmp_path / "tiny", n_layers=1)
    tensors = load_file(source / "model.safetensors")
    tensors["transformer.wte.weight"][:] = tensors["transformer.wte.weight"][0].clone()
    save_file(tensors, source / "model.safetensors", {"format": "pt"})
    index = quick_build(source, tmp_path / "data")
    assert faults(index, source) == []
    for name, said in (("w_q.ids", "w_q 1 (dot, top)"), ("vo.ids", "vo of head 0 (dot, all, top)")):
        opened = Index.open(index)
        arrays = arrays_of(opened, 0)
        ids = arrays[name][1, 0, 0] if name == "w_q.ids" else arrays[name][0, 0, 0, 0]
        ids[[2, 3]] = ids[[3, 2]]
        rewrite_shard(index, opened.manifest, 0, arrays)
        assert any(said in fault for fault in faults(index, source))


@pytest.mark.parametrize("part", ["ids", "scores", "an impossible id"])
def test_nearest_tokens_that_the_weights_do_not_give(source: Path, built: Path, tmp_path: Path, part: str) -> None:
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
    write_piece(index, opened.manifest, Piece("neighbours"), arrays).save(index)
    (fault,) = faults(index, source)
    assert "nearest to" in fault or "nearest tokens of token 7" in fault
    assert "neighbours.safetensors" in fault


def test_another_lens_than_the_one_that_reads_best(source: Path, built: Path, tmp_path: Path) -> None:
    index = copy(built, tmp_path)
    manifest = Index.open(index).manifest
    (other,) = {*manifest.lenses} - {manifest.reads_best}
    manifest.with_changes(reads_best=other).save(index)
    (fault,) = faults(index, source, sample=1)
    assert f"says that the lens {other} reads best, and by its lists it is {manifest.reads_best}" in fault


def alter(name: str, at: Any, factor: float = 1, plus: float = 0) -> Change:
    def change(arrays: Arrays) -> None:
        arrays[name][at] = arrays[name][at] * factor + plus

    return change


def put(name: str, at: Any, value: Any) -> Change:
    def change(arrays: Arrays) -> None:
        arrays[name][at] = value

    return change


def swap(name: str, at: Any, one: Any, other: Any) -> Change:
    def change(arrays: Arrays) -> None:
        entries = arrays[name][at]
        entries[[one, other]] = entries[[other, one]]

    return change


def without_first(name: str, at: Any, length: int = 0) -> Change:
    """The best entry is gone, the others are true; of `length` pairs one less is left."""

    def change(arrays: Arrays) -> None:
        for part in ("ids", "scores"):
            entries = arrays[f"{name}.{part}"][at]
            entries[:-1] = entries[1:].copy()
            if length:
                entries[-1] = 0
        if length:
            arrays[f"{name}.count"][at] = length - 1

    return change


def repeat_first(arrays: Arrays) -> None:
    for part in ("ids", "scores"):
        entries = arrays[f"w_o.{part}"][0, 0, 0]
        entries[1] = entries[0]


def similarity_of_what_is_stored(arrays: Arrays) -> None:
    """Eight tokens of each list, where a hundred count."""
    for neuron, (key, value) in enumerate(zip(arrays["ff_key.ids"], arrays["ff_value.ids"], strict=True)):
        shared = len(set(key[0, 0].tolist()) & set(value[0, 0].tolist()))
        arrays["ff.similarity"][neuron, 0, 0] = shared / (16 - shared)


def not_shuffled(arrays: Arrays) -> None:
    arrays["ff.shuffled"][...] = arrays["ff.similarity"]


def pairs_of_another_preset(arrays: Arrays) -> None:
    for part in ("ids", "scores", "count"):
        arrays[f"vo.{part}"][0, 0, 2, 0] = arrays[f"vo.{part}"][0, 0, 0, 0]


def no_direction(arrays: Arrays) -> None:
    for name in ("qk_query", "qk_key"):
        arrays[f"{name}.norm"][3] = 0
    arrays["qk.singular"][0, 3:] = 0


def other_sign(arrays: Arrays) -> None:
    """Of one direction, both sides: as true as before, but not what docs/format.md says."""
    for kind in ("vo_in", "vo_out"):
        for name, sign in (("ids", 1), ("scores", -1), ("coherence", 1)):
            array = arrays[f"{kind}.{name}"]
            array[1] = sign * array[1][:, ::-1]


def misled(arrays: Arrays) -> None:
    arrays["inverted.vector"][:] = np.roll(arrays["inverted.vector"], 1)


def forgotten(arrays: Arrays) -> None:
    offsets = arrays["paired.offsets"]
    offsets[:, :, 1:-1] = offsets[:, :, :1]  # but for the last token, so that they still end with their array


@pytest.mark.parametrize(("change", "said"), [
    (alter("w_q.scores", (3, 1, 0, 5), 1 + 1e-5), "w_q 3 (cosine, top)"),
    (swap("ff_key.ids", (2, 0, 1), 3, 4), "ff_key 2 (dot, bottom)"),
    (repeat_first, "w_o 0 (dot, top)"),
    (without_first("ff_value", (1, 0, 0)), "ff_value 1 (dot, top)"),
    (alter("w_k.norm", 1, 1.001), "the norm of w_k 1"),
    (alter("ff.similarity", (3, 1, 0), plus=0.01), "the similarity of neuron 3 (cosine, top)"),
    (alter("ff.similarity", (3, 0, 1), plus=0.01), "the similarity of neuron 3 (dot, bottom)"),
    (alter("ff.shuffled", (2, 0, 1), plus=0.01), "the shuffled similarity of neuron 2 (dot, bottom)"),
    (alter("vo.similarity", (0, 5, 0, 1), plus=0.01), "the similarity of vo of head 0, subhead 5 (dot, bottom)"),
    (alter("qk.shuffled", (0, 5, 1, 0), plus=0.01), "the shuffled similarity of qk of head 0, subhead 5 (cosine, top)"),
    (not_shuffled, "the shuffled similarity of neuron"),
    (similarity_of_what_is_stored, "the similarity of neuron"),
    (alter("w_o.coherence", (2, 1, 0), plus=-3e-4), "the coherence of w_o 2 (cosine, top)"),
    (alter("qk.coherence", (0, 0, 1, 1), plus=-3e-4), "the coherence of qk of head 0 (dot, distinct, bottom)"),
    (alter("vo.readability", (0, 1, 2, 0), plus=-3e-4), "the readability of vo of head 0 (cosine, words, top)"),
    (put("w_v.ids", (0, 0, 0, 0), 60_000), "token 60000"),  # no token that one could ask for
    (put("vo.ids", ..., 60_000), "token 60000"),
    (alter("vo.scores", (0, 0, 0, 0, 2), 1 - 1e-5), "vo of head 0 (dot, all, top)"),
    (swap("qk.ids", (0, 1, 0, 1, 0), 0, 1), "qk of head 0 (cosine, all, bottom)"),
    (without_first("qk", (0, 0, 0, 0), PAIRS), "qk of head 0 (dot, all, top)"),
    (without_first("vo", (0, 1, 1, 0)), "vo of head 0 (cosine, distinct, top)"),
    (pairs_of_another_preset, "vo of head 0 (dot, words, top)"),
    (alter("vo.singular", (0, 0), 1 + 1e-5), "the singular value of direction 0 of vo of head 0"),
    (alter("qk.singular", (0, 7), 0), "the singular value of direction 7 of qk of head 0"),
    (alter("vo_in.norm", 2, 0), "the norm of direction 2 of vo of head 0"),
    (no_direction, "direction 3 of qk of head 0, of which there is none,"),
    (other_sign, "direction 1 of vo of head 0, vo_in (dot, top)"),
    (alter("qk_key.scores", (4, 1, 0, 5), 1 + 1e-4), "direction 4 of qk of head 0, qk_key (cosine, top)"),
    (swap("qk_query.ids", (4, 0, 1), 3, 4), "direction 4 of qk of head 0, qk_query (dot, bottom)"),
    (alter("vo_out.coherence", (6, 0, 1), plus=-3e-4), "direction 6 of vo of head 0, the coherence of vo_out (dot, bo"),
    (misled, "inverted list"),
    (forgotten, "inverted lists of token"),
])  # fmt: skip
def test_lists_that_the_weights_do_not_give(
    source: Path, one_layer: Path, tmp_path: Path, change: Change, said: str
) -> None:
    index = copy(one_layer, tmp_path)
    opened = Index.open(index)
    arrays = arrays_of(opened, 1)
    change(arrays)
    rewrite_shard(index, opened.manifest, 1, arrays)
    found = faults(index, source)
    assert any(said in fault for fault in found), found
    for fault in found:
        assert str(index / "layer-1.safetensors") in fault
        assert "`lexiscope precompute tiny` again" in fault
