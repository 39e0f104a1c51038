"""The build job killed, out of disk or memory, or among strange files: it goes on, and the result is the same bytes."""

import os
import shutil
import signal
from pathlib import Path

import pytest
import torch

from lexiscope.precompute.build.build_folder import NEXT
from lexiscope.precompute.errors import BuildError
from lexiscope.precompute.files import PARTIAL
from lexiscope.precompute.index.index import Index
from lexiscope.precompute.index.manifest import MANIFEST, TOKENIZER, Manifest
from tests.support.builds import SHARD, SMALL, VOCABULARY, Listener, command, contents, copy, quick_build

pytestmark = pytest.mark.slow


@pytest.mark.parametrize(
    "kills", [["upper layers first", "layer 1 is ready"], ["layer 2 is ready", "layer 0 is ready"]]
)
def test_killed_again_and_again_ends_byte_identical(
    source: Path, built: Path, tmp_path: Path, kills: list[str]
) -> None:
    """Before the first layer, after others, and when only the end of the build is missing."""
    index, words = tmp_path / "tiny", ("precompute", source, "--data", tmp_path, *SMALL)
    for said in kills:
        with command(tmp_path / "log", *words, pause_at=said) as child:
            child.send(signal.SIGKILL)
            assert child.ended() == -signal.SIGKILL
        if said.startswith("layer"):
            assert Index.open(index).faults == {}
            assert Index.open(index).layers == tuple(range(int(said[6]), 3))
    quick_build(source, tmp_path)
    assert contents(index) == contents(built)


def test_killed_inside_every_kind_of_write(source: Path, built: Path, tmp_path: Path) -> None:
    """The system ends the build in the middle of a write, and each time half of another file is left behind."""
    index, words = tmp_path / "tiny", ("precompute", source, "--data", tmp_path, *SMALL)
    size = {path.name: path.stat().st_size for path in built.iterdir()}
    limits = {
        VOCABULARY: size[VOCABULARY] // 2,
        TOKENIZER: (size[VOCABULARY] + size[TOKENIZER]) // 2,
        "layer-2.safetensors": size["layer-2.safetensors"] // 2,
    }
    for name, limit in limits.items():
        with command(tmp_path / "log", *words, limit=limit, fatal=True) as child:
            assert child.ended() < 0, child.output()
        assert not (index / name).exists()
        assert (index / (name + PARTIAL)).stat().st_size == limit
    quick_build(source, tmp_path)
    (index / MANIFEST).unlink()  # all is made again but this
    with command(tmp_path / "log", *words, limit=500, fatal=True) as child:
        assert child.ended() < 0, child.output()
    assert (index / (MANIFEST + PARTIAL)).stat().st_size == 500
    quick_build(source, tmp_path)
    assert contents(index) == contents(built)


@pytest.mark.parametrize(
    "left", ["layer-1.safetensors", "manifest.json", "layer-1.safetensors.partial", "layer-9.g7.safetensors"]
)
def test_what_a_kill_leaves_is_used_or_removed(source: Path, built: Path, tmp_path: Path, left: str) -> None:
    """A whole shard that is not listed yet is adopted; a whole index without its manifest is; anything else goes."""
    index = copy(built, tmp_path)
    if left == SHARD:
        manifest = Manifest.load(index)
        without = {layer: entry for layer, entry in manifest.shards.items() if layer != 1}
        manifest.with_changes(shards=without).save(index)
    elif left == MANIFEST:
        (index / MANIFEST).unlink()
    else:
        (index / left).write_bytes(b"half of a sh")
    listener = Listener()
    quick_build(source, tmp_path, listener)
    assert listener.layers == []
    assert contents(index) == contents(built)


def test_limited_file_size_is_an_error_like_any_other(source: Path, tmp_path: Path) -> None:
    words = ("precompute", source, "--data", tmp_path, *SMALL)
    with command(tmp_path / "log", *words, limit=20_000) as child:
        assert child.ended() == 1, child.output()
    assert "no space left to write" in child.output()
    assert "layer-2.safetensors" in child.output()
    assert "Traceback" not in child.output()
    assert sorted(contents(tmp_path / "tiny")) == [".lock", MANIFEST, TOKENIZER, VOCABULARY]


def test_links_in_the_folder_are_replaced_not_followed(source: Path, built: Path, tmp_path: Path) -> None:
    precious, index = tmp_path / "precious", tmp_path / "data" / "tiny"
    precious.write_text("keep me")
    index.mkdir(parents=True)
    for name in (VOCABULARY + PARTIAL, SHARD + PARTIAL, MANIFEST + PARTIAL, TOKENIZER + PARTIAL, TOKENIZER, SHARD):
        (index / name).symlink_to(precious)
    quick_build(source, tmp_path / "data")
    assert precious.read_text() == "keep me"
    assert contents(index) == contents(built)
    assert not any(path.is_symlink() for path in index.iterdir())


@pytest.mark.parametrize("names", [(TOKENIZER, NEXT, SHARD, VOCABULARY, SHARD + PARTIAL), (MANIFEST,)])
def test_pipes_in_the_folder_are_not_waited_for(
    source: Path, built: Path, tmp_path: Path, names: tuple[str, ...]
) -> None:
    index = copy(built, tmp_path)
    for name in names:
        (index / name).unlink(missing_ok=True)
        os.mkfifo(index / name)
    quick_build(source, tmp_path, force=MANIFEST in names)
    assert Index.open(index).layers == (0, 1, 2)
    assert MANIFEST in names or contents(index) == contents(built)


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


@pytest.mark.parametrize("error", [
    MemoryError(),
    MemoryError("Unable to allocate 9 GiB"),
    RuntimeError("DefaultCPUAllocator: can't allocate memory: you tried to allocate 9 bytes."),
    torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 9 GiB"),
])  # fmt: skip
def test_too_little_memory(source: Path, tmp_path: Path, error: Exception) -> None:
    class Greedy(Listener):
        def look(self) -> None:
            raise error

    with pytest.raises(BuildError, match=r"not enough memory to build tiny .*--pairs 12 and --k 8 now.*--threads"):
        quick_build(source, tmp_path, Greedy())
    assert Index.open(tmp_path / "tiny").layers == (2,)
