"""Builds where an index is already: another one, a damaged one, one whose weights have moved; and building anew beside
one that is in use, then taking its place, killed in between or not."""

import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from lexiscope.precompute.build.build_folder import NEXT
from lexiscope.precompute.errors import (
    LexiscopeError,
    ManifestDamaged,
    NewerFormat,
    OldFormat,
    OptionsDiffer,
    ShardDamaged,
)
from lexiscope.precompute.index.index import Index
from lexiscope.precompute.index.layout import Piece
from lexiscope.precompute.index.manifest import MANIFEST, TOKENIZER, Manifest
from tests.support.builds import (
    NEIGHBOURS,
    SHARD,
    VOCABULARY,
    K,
    Listener,
    contents,
    copy,
    faults,
    quick_build,
    small_gpt2,
)


class Killed(Exception):
    pass


class Fragile(Listener):
    """Ends a build when its first layer is ready."""

    def look(self) -> None:
        raise Killed


def _other_weights(folder: Path) -> Path:
    return small_gpt2(folder, seed=9)


def _other_tokenizer(folder: Path) -> Path:
    path = small_gpt2(folder) / TOKENIZER
    path.write_text(path.read_text() + "\n")
    return folder


@pytest.mark.parametrize(("make", "options", "said"), [
    (small_gpt2, {"k": 9}, "its k is 8, not 9"),
    (small_gpt2, {"pairs": 11}, "its pairs is 12, not 11"),
    (_other_weights, {}, "its weights' hash is"),
    (_other_tokenizer, {}, "its tokenizer's hash is"),
    (lambda folder: small_gpt2(folder, n_layers=2), {}, "its n_layers is 3, not 2"),
])  # fmt: skip
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
    path.write_bytes((path.parent / "layer-2.safetensors").read_bytes())


@pytest.mark.parametrize(("name", "damage"), [
    (SHARD, Path.unlink), (SHARD, _foreign), (VOCABULARY, _flip_header), (TOKENIZER, _cut), (NEIGHBOURS, _foreign),
])  # fmt: skip
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


@pytest.mark.parametrize(("name", "change", "error"), [
    (MANIFEST, (b'"k": 8', b'"k": 7'), ManifestDamaged),
    (MANIFEST, (b'"format": 3', b'"format": 4'), NewerFormat),
    (SHARD, (b'"format":"3"', b'"format":"4"'), NewerFormat),
])  # fmt: skip
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


def old_format(index: Path, **changes: Any) -> None:
    """As a Lexiscope that wrote format 1 left it: another manifest, and files of another kind."""
    fields = json.loads((index / MANIFEST).read_text()) | {"format_version": 1} | changes
    del fields["format"]
    (index / MANIFEST).write_text(json.dumps(fields))
    for path in index.glob("*.safetensors"):
        path.rename(path.with_name(path.name.replace(".safetensors", ".g1.lxs")))


def test_an_index_of_an_older_format_is_built_anew_in_its_place(source: Path, built: Path, tmp_path: Path) -> None:
    """With the lengths of lists that it has; its files go when the new ones are there."""
    index = copy(built, tmp_path)
    old_format(index)
    with pytest.raises(OldFormat, match="lexiscope precompute tiny` builds it anew"):
        Index.open(index)

    class Reader(Listener):
        def look(self) -> None:
            assert Index.open(index).layers
            assert (index / "layer-1.g1.lxs").exists()

    reader = Reader()
    quick_build(source, tmp_path, reader, k=None, pairs=None)
    assert "has an older format" in reader.text.getvalue()
    assert contents(index) == contents(built)


def test_an_index_of_format_2_keeps_what_it_stores_and_its_files_until_others_are_there(
    source: Path, tmp_path: Path
) -> None:
    part: dict[str, Any] = {"kinds": ("ff_key", "ff_value"), "lenses": ("dot",), "pairs": 0}
    index = quick_build(source, tmp_path, **part)
    fields = json.loads((index / MANIFEST).read_text()) | {"format": 2}
    del fields["reads_best"]
    (index / MANIFEST).write_text(json.dumps(fields))
    for path in index.glob("*.safetensors"):
        path.write_bytes(path.read_bytes().replace(b'"format":"3"', b'"format":"2"', 1))
    before = contents(index)
    with pytest.raises(
        OldFormat, match=r"has format 2; this one reads format 3\. `lexiscope precompute tiny` builds it"
    ):
        Index.open(index)
    with pytest.raises(Killed):
        quick_build(source, tmp_path, Fragile(), k=None, pairs=None)
    now = contents(index)
    assert all(now[name] == data for name, data in before.items() if name.endswith(".safetensors"))
    assert Index.open(index).layers == (2,)
    reader = Listener()
    quick_build(source, tmp_path, reader, k=None, pairs=None)
    assert reader.layers == [1, 0]
    manifest = Index.open(index).manifest
    assert (manifest.k, manifest.pairs, manifest.kinds, manifest.lenses) == (K, 0, part["kinds"], part["lenses"])
    assert {path.name for path in index.glob("*.safetensors")} == {entry.file for entry in manifest.entries().values()}
    assert not before.keys() & {entry.file for entry in manifest.entries().values()}
    assert faults(index, source) == []


def test_an_older_index_of_other_weights_is_in_the_way(source: Path, built: Path, tmp_path: Path) -> None:
    index = copy(built, tmp_path)
    old_format(index, weights_sha256="0" * 64)
    before = contents(index)
    with pytest.raises(OptionsDiffer, match="made from other weights than these: add --force"):
        quick_build(source, tmp_path)
    assert contents(index) == before | {".lock": b""}
    quick_build(source, tmp_path, force=True)
    assert contents(index) == contents(built)


def test_weights_in_the_folder_of_their_index_stay(tmp_path: Path) -> None:
    source = small_gpt2(tmp_path / "tiny", n_layers=1)
    weights = contents(source)
    for force in (False, True):
        quick_build(source, tmp_path, force=force)
        assert weights.items() <= contents(tmp_path / "tiny").items()
    assert faults(tmp_path / "tiny", source) == []


def test_rebuild_beside_the_old_index(source: Path, built: Path, tmp_path: Path) -> None:
    index = copy(built, tmp_path)
    old, before = Index.open(index), contents(index)

    class Reader(Listener):
        def look(self) -> None:
            assert before.items() <= contents(index).items() | {(".lock", b"")}
            assert old.refreshed() is old

    quick_build(source, tmp_path, Reader(), force=True)
    with pytest.raises(ShardDamaged, match="is missing"):
        old.shard(1)
    second = {name.replace(".safetensors", ".g2.safetensors"): data for name, data in contents(built).items()}
    assert contents(index) == second | {MANIFEST: contents(index)[MANIFEST]}
    assert old.refreshed().manifest.generation == 2


def test_killed_rebuild_leaves_the_old_index_and_goes_on(source: Path, built: Path, tmp_path: Path) -> None:
    index = copy(built, tmp_path / "a")
    other = small_gpt2(tmp_path / "other" / "tiny", seed=9)
    with pytest.raises(Killed):
        quick_build(other, tmp_path / "a", Fragile(), force=True)
    assert contents(built).items() <= contents(index).items()
    assert faults(index, source, sample=1) == []
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
    assert faults(index, other, sample=1) == []


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


@pytest.mark.parametrize(("killed", "then", "rebuilt", "generations"), [
    (None, (0, 2), [2, 0], "2 1 2"), ((1, 2), (1,), [1], "1 2 2"),
    ((1,), None, [2, 0], "2 2 2"),  # what was kept before is not what is rebuilt now
])  # fmt: skip
def test_rebuild_of_some_layers_keeps_the_others(
    source: Path,
    built: Path,
    tmp_path: Path,
    killed: tuple[int, ...] | None,
    then: tuple[int, ...] | None,
    rebuilt: list[int],
    generations: str,
) -> None:
    index = copy(built, tmp_path)
    if killed:
        with pytest.raises(Killed):
            quick_build(source, tmp_path, Fragile(), force=True, layers=killed)
    listener = Listener()
    quick_build(source, tmp_path, listener, force=True, layers=then)
    assert listener.layers == rebuilt
    shards = Manifest.load(index).shards
    files = {Piece("lists", layer).file(generation): generation for layer in range(3) for generation in (1, 2)}
    assert " ".join(str(files[shards[layer].file]) for layer in range(3)) == generations
    assert Index.open(index).layers == (0, 1, 2)
    assert not (index / NEXT).exists()
    assert len(list(index.glob("*.safetensors"))) == 12  # with vocabulary, nearest tokens, lines of chance
