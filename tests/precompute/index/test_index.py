"""Opening an index: damaged, foreign and vanishing files, which never stop the others; layers that appear."""

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from lexiscope.precompute.build.shard_writer import write_piece
from lexiscope.precompute.errors import IndexMissing, NewerFormat, NotBuilt, NotFound, ShardDamaged
from lexiscope.precompute.index.index import Index
from lexiscope.precompute.index.index_files import metadata
from lexiscope.precompute.index.layout import Piece
from lexiscope.precompute.index.manifest import MANIFEST, Manifest
from lexiscope.precompute.index.tensor_file import write_tensors
from tests.support.synthetic import (
    D_VOCAB,
    GPT2,
    PAIRS,
    K,
    add_layer,
    make_manifest,
    rewrite_shard,
    shard_arrays,
    vocabulary_arrays,
    write_index,
)


@pytest.fixture(scope="module")
def half_built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("data") / "tiny"
    write_index(folder, make_manifest(), layers=(1, 3))
    return folder


@pytest.fixture
def folder(half_built: Path, tmp_path: Path) -> Path:
    """A copy that a test may harm."""
    return Path(shutil.copytree(half_built, tmp_path / "tiny"))


@pytest.mark.parametrize(("read", "said"), [
    (lambda shard: shard.vector("ff_gate", 0, "dot"), "kind 'ff_gate': there are ff_key, "),
    (lambda shard: shard.vector("ff_key", -1, "dot"), "ff_key -1: layer 1 has ff_key 0 to 5"),
    (lambda shard: shard.vector("w_o", 8, "dot"), "w_o 8: layer 1 has w_o 0 to 7"),
    (lambda shard: shard.vector("ff_up", 0, "dot"), "kind 'ff_up': there are ff_key, ff_value, w_q"),
    (lambda shard: shard.vector("ff_key", 0, "l2"), "lens 'l2': there are dot, cosine"),
    (lambda shard: shard.similarity(6, "dot"), "neuron 6: layer 1 has neuron 0 to 5"),
    (lambda shard: shard.subhead_similarity("vo", 1, 4, "dot"), "subhead 4: layer 1 has subhead 0 to 3"),
    (lambda shard: shard.subhead_similarity("ov", 1, 3, "dot"), "similarity 'ov': there are ff, vo, qk"),
    (lambda shard: shard.heads.pairs("ov", 0, "dot", "all", "top"), "matrix 'ov': there are vo, qk"),
    (lambda shard: shard.heads.pairs("vo", 2, "dot", "all", "top"), "head 2: layer 1 has head 0 to 1"),
    (lambda shard: shard.heads.pairs("vo", 0, "dot", "some", "top"), "preset 'some': there are all, distinct, words"),
    (lambda shard: shard.heads.pairs("vo", 0, "dot", "all", "left"), "end 'left': there are top, bottom"),
])  # fmt: skip
def test_what_does_not_exist_says_what_does(folder: Path, read: Callable[[Any], Any], said: str) -> None:
    with pytest.raises(NotFound, match=said):
        read(Index.open(folder).shard(1))


def test_layers_that_are_not_built_and_layers_there_are_not(folder: Path) -> None:
    index = Index.open(folder)
    assert index.layers == (1, 3)
    ready = r"layer 0 of tiny is not built yet: 2 of 4 layers are ready \(1, 3\)\. "
    with pytest.raises(NotBuilt, match=ready + "If no build is running, `lexiscope precompute someone/tiny`"):
        index.shard(0)
    for layer in (-1, 4):
        with pytest.raises(NotFound, match=f"layer {layer}: tiny has layers 0 to 3"):
            index.shard(layer)


def flip(path: Path, position: int) -> None:
    content = bytearray(path.read_bytes())
    content[position] ^= 1
    path.unlink()
    path.write_bytes(content)


def cut(path: Path, length: int) -> None:
    path.write_bytes(path.read_bytes()[:length])


def empty(path: Path) -> None:
    """As after a loss of power: the file has its length and its beginning, and nothing else was written."""
    data = path.read_bytes()
    start = 8 + int.from_bytes(data[:8], "little")
    path.write_bytes(data[:start] + bytes(len(data) - start))


def swap(path: Path, other: Path) -> None:
    shutil.copy(other, path)


def newer(path: Path) -> None:
    path.write_bytes(path.read_bytes().replace(b'"format":"3"', b'"format":"9"'))


def become_folder(path: Path) -> None:
    path.unlink()
    path.mkdir()


def misstate_length(path: Path) -> None:
    manifest = Manifest.load(path.parent)
    manifest.with_entry(Piece("lists", 1), manifest.shards[1].model_copy(update={"bytes": 77})).save(path.parent)


def misplace_tokens(path: Path) -> None:
    manifest, arrays = Manifest.load(path.parent), vocabulary_arrays(GPT2)
    arrays["token.offsets"][5] = 2**31
    write_piece(path.parent, manifest, Piece("vocabulary"), arrays).save(path.parent)


@pytest.mark.parametrize(("harm", "error", "said"), [
    (lambda path: cut(path, 1000), ShardDamaged, "is cut short"),
    (lambda path: flip(path, 200), ShardDamaged, "header"),
    (lambda path: flip(path, 5), ShardDamaged, "claims a header"),
    (empty, ShardDamaged, "inverted.offsets do not fit"),
    (newer, NewerFormat, "format 9.*Upgrade lexiscope"),
    (lambda path: path.unlink(), ShardDamaged, "is missing. Run `lexiscope precompute someone/tiny`"),
    (become_folder, ShardDamaged, "not a regular file"),
    (misstate_length, ShardDamaged, "bytes, the manifest says 77"),
    (lambda path: swap(path, path.with_name(Piece("lists", 3).file(1))), ShardDamaged, "is layer 3, not layer 1"),
    (lambda path: swap(path, path.with_name(Piece("vocabulary").file(1))), ShardDamaged, "belongs to another build"),
    (lambda path: swap(path, path.with_name(MANIFEST)), ShardDamaged, "claims a header"),
])  # fmt: skip
def test_a_harmed_shard_is_named_and_the_others_serve(
    folder: Path, harm: Callable[[Path], None], error: type[Exception], said: str
) -> None:
    path = folder / Piece("lists", 1).file(1)
    harm(path)
    index = Index.open(folder)
    assert index.layers == (3,)
    assert index.faults.keys() == {1}
    for _ in range(2):
        with pytest.raises(error, match=said) as caught:
            index.shard(1)
        assert str(path) in str(caught.value)
        assert "`lexiscope precompute someone/tiny`" in str(caught.value)
    index.shard(3).vector("ff_key", 0, "dot")


@pytest.mark.parametrize(("foreign", "said"), [
    (make_manifest(model="other"), "'model': 'other'"),
    (make_manifest().with_changes(revision="1"), "'build'"),
])  # fmt: skip
def test_a_shard_of_another_build(folder: Path, tmp_path: Path, foreign: Manifest, said: str) -> None:
    """The sizes may even agree, as those of two revisions of one model do."""
    write_index(tmp_path / "foreign", foreign, layers=(1,))
    mine = Manifest.load(folder)
    swap(folder / Piece("lists", 1).file(1), tmp_path / "foreign" / Piece("lists", 1).file(1))
    theirs = Manifest.load(tmp_path / "foreign").shards[1]
    mine.with_entry(Piece("lists", 1), theirs).save(folder)
    index = Index.open(folder)
    assert index.layers == (3,)
    with pytest.raises(ShardDamaged, match=f"layer-1.safetensors belongs to another build: .*{said}"):
        index.shard(1)


def test_a_shard_whose_arrays_do_not_fit_the_manifest(folder: Path) -> None:
    manifest = Manifest.load(folder)
    whole = shard_arrays(GPT2)
    changes: list[tuple[dict[str, NDArray[Any]], str]] = [
        ({name: array for name, array in whole.items() if name != "vo.count"}, "it lacks the array vo.count"),
        (whole | {"ff_key.ids": whole["ff_key.ids"].astype(np.uint32)}, "ff_key.ids is uint32"),
        (whole | {"ff_key.norm": whole["ff_key.norm"][:-1]}, r"ff_key.norm is float32 \[5\], not float32 \[6\]"),
        (whole | {"inverted.rank": whole["inverted.rank"].astype(np.uint16)}, "inverted.rank"),
        (whole | {"paired.place": whole["paired.place"][:, :3]}, "paired.place"),
    ]
    for arrays, said in changes:
        _, n_bytes = write_tensors(folder / Piece("lists", 1).file(1), arrays, metadata(manifest, Piece("lists", 1)))
        entry = manifest.shards[1].model_copy(update={"bytes": n_bytes})
        manifest.with_entry(Piece("lists", 1), entry).save(folder)
        with pytest.raises(ShardDamaged, match=f"does not fit the manifest: .*{said}"):
            Index.open(folder).shard(1)
        with pytest.raises(TypeError, match=said):
            write_piece(folder, manifest, Piece("lists", 1), arrays)


def spoil(name: str, value: Any, at: Any = ...) -> Callable[[dict[str, NDArray[Any]]], None]:
    def change(arrays: dict[str, NDArray[Any]]) -> None:
        arrays[name][at] = value

    return change


def read_vector(shard: Any) -> None:
    shard.vector("w_v", 2, "dot")


def read_pairs(shard: Any) -> None:
    shard.heads.pairs("vo", 0, "dot", "all", "top")


def read_readability(shard: Any) -> None:
    shard.heads.readabilities("vo", 0, "dot", "all")


def read_subhead(shard: Any) -> None:
    shard.subhead_similarity("qk", 1, 2, "dot")


def read_nothing(shard: Any) -> None:
    pass


@pytest.mark.parametrize(("change", "read", "said"), [
    (spoil("w_v.ids", D_VOCAB), read_vector, rf"w_v 2 \(dot, top\) lists token {D_VOCAB}; the last"),
    (spoil("w_v.ids", 65535, (2, 0, 1, -1)), read_vector, "lists token 65535"),
    (spoil("w_v.scores", np.nan, (2, 0, 0, 3)), read_vector, "no number"),
    (spoil("w_v.norm", np.nan), read_vector, "norm of w_v 2"),
    (spoil("w_v.coherence", 1.1, (2, 0, 0)), read_vector, "coherence of w_v 2 is 1.1"),
    (spoil("vo.coherence", 7, (0, 0, 0, 0)), read_pairs, "coherence of vo of head 0 is 7.0"),
    (spoil("vo.readability", 2, (0, 0, 0, 0)), read_readability, "readability of vo of head 0 is 2.0"),
    (spoil("ff.similarity", np.nan), lambda shard: shard.similarity(0, "dot"), "similarity of neuron 0 is nan"),
    (spoil("qk.similarity", -1, (1, 2)), read_subhead, "the similarity of qk of head 1, subhead 2, is -1.0"),
    (spoil("vo.ids", D_VOCAB), read_pairs, r"vo of head 0 \(dot, all, top\) lists token"),
    (spoil("vo.scores", np.nan), read_pairs, "no number"),
    (spoil("vo.count", PAIRS + 1), read_pairs, f"claims {PAIRS + 1} pairs in a list of {PAIRS}"),
    (spoil("inverted.offsets", 2**32 - 1), read_nothing, "inverted.offsets do not fit"),
    (spoil("inverted.offsets", 3, (0, 0, 0)), read_nothing, "inverted.offsets do not fit"),
    (spoil("paired.offsets", 0, (1, 1, -1)), read_nothing, "paired.offsets do not fit"),
    (spoil("w_v.ids", 7), read_vector, r"w_v 2 \(dot, top\) lists token 7 twice"),
    (spoil("vo.ids", 0), read_pairs, r"vo of head 0 \(dot, all, top\) lists the pair \[0, 0\] twice"),
])  # fmt: skip
def test_impossible_values_are_damage_and_never_another_token(
    folder: Path, change: Callable[[dict[str, NDArray[Any]]], None], read: Callable[[Any], None], said: str
) -> None:
    arrays = {name: array.copy() for name, array in shard_arrays(GPT2, seed=1).items()}
    change(arrays)
    rewrite_shard(folder, Manifest.load(folder), 1, arrays)
    index = Index.open(folder)
    with pytest.raises(ShardDamaged, match=said) as caught:
        read(index.shard(1))
    assert "layer-1.safetensors" in str(caught.value)
    read_vector(index.shard(3))


@pytest.mark.parametrize(("harm", "error", "said"), [
    (lambda path: cut(path, 500), ShardDamaged, "cut short"),
    (lambda path: path.unlink(), ShardDamaged, "is missing"),
    (newer, NewerFormat, "Upgrade"),
    (misplace_tokens, ShardDamaged, "offsets of the tokens"),
    (lambda path: swap(path, path.with_name(Piece("lists", 1).file(1))), ShardDamaged, "belongs to another build"),
])  # fmt: skip
def test_an_index_without_its_vocabulary(
    folder: Path, harm: Callable[[Path], None], error: type[Exception], said: str
) -> None:
    harm(folder / Piece("vocabulary").file(1))
    with pytest.raises(error, match=said) as caught:
        Index.open(folder)
    assert Piece("vocabulary").file(1) in str(caught.value)


def test_files_that_vanish_after_opening(folder: Path) -> None:
    """A shard in hand is read to its end; asking for it again says that it is gone."""
    index = Index.open(folder)
    shard = index.shard(1)
    shutil.rmtree(folder)
    stored = shard_arrays(GPT2, seed=1)["ff_key.ids"][0, 0, 0].tolist()
    assert shard.vector("ff_key", 0, "dot").ids[0].tolist() == stored
    with pytest.raises(ShardDamaged, match=r"layer-1\.safetensors is missing"):
        index.shard(1)
    assert index.tokens.raw(65) == b"A"
    with pytest.raises(IndexMissing):
        index.refreshed()


def test_a_layer_appears_when_it_is_finished(folder: Path) -> None:
    index = Index.open(folder)
    assert index.refreshed() is index
    add_layer(folder, index.manifest, 2).save(folder)
    assert index.layers == (1, 3)
    fresh = index.refreshed()
    assert fresh.layers == (1, 2, 3)
    assert fresh.refreshed() is fresh
    assert fresh.shard(1) is index.shard(1)
    fresh.shard(2).vector("ff_key", 0, "dot")


def test_a_rebuild_replaces_every_layer(folder: Path) -> None:
    index = Index.open(folder)
    write_index(folder, make_manifest(k=K - 2, generation=2), layers=(3,))
    fresh = index.refreshed()
    assert fresh.layers == (3,)
    assert len(fresh.shard(3).vector("ff_key", 0, "dot").ids[0]) == K - 2
    assert len(index.shard(3).vector("ff_key", 0, "dot").ids[0]) == K


@pytest.mark.parametrize("coherence", [np.nan, 1.0005, -1])
def test_coherences_at_the_edge_of_what_is_possible(folder: Path, coherence: float) -> None:
    arrays = shard_arrays(GPT2, seed=1)
    for name in ("w_v.coherence", "vo.coherence"):
        arrays[name][:] = coherence
    rewrite_shard(folder, Manifest.load(folder), 1, arrays)
    shard = Index.open(folder).shard(1)
    found = shard.vector("w_v", 2, "dot").coherence_bottom, shard.heads.pairs("vo", 0, "dot", "all", "top").coherence
    assert np.allclose(found, coherence, equal_nan=True)


def test_an_index_in_the_working_folder(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(folder)
    (folder / Piece("lists", 1).file(1)).unlink()
    with pytest.raises(ShardDamaged, match="`lexiscope precompute someone/tiny`"):
        Index.open(Path()).shard(1)
