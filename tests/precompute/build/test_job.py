"""What the build job makes of real tiny models: lists as brute force gives them, layer by layer, as much as was asked.
Signals and messages of the command are for test_commands.py."""

from pathlib import Path
from typing import Any

import pytest

from lexiscope.precompute.build.options import BuildOptions, identify
from lexiscope.precompute.errors import BuildError, IndexMissing, NotFound, OptionsDiffer
from lexiscope.precompute.index.index import Index
from lexiscope.precompute.index.layout import shard_size
from lexiscope.precompute.index.manifest import Manifest
from lexiscope.precompute.shape import LENSES
from lexiscope.precompute.weights.architectures import describe
from lexiscope.precompute.weights.checkpoint import Checkpoint
from tests.support.builds import PAIRS, SHARD, K, Listener, contents, copy, faults, quick_build, small_gpt2, stamps
from tests.support.models import tiny_gpt2, tiny_llama


def test_llama_is_what_brute_force_gives(tmp_path: Path) -> None:
    source = tiny_llama(tmp_path / "llama", tied=False, n_layers=1, n_heads=2, n_kv_heads=1, d_model=8, d_mlp=6, seed=3)
    index = quick_build(source, tmp_path / "data")
    assert Index.open(index).layers == (0,)
    assert faults(index, source) == []


def test_upper_layers_come_first_and_serve_at_once(source: Path, built: Path, tmp_path: Path) -> None:
    seen = []

    class Reader(Listener):
        def look(self) -> None:
            index = Index.open(tmp_path / "tiny")
            seen.append(index.layers)
            index.shard(self.layers[-1]).vector("ff_value", 0, "dot")

    with pytest.raises(IndexMissing):
        Index.open(tmp_path / "tiny")
    listener = Reader()
    quick_build(source, tmp_path, listener)
    assert listener.layers == [2, 1, 0]
    assert seen == [(2,), (1, 2), (0, 1, 2)]
    assert contents(tmp_path / "tiny") == contents(built)


def test_some_layers_then_the_rest_on_any_number_of_threads(source: Path, built: Path, tmp_path: Path) -> None:
    index = quick_build(source, tmp_path, layers=(1,), threads=1)
    assert Index.open(index).layers == (1,)
    before = stamps(index)[SHARD]
    listener = Listener()
    quick_build(source, tmp_path, listener, threads=3)
    assert listener.layers == [2, 0]
    assert stamps(index)[SHARD] == before
    assert contents(index) == contents(built)


def test_the_lens_that_reads_best_is_stored_when_all_layers_are_there(
    source: Path, built: Path, tmp_path: Path
) -> None:
    index = quick_build(source, tmp_path, layers=(0, 1))
    assert Index.open(index).manifest.reads_best is None
    quick_build(source, tmp_path)
    finished = Index.open(index).manifest
    measured = Index.open(index)
    measured.manifest.with_changes(reads_best=None).save(index)
    assert measured.refreshed().best_lens == finished.reads_best
    listener = Listener()
    quick_build(source, tmp_path, listener)
    assert (listener.layers, "nothing to do" in listener.text.getvalue()) == ([], False)
    assert contents(index) == contents(built)


def test_same_command_twice_does_nothing_and_says_so(source: Path, built: Path, tmp_path: Path) -> None:
    index = copy(built, tmp_path)
    before = stamps(index)
    listener = Listener()
    quick_build(source, tmp_path, listener)
    assert "nothing to do" in listener.text.getvalue()
    assert stamps(index) == before
    quick_build(source, tmp_path, k=None, pairs=None)  # what is not said is as it was
    assert stamps(index) == before


@pytest.mark.parametrize(("asked", "given"), [
    (BuildOptions(), (100, 500)),
    (BuildOptions(k=10**9, pairs=10**15), (480, 480**2)),
    (BuildOptions(k=1, pairs=1), (1, 1)),
])  # fmt: skip
def test_no_more_is_listed_than_the_vocabulary_has(tmp_path: Path, asked: BuildOptions, given: tuple[int, int]) -> None:
    source = small_gpt2(tmp_path / "tiny", n_layers=1, d_vocab=480)
    manifest = identify(describe(Checkpoint.open(source)), "0" * 64, asked)
    assert (manifest.k, manifest.pairs) == given


def test_sizes_are_at_least_those_of_the_files(source: Path, built: Path) -> None:
    manifest = identify(describe(Checkpoint.open(source)), "0" * 64, BuildOptions(K, PAIRS))
    n_bytes, entries = shard_size(manifest.stored)
    file = Index.open(built).shard(0).file
    assert file.n_bytes - 8192 <= sum(file.array(name).nbytes for name in file.tensors) <= n_bytes
    assert n_bytes < 1.5 * file.n_bytes
    assert entries >= max(file.tensors[f"{name}.rank"].size for name in ("inverted", "paired"))


@pytest.mark.parametrize("options", [{"k": 10**9}, {"pairs": 10**9}])
def test_lists_too_long_for_a_shard_are_refused_at_once(tmp_path: Path, options: dict[str, Any]) -> None:
    source = tiny_gpt2(tmp_path / "tiny", n_layers=1, n_heads=16, d_model=16, d_mlp=50_000, d_vocab=20_000)
    with pytest.raises(BuildError, match=r"--k \d+ and --pairs \d+ make layers of up to .* GB.*shorter"):
        quick_build(source, tmp_path / "data", **options)
    assert [path.name for path in (tmp_path / "data" / "tiny").iterdir()] == [".lock"]


PARTS: list[dict[str, Any]] = [
    {"kinds": ("ff_value",), "lenses": ("cosine",)},
    {"kinds": ("w_q", "vo_out"), "pairs": 0},
]


@pytest.mark.parametrize("parts", PARTS)
def test_what_is_left_out_is_recorded_and_kept(source: Path, tmp_path: Path, parts: dict[str, Any]) -> None:
    """A build goes on as it was begun, an index of it is right by brute force, and other options are refused."""
    index = quick_build(source, tmp_path, layers=(2,), **parts)
    quick_build(source, tmp_path, k=None, pairs=None)
    assert faults(index, source) == []
    stored = Index.open(index).stored
    assert Index.open(index).layers == (0, 1, 2)
    assert stored.pairs == parts.get("pairs", PAIRS)
    assert stored.kinds == tuple(kind for kind in stored.shape.kinds if kind in parts.get("kinds", stored.shape.kinds))
    assert stored.lenses == parts.get("lenses", LENSES)
    with pytest.raises(OptionsDiffer, match="add --force to replace it"):
        quick_build(source, tmp_path, kinds=("w_o",))
    quick_build(source, tmp_path, kinds=stored.shape.kinds, lenses=LENSES, pairs=PAIRS, force=True)
    assert Index.open(index).stored.options == ""
    assert faults(index, source) == []


def test_an_index_from_before_directions_goes_on_without(source: Path, tmp_path: Path) -> None:
    """Until it is built anew, as a whole: nobody chose to leave them out."""
    listener, kinds = Listener(), describe(Checkpoint.open(source)).shape.weight_kinds
    index = quick_build(source, tmp_path, kinds=kinds, layers=(2,))
    older = Manifest.load(index)
    assert older.kinds is None
    quick_build(source, tmp_path, listener, layers=(1, 2))
    quick_build(source, tmp_path, layers=(1,), force=True)
    manifest = Manifest.load(index)
    assert ([*manifest.shards], manifest.build) == ([1, 2], older.build)
    assert "stores no directions of heads: add --force" in listener.text.getvalue()
    quick_build(source, tmp_path, force=True)
    assert Index.open(index).stored.directions == ("vo", "qk")
    assert faults(index, source) == []


def test_an_index_without_layers_is_in_nobodys_way(source: Path, tmp_path: Path) -> None:
    quick_build(source, tmp_path, layers=())
    index = quick_build(source, tmp_path, pairs=0, layers=(1,))
    assert Index.open(index).stored.options == "--pairs 0"
    assert faults(index, source) == []


def test_layers_that_do_not_exist(source: Path, tmp_path: Path) -> None:
    with pytest.raises(NotFound, match="layer 3: tiny has layers 0 to 2"):
        quick_build(source, tmp_path, layers=(0, 3))
    assert not (tmp_path / "tiny").exists()
