"""The build job: real tiny models, interrupted, damaged and rebuilt in every way; the result is always the same bytes.
Signals and messages of the command are for test_commands.py."""

import errno
import os
import random
import shutil
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

from precompute.architectures import describe
from precompute.build import Options, identify
from precompute.checkpoint import Checkpoint
from precompute.errors import (
    BuildError,
    DiskFull,
    IndexMissing,
    LexiscopeError,
    ManifestDamaged,
    NewerFormat,
    NotFound,
    OptionsDiffer,
)
from precompute.files import PARTIAL
from precompute.index import Index
from precompute.layout import shard_size
from precompute.manifest import MANIFEST, TOKENIZER, Manifest
from precompute.placement import NEXT
from precompute.sums import check_sums
from precompute.verify import check_sample
from tests.builds import PAIRS, SMALL, K, Listener, command, contents, copy, quick_build, small_gpt2, stamps
from tests.models import tiny_gpt2, tiny_llama

SHARD, VOCABULARY = "layer-1.g1.lxs", "vocabulary.g1.lxs"


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return small_gpt2(tmp_path_factory.mktemp("source") / "tiny")


@pytest.fixture(scope="module")
def built(source: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An undisturbed build of `source`, to copy and compare with; never changed."""
    return quick_build(source, tmp_path_factory.mktemp("built"))


def problems(index: Path, source: Path, sample: int = 100) -> list[str]:
    opened, model = Index.open(index), describe(Checkpoint.open(source))
    results = [*check_sums(opened), *check_sample(opened, model, sample, seed=0, rows=1000)]
    return [f"{name}: {fault}" for name, fault in results if fault]


def test_gpt2_is_what_brute_force_gives(source: Path, built: Path) -> None:
    assert Index.open(built).layers == (0, 1, 2)
    assert problems(built, source) == []


@pytest.mark.parametrize("tied", [True, False])
def test_llama_is_what_brute_force_gives(tmp_path: Path, tied: bool) -> None:
    source = tiny_llama(tmp_path / "llama", tied=tied, n_layers=1, n_heads=2, n_kv_heads=1, d_model=8, d_mlp=6, seed=3)
    index = quick_build(source, tmp_path / "data")
    assert Index.open(index).layers == (0,)
    assert problems(index, source) == []


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


def test_same_command_twice_does_nothing_and_says_so(source: Path, built: Path, tmp_path: Path) -> None:
    index = copy(built, tmp_path)
    before = stamps(index)
    listener = Listener()
    quick_build(source, tmp_path, listener)
    assert "nothing to do" in listener.text.getvalue()
    assert stamps(index) == before
    quick_build(source, tmp_path, k=None, pairs=None)  # what is not said is as it was
    assert stamps(index) == before


@pytest.mark.parametrize(
    ("asked", "given"),
    [
        (Options(), (100, 500)),
        (Options(k=10**9, pairs=10**15), (480, 480**2)),
        (Options(k=1, pairs=1), (1, 1)),
    ],
)
def test_no_more_is_listed_than_the_vocabulary_has(tmp_path: Path, asked: Options, given: tuple[int, int]) -> None:
    source = small_gpt2(tmp_path / "tiny", n_layers=1, d_vocab=480)
    manifest = identify(describe(Checkpoint.open(source)), asked)
    assert (manifest.k, manifest.pairs) == given


def test_lists_of_the_whole_vocabulary(tmp_path: Path) -> None:
    source = small_gpt2(tmp_path / "tiny", n_layers=1)
    index = quick_build(source, tmp_path / "data", k=10**6)
    d_vocab = Index.open(index).shape.d_vocab
    assert Index.open(index).manifest.k == d_vocab
    top = Index.open(index).shard(0).vector("w_q", 0, "cosine").top_ids
    assert sorted(top.tolist()) == list(range(d_vocab))


# Killed


def test_killed_ten_times_ends_byte_identical(tmp_path: Path) -> None:
    """At random moments, from before its start to its last files; a build that is done before its kill begins anew."""
    source = small_gpt2(tmp_path / "tiny", n_layers=8)
    index, log, dice = tmp_path / "data" / "tiny", tmp_path / "log", random.Random(5)
    with command(log, "models", "--data", tmp_path / "undisturbed") as child:
        assert child.ended() == 0
    started = time.monotonic()
    with command(log, "precompute", source, "--data", tmp_path / "undisturbed", *SMALL) as child:
        assert child.ended() == 0
    whole = time.monotonic() - started
    layers = set()
    kills = 0
    while kills < 10:
        with command(log, "precompute", source, "--data", index.parent, *SMALL) as child:
            child.process.join(whole * dice.random() * 0.6)
            if child.process.exitcode == 0:
                shutil.rmtree(index)
                continue
        kills += 1
        if (index / MANIFEST).exists():
            assert Index.open(index).faults == {}
            layers.add(len(Index.open(index).layers))
    assert len(layers) > 1  # some of them were in the midst of it
    with command(log, "precompute", source, "--data", index.parent, *SMALL) as child:
        assert child.ended() == 0, child.said()
    assert contents(index) == contents(tmp_path / "undisturbed" / "tiny")


def test_killed_inside_every_kind_of_write(source: Path, built: Path, tmp_path: Path) -> None:
    """The system ends the build in the middle of a write, and each time half of another file is left behind."""
    index, words = tmp_path / "tiny", ("precompute", source, "--data", tmp_path, *SMALL)
    size = {path.name: path.stat().st_size for path in built.iterdir()}
    limits = {
        VOCABULARY: size[VOCABULARY] // 2,
        TOKENIZER: (size[VOCABULARY] + size[TOKENIZER]) // 2,
        "layer-2.g1.lxs": size["layer-2.g1.lxs"] // 2,
    }
    for name, limit in limits.items():
        with command(tmp_path / "log", *words, limit=limit, fatal=True) as child:
            assert child.ended() < 0, child.said()
        assert not (index / name).exists()
        assert (index / (name + PARTIAL)).stat().st_size == limit
    quick_build(source, tmp_path)
    (index / MANIFEST).unlink()  # all is made again but this
    with command(tmp_path / "log", *words, limit=500, fatal=True) as child:
        assert child.ended() < 0, child.said()
    assert (index / (MANIFEST + PARTIAL)).stat().st_size == 500
    quick_build(source, tmp_path)
    assert contents(index) == contents(built)


@pytest.mark.parametrize("left", ["layer-1.g1.lxs", "manifest.json", "layer-1.g1.lxs.partial", "layer-9.g7.lxs"])
def test_what_a_kill_leaves_is_used_or_removed(source: Path, built: Path, tmp_path: Path, left: str) -> None:
    """A whole shard that is not listed yet is adopted; a whole index without its manifest is; anything else goes."""
    index = copy(built, tmp_path)
    if left == SHARD:
        manifest = Manifest.load(index)
        without = {layer: entry for layer, entry in manifest.shards.items() if layer != 1}
        Manifest(**{**vars(manifest), "shards": without}).save(index)
    elif left == MANIFEST:
        (index / MANIFEST).unlink()
    else:
        (index / left).write_bytes(b"half of a sh")
    listener = Listener()
    quick_build(source, tmp_path, listener)
    assert listener.layers == []
    assert contents(index) == contents(built)


# In the way: another build, a damaged one


def _other_weights(folder: Path) -> Path:
    return small_gpt2(folder, seed=9)


def _other_tokenizer(folder: Path) -> Path:
    path = small_gpt2(folder) / TOKENIZER
    path.write_text(path.read_text() + "\n")
    return folder


@pytest.mark.parametrize(
    ("make", "options", "said"),
    [
        (small_gpt2, {"k": 9}, "its k is 8, not 9"),
        (small_gpt2, {"pairs": 11}, "its pairs is 12, not 11"),
        (_other_weights, {}, "its weights' hash is"),
        (_other_tokenizer, {}, "its tokenizer's hash is"),
        (lambda folder: small_gpt2(folder, n_layers=2), {}, "its n_layers is 3, not 2"),
    ],
)
def test_another_build_is_in_the_way(
    built: Path, tmp_path: Path, make: Callable[[Path], Path], options: dict[str, Any], said: str
) -> None:
    index = copy(built, tmp_path)
    before = contents(index)
    with pytest.raises(OptionsDiffer, match=said) as caught:
        quick_build(make(tmp_path / "other" / "tiny"), tmp_path, **options)
    assert "--force" in str(caught.value)
    assert contents(index) == before


def test_manifest_of_another_model_is_in_the_way(source: Path, built: Path, tmp_path: Path) -> None:
    copy(built, tmp_path).rename(tmp_path / "mine")
    shutil.copytree(source, tmp_path / "source" / "mine")
    with pytest.raises(OptionsDiffer, match="its model is tiny, not mine"):
        quick_build(tmp_path / "source" / "mine", tmp_path)


def _cut(path: Path) -> None:
    os.truncate(path, path.stat().st_size // 2)


def _flip_header(path: Path) -> None:
    content = bytearray(path.read_bytes())
    content[80] ^= 1
    path.write_bytes(content)


def _foreign(path: Path) -> None:
    path.write_bytes((path.parent / "layer-2.g1.lxs").read_bytes())


@pytest.mark.parametrize("name", [SHARD, VOCABULARY, TOKENIZER])
@pytest.mark.parametrize("damage", [Path.unlink, _cut, _flip_header, _foreign])
def test_damaged_files_are_made_again(
    source: Path, built: Path, tmp_path: Path, name: str, damage: Callable[[Path], None]
) -> None:
    index = copy(built, tmp_path)
    damage(index / name)
    listener = Listener()
    quick_build(source, tmp_path, listener)
    assert listener.layers == ([1] if name == SHARD else [])
    assert "nothing to do" not in listener.text.getvalue()
    assert contents(index) == contents(built)


def test_layers_that_were_not_asked_for_are_left_alone(source: Path, built: Path, tmp_path: Path) -> None:
    index = copy(built, tmp_path)
    _cut(index / SHARD)
    before = contents(index)
    quick_build(source, tmp_path, layers=(2,))
    assert contents(index) == before


@pytest.mark.parametrize(
    ("name", "change", "error"),
    [
        (MANIFEST, (b'"k": 8', b'"k": 7'), ManifestDamaged),
        (MANIFEST, (b'"format_version": 1', b'"format_version": 2'), NewerFormat),
        (SHARD, (b"lexiscope shard\n\x01", b"lexiscope shard\n\x02"), NewerFormat),
    ],
)
def test_what_cannot_be_repaired_safely_says_what_to_do(
    source: Path, built: Path, tmp_path: Path, name: str, change: tuple[bytes, bytes], error: type[LexiscopeError]
) -> None:
    index = copy(built, tmp_path)
    (index / name).write_bytes((index / name).read_bytes().replace(*change, 1))
    before = contents(index)
    with pytest.raises(error, match="lexiscope precompute tiny") as caught:
        quick_build(source, tmp_path)
    assert str(index / name) in str(caught.value)
    assert contents(index) == before
    if name == MANIFEST:
        quick_build(source, tmp_path, force=True)
    else:
        (index / name).unlink()
        quick_build(source, tmp_path)
    assert contents(index) == contents(built)


def test_a_moved_source_is_remembered(source: Path, built: Path, tmp_path: Path) -> None:
    index = copy(built, tmp_path)
    moved = Path(shutil.copytree(source, tmp_path / "elsewhere" / "tiny"))
    quick_build(moved, tmp_path)
    assert Manifest.load(index).source == str(moved)
    assert Manifest.load(index).shards == Manifest.load(built).shards


# Rebuilt


def test_rebuild_beside_the_old_index(source: Path, built: Path, tmp_path: Path) -> None:
    index = copy(built, tmp_path)
    old, before = Index.open(index), contents(index)

    class Reader(Listener):
        def look(self) -> None:
            assert before.items() <= contents(index).items() | {(".lock", b"")}
            assert not old.stale()

    quick_build(source, tmp_path, Reader(), force=True)
    assert old.stale()
    old.shard(1).vector("ff_key", 0, "dot")  # still mapped
    assert sorted(contents(index)) == sorted(name.replace(".g1.", ".g2.") for name in contents(built))
    for name, content in contents(built).items():
        if name.endswith(".lxs"):
            assert (index / name.replace(".g1.", ".g2.")).read_bytes() == content
    assert old.refreshed().manifest.generation == 2


class Killed(Exception):
    pass


class Fragile(Listener):
    """Ends a build when its first layer is ready."""

    def look(self) -> None:
        raise Killed


def test_killed_rebuild_leaves_the_old_index_and_goes_on(source: Path, built: Path, tmp_path: Path) -> None:
    index = copy(built, tmp_path / "a")
    other = _other_weights(tmp_path / "other" / "tiny")
    with pytest.raises(Killed):
        quick_build(other, tmp_path / "a", Fragile(), force=True)
    assert contents(built).items() <= contents(index).items()
    assert problems(index, source, sample=1) == []
    listener = Listener()
    quick_build(source, tmp_path / "a", listener)  # without --force it stays the old one, and the rebuild is kept
    assert "nothing to do" in listener.text.getvalue()
    assert "--force" in listener.text.getvalue()
    listener = Listener()
    quick_build(other, tmp_path / "a", listener, force=True)
    assert listener.layers == [1, 0]
    copy(built, tmp_path / "b")
    undisturbed = quick_build(other, tmp_path / "b", force=True)
    assert contents(index) == contents(undisturbed)
    assert problems(index, other, sample=1) == []


def test_rebuild_killed_after_it_took_the_place_is_not_begun_again(source: Path, built: Path, tmp_path: Path) -> None:
    index = copy(built, tmp_path)
    quick_build(source, tmp_path, force=True)
    after = contents(index)
    shutil.copy(index / MANIFEST, index / NEXT)
    shutil.copy(built / SHARD, index)
    for force in (True, False):
        listener = Listener()
        quick_build(source, tmp_path, listener, force=force)
        assert listener.layers == []
        assert contents(index) == after
        shutil.copy(index / MANIFEST, index / NEXT)


@pytest.mark.parametrize(
    ("killed", "then", "rebuilt", "files"),
    [
        (None, (1,), [1], "g1 g2 g1"),
        (None, (0, 2), [2, 0], "g2 g1 g2"),
        ((1,), None, [2, 0], "g2 g2 g2"),  # what was kept before is not what is rebuilt now
        (None, None, [2, 1, 0], "g2 g2 g2"),
        ((1, 2), (1,), [1], "g1 g2 g2"),
    ],
)
def test_rebuild_of_some_layers_keeps_the_others(
    source: Path,
    built: Path,
    tmp_path: Path,
    killed: tuple[int, ...] | None,
    then: tuple[int, ...] | None,
    rebuilt: list[int],
    files: str,
) -> None:
    index = copy(built, tmp_path)
    if killed:
        with pytest.raises(Killed):
            quick_build(source, tmp_path, Fragile(), force=True, layers=killed)
    listener = Listener()
    quick_build(source, tmp_path, listener, force=True, layers=then)
    assert listener.layers == rebuilt
    shards = Manifest.load(index).shards
    assert " ".join(shards[layer].file.split(".")[1] for layer in range(3)) == files
    assert Index.open(index).layers == (0, 1, 2)
    assert not (index / NEXT).exists()
    assert len(list(index.glob("*.lxs"))) == 5


# The disk


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EDQUOT, errno.EFBIG])
def test_full_disk_leaves_nothing_and_the_build_goes_on(
    source: Path, built: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    flush = os.fsync

    def refuse(descriptor: int) -> None:
        if "layer-1.g1.lxs" in os.readlink(f"/proc/self/fd/{descriptor}"):
            raise OSError(number, os.strerror(number))
        flush(descriptor)

    monkeypatch.setattr(os, "fsync", refuse)
    with pytest.raises(DiskFull, match=r"layer-1\.g1\.lxs.*again"):
        quick_build(source, tmp_path)
    monkeypatch.setattr(os, "fsync", flush)
    assert Index.open(tmp_path / "tiny").layers == (2,)
    assert not list(tmp_path.glob("tiny/*.partial"))
    listener = Listener()
    quick_build(source, tmp_path, listener)
    assert listener.layers == [1, 0]
    assert contents(tmp_path / "tiny") == contents(built)


def test_limited_file_size_is_an_error_like_any_other(source: Path, tmp_path: Path) -> None:
    words = ("precompute", source, "--data", tmp_path, *SMALL)
    with command(tmp_path / "log", *words, limit=20_000) as child:
        assert child.ended() == 1, child.said()
    assert "no space left to write" in child.said()
    assert "layer-2.g1.lxs" in child.said()
    assert "Traceback" not in child.said()
    assert sorted(contents(tmp_path / "tiny")) == [".lock", MANIFEST, TOKENIZER, VOCABULARY]


@pytest.mark.parametrize(
    "name", [VOCABULARY + PARTIAL, SHARD + PARTIAL, MANIFEST + PARTIAL, TOKENIZER + PARTIAL, TOKENIZER, SHARD]
)
def test_links_in_the_folder_are_replaced_not_followed(source: Path, built: Path, tmp_path: Path, name: str) -> None:
    precious, index = tmp_path / "precious", tmp_path / "data" / "tiny"
    precious.write_text("keep me")
    index.mkdir(parents=True)
    (index / name).symlink_to(precious)
    quick_build(source, tmp_path / "data")
    assert precious.read_text() == "keep me"
    assert contents(index) == contents(built)
    assert not any(path.is_symlink() for path in index.iterdir())


@pytest.mark.parametrize("name", [TOKENIZER, MANIFEST, NEXT, SHARD, VOCABULARY, SHARD + PARTIAL])
def test_pipes_in_the_folder_are_not_waited_for(source: Path, built: Path, tmp_path: Path, name: str) -> None:
    index = copy(built, tmp_path)
    (index / name).unlink(missing_ok=True)
    os.mkfifo(index / name)
    quick_build(source, tmp_path, force=name == MANIFEST)
    assert Index.open(index).layers == (0, 1, 2)
    if name != MANIFEST:
        assert contents(index) == contents(built)


def test_folder_that_is_removed_meanwhile(source: Path, tmp_path: Path) -> None:
    """Before the next layer, which may be hours of work."""
    made: list[int] = []

    class Cleaner(Listener):
        def look(self) -> None:
            shutil.rmtree(tmp_path / "tiny")

        def step(self, share: float) -> None:
            super().step(share)
            made.append(len(self.layers))

    with pytest.raises(BuildError, match="tiny was removed during the build: run the same command again"):
        quick_build(source, tmp_path, Cleaner())
    assert max(made) == 0


def test_a_place_that_is_a_file(source: Path, tmp_path: Path) -> None:
    (tmp_path / "data").write_text("")
    with pytest.raises(BuildError, match="--data"):
        quick_build(source, tmp_path / "data")


def test_a_place_that_is_read_only(source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(path: str, *_: object) -> None:
        raise OSError(errno.EROFS, os.strerror(errno.EROFS), path)

    monkeypatch.setattr(os, "mkdir", refuse)
    with pytest.raises(BuildError, match=r"Read-only file system.*--data"):
        quick_build(source, tmp_path / "data")


# Options


def test_sizes_are_at_least_those_of_the_files(source: Path, built: Path) -> None:
    manifest = identify(describe(Checkpoint.open(source)), Options(K, PAIRS))
    n_bytes, entries = shard_size(manifest.shape, K, PAIRS)
    container = Index.open(built).shard(0)._container
    assert container.n_bytes - 8192 <= sum(array.nbytes for array in container.arrays.values()) <= n_bytes
    assert n_bytes < 1.5 * container.n_bytes
    assert entries >= max(len(container.arrays[f"{name}.rank"]) for name in ("inverted", "paired"))


@pytest.mark.parametrize("options", [{"k": 10**9}, {"pairs": 10**9}])
def test_lists_too_long_for_a_shard_are_refused_at_once(tmp_path: Path, options: dict[str, Any]) -> None:
    source = tiny_gpt2(tmp_path / "tiny", n_layers=1, n_heads=4, d_model=4, d_mlp=50_000, d_vocab=20_000)
    with pytest.raises(BuildError, match=r"--k \d+ and --pairs \d+ make layers of up to .* GB.*shorter"):
        quick_build(source, tmp_path / "data", **options)
    assert [path.name for path in (tmp_path / "data" / "tiny").iterdir()] == [".lock"]


@pytest.mark.parametrize(
    "error",
    [
        MemoryError(),
        MemoryError("Unable to allocate 9 GiB"),
        RuntimeError("DefaultCPUAllocator: can't allocate memory: you tried to allocate 9 bytes."),
        torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 9 GiB"),
    ],
)
def test_too_little_memory(source: Path, tmp_path: Path, error: Exception) -> None:
    class Greedy(Listener):
        def look(self) -> None:
            raise error

    with pytest.raises(BuildError, match=r"not enough memory to build tiny .*--pairs 12 and --k 8 now.*--threads"):
        quick_build(source, tmp_path, Greedy())
    assert Index.open(tmp_path / "tiny").layers == (2,)


def test_layers_that_do_not_exist(source: Path, tmp_path: Path) -> None:
    with pytest.raises(NotFound, match="layer 3: tiny has layers 0 to 2"):
        quick_build(source, tmp_path, layers=(0, 3))
    assert not (tmp_path / "tiny").exists()
