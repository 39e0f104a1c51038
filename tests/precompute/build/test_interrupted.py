"""The build job killed, out of disk or memory, or among strange files: it goes on, and the result is the same bytes."""

import errno
import os
import random
import shutil
import time
from pathlib import Path

import pytest
import torch

from lexiscope.precompute.build.build_folder import NEXT
from lexiscope.precompute.errors import BuildError, DiskFull
from lexiscope.precompute.files import PARTIAL
from lexiscope.precompute.index.index import Index
from lexiscope.precompute.index.manifest import MANIFEST, TOKENIZER, Manifest
from tests.support.builds import SHARD, SMALL, VOCABULARY, Listener, command, contents, copy, quick_build, small_gpt2
from tests.support.workers import until

pytestmark = pytest.mark.slow


@pytest.mark.usefixtures("built")  # by which all that is compiled has been, so that a build takes as long as the next
def test_killed_ten_times_ends_byte_identical(tmp_path: Path) -> None:
    """A random moment after its start or after another layer; a build that is done before its kill begins anew."""
    source = small_gpt2(tmp_path / "tiny", n_layers=8)
    index, log, dice = tmp_path / "data" / "tiny", tmp_path / "log", random.Random(5)
    started = time.monotonic()
    with command(log, "precompute", source, "--data", tmp_path / "undisturbed", *SMALL) as child:
        assert child.ended() == 0
    whole = time.monotonic() - started
    layers, kills = set[int](), 0
    while kills < 10:
        wanted = ready_layers(index) + dice.randrange(2)
        with command(log, "precompute", source, "--data", index.parent, *SMALL) as child:
            until(lambda: child.process.exitcode is not None or ready_layers(index) >= wanted)  # noqa: B023
            child.process.join(whole * dice.random() * 0.1)
            if child.process.exitcode == 0:
                shutil.rmtree(index)
                continue
        kills += 1
        if (index / MANIFEST).exists():
            assert Index.open(index).faults == {}
            layers.add(len(Index.open(index).layers))
    assert len(layers) > 1  # some of them were in the midst of it
    with command(log, "precompute", source, "--data", index.parent, *SMALL) as child:
        assert child.ended() == 0, child.output()
    assert contents(index) == contents(tmp_path / "undisturbed" / "tiny")


def ready_layers(index: Path) -> int:
    return len(list(index.glob("layer-*.safetensors")))


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


def test_full_disk_leaves_nothing_and_the_build_goes_on(
    source: Path, built: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    flush = os.fsync

    def refuse(descriptor: int) -> None:
        if "layer-1.safetensors" in os.readlink(f"/proc/self/fd/{descriptor}"):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        flush(descriptor)

    monkeypatch.setattr(os, "fsync", refuse)
    with pytest.raises(DiskFull, match=r"layer-1\.safetensors.*again"):
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
