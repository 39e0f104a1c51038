"""Building anew beside an index that is in use, then taking its place, killed in between or not."""

import shutil
from pathlib import Path

import pytest

from precompute.build.build_folder import NEXT
from precompute.errors import ShardDamaged
from precompute.index.index import Index
from precompute.index.layout import shard_file
from precompute.index.manifest import MANIFEST, Manifest
from tests.precompute.build.checks import problems
from tests.support.builds import SHARD, Listener, contents, copy, quick_build, small_gpt2


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
    assert sorted(contents(index)) == sorted(
        name.replace(".safetensors", ".g2.safetensors") for name in contents(built)
    )
    for path in built.glob("*.safetensors"):
        assert path.with_suffix(".g2.safetensors").name in contents(index)
        assert (index / path.with_suffix(".g2.safetensors").name).read_bytes() == path.read_bytes()
    assert old.refreshed().manifest.generation == 2


class Killed(Exception):
    pass


class Fragile(Listener):
    """Ends a build when its first layer is ready."""

    def look(self) -> None:
        raise Killed


def test_killed_rebuild_leaves_the_old_index_and_goes_on(source: Path, built: Path, tmp_path: Path) -> None:
    index = copy(built, tmp_path / "a")
    other = small_gpt2(tmp_path / "other" / "tiny", seed=9)
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
    ("killed", "then", "rebuilt", "generations"),
    [
        (None, (1,), [1], "1 2 1"),
        (None, (0, 2), [2, 0], "2 1 2"),
        ((1,), None, [2, 0], "2 2 2"),  # what was kept before is not what is rebuilt now
        (None, None, [2, 1, 0], "2 2 2"),
        ((1, 2), (1,), [1], "1 2 2"),
    ],
)
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
    files = {shard_file(layer, generation): generation for layer in range(3) for generation in (1, 2)}
    assert " ".join(str(files[shards[layer].file]) for layer in range(3)) == generations
    assert Index.open(index).layers == (0, 1, 2)
    assert not (index / NEXT).exists()
    assert len(list(index.glob("*.safetensors"))) == 5
