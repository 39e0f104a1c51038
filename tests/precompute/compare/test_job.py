"""The comparison job: what it says and makes, killed or disturbed, and what it refuses."""

import os
import shutil
import signal
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch

from lexiscope.precompute.build.lock import build_lock
from lexiscope.precompute.compare.job import CompareOptions, compare
from lexiscope.precompute.errors import BuildError, BuildRunning, OptionsDiffer
from lexiscope.precompute.files import PARTIAL
from lexiscope.precompute.index.comparison import Comparison
from lexiscope.precompute.index.comparison_record import KERNEL, comparison_file
from lexiscope.precompute.index.stitching import STITCHING
from lexiscope.precompute.rebuild_command import COMPARISON
from lexiscope.precompute.shape import DIRECTION_KINDS, SIDES
from lexiscope.precompute.weights.architectures import describe
from lexiscope.precompute.weights.checkpoint import Checkpoint
from lexiscope.precompute.weights.difference import Difference
from tests.support.builds import contents, forks, small_gpt2
from tests.support.comparisons import CompareListener, change_weights, quick_compare
from tests.support.models import tiny_gpt2, tiny_llama

KINDS = tuple(kind for kind in SIDES if kind != "ff_up")
FILES = sorted([".lock", COMPARISON, *map(comparison_file, (*KINDS, KERNEL))])


@pytest.fixture(scope="module")
def sources(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    folder = tmp_path_factory.mktemp("sources")
    return small_gpt2(folder / "one"), small_gpt2(folder / "other", n_layers=2, seed=1)


@pytest.fixture(scope="module")
def compared(sources: tuple[Path, Path], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An undisturbed comparison, to copy and to compare with; never changed."""
    return quick_compare(*sources, tmp_path_factory.mktemp("compared"))


def copied(compared: Path, data: Path) -> Path:
    return Path(shutil.copytree(compared, data / "vs" / "one" / "other"))


def test_what_it_makes_and_says(sources: tuple[Path, Path], compared: Path, tmp_path: Path) -> None:
    listener = CompareListener()
    folder = quick_compare(*sources, tmp_path, listener)
    assert folder == tmp_path / "vs" / "one" / "other"
    assert sorted(contents(folder)) == FILES
    assert contents(folder) == contents(compared)
    assert listener.kinds == [*KINDS]
    said = listener.text.getvalue()
    assert "one and other have 481 tokens in common: their ids mean the same" in said
    assert "one vs other: 0 of 10 kinds are ready, 10 to compare" in said
    assert "kind ff_key is ready; 1 of 10 kinds" in said
    assert "is up to date: 10 of 10 kinds are ready" in said
    listener = CompareListener()
    quick_compare(*sources, tmp_path, listener)
    assert listener.kinds == []
    assert "was up to date already, nothing to do: 10 of 10 kinds" in listener.text.getvalue()


def test_what_chance_gives_is_added_to_a_comparison_without_it(
    sources: tuple[Path, Path], compared: Path, tmp_path: Path
) -> None:
    folder = copied(compared, tmp_path)
    record = Comparison.open(folder).record
    record.model_copy(update={"chance": {}}).save(folder)
    assert Comparison.open(folder).chance("w_q") is Comparison.open(folder).feature_chance() is None
    listener = CompareListener()
    quick_compare(*sources, tmp_path, listener)
    assert listener.kinds == []
    assert contents(folder) == contents(compared)


def test_a_kind_that_only_one_has_is_left_out_and_said(tmp_path: Path) -> None:
    listener = CompareListener()
    a, b = tiny_llama(tmp_path / "gated", n_layers=1), small_gpt2(tmp_path / "plain", n_layers=1)
    comparison = Comparison.open(quick_compare(a, b, tmp_path, listener))
    assert comparison.kinds == KINDS
    assert "ff_up is left out: gated has it and plain does not" in listener.text.getvalue()


def test_the_same_checkpoint_twice_is_the_identity(tmp_path: Path) -> None:
    source = tiny_gpt2(tmp_path / "same", n_layers=3)
    comparison = Comparison.open(quick_compare(source, source, tmp_path))
    assert np.allclose(comparison.kernel(), np.eye(32), atol=1e-6)
    for kind in comparison.kinds:
        similarity = comparison.similarity(kind)
        assert np.allclose(similarity, similarity.T, atol=1e-7)
        if kind not in DIRECTION_KINDS:  # those of a head are at right angles to each other, and so unlike
            assert comparison.assignment(kind) == comparison.feature_assignment(kind) == [(0, 0), (1, 1), (2, 2)]
        for layer in range(3):
            for index in range(comparison.a.kinds[kind]):
                assert comparison.matches("a", kind, layer, index)[0] == (layer, index, 1.0)
                assert comparison.matches("b", kind, layer, index)[0] == (layer, index, 1.0)


def test_a_difference_is_compared_like_any_model(sources: tuple[Path, Path], tmp_path: Path) -> None:
    """Its first layer did not change; its other vectors are twice the base's."""

    def double(tensors: dict[str, torch.Tensor]) -> None:
        for name, tensor in tensors.items():
            if ".h.1." in name or ".h.2." in name:
                tensor.mul_(3)

    one, other = sources
    tuned = change_weights(Path(shutil.copytree(one, tmp_path / "tuned")), double)
    tuned_model, base, b = (describe(Checkpoint.open(source)) for source in (tuned, one, other))
    options = CompareOptions(least_tokens=100)
    folder = compare(Difference(tuned_model, base), b, tmp_path, options, CompareListener())
    found, plain = Comparison.open(folder), Comparison.open(quick_compare(one, other, tmp_path))
    assert found.a.model == folder.parent.name == "tuned-minus-one"
    assert found.a.minus is not None
    assert found.a.minus.weights_sha256 == base.checkpoint.weights_hash()
    for kind in found.kinds:
        assert np.array_equal(found.similarity(kind)[0], np.zeros(2))
        assert np.allclose(found.similarity(kind)[1:], plain.similarity(kind)[1:], atol=1e-6)
        assert (
            found.matches("a", kind, 0, 1)
            == [(0, index, 0.0) for index in range(6)] + [(1, index, 0.0) for index in range(4)]
            or found.a.kinds[kind] != 6
        )


# Killed, disturbed


def _killed_at(one: Path, other: Path, data: Path, moment: str) -> None:
    """A comparison that the system ends at once: when a kind is ready, in the middle of one, or of a write."""

    class Fatal(CompareListener):
        def look(self) -> None:
            if moment == f"after {self.kinds[-1]}":
                os.kill(os.getpid(), signal.SIGKILL)

        def step(self, share: float) -> None:
            super().step(share)
            if moment == f"within {KINDS[len(self.kinds)]}":
                os.kill(os.getpid(), signal.SIGKILL)

    flush = os.fsync

    def fsync(descriptor: int) -> None:
        if moment == f"writing {Path(os.readlink(f'/proc/self/fd/{descriptor}')).name.removesuffix(PARTIAL)}":
            os.kill(os.getpid(), signal.SIGKILL)
        flush(descriptor)

    os.fsync = fsync  # type: ignore[assignment]
    quick_compare(one, other, data, Fatal())


@pytest.mark.slow
@pytest.mark.parametrize(("moment", "ready"), [
    ("after w_o", 6), ("within w_q", 2), ("writing w_k.safetensors", 3), ("writing comparison.json", None),
])  # fmt: skip
def test_killed(sources: tuple[Path, Path], compared: Path, tmp_path: Path, moment: str, ready: int | None) -> None:
    process = forks().Process(target=_killed_at, args=(*sources, tmp_path, moment))
    process.start()
    process.join(300)
    assert process.exitcode == -signal.SIGKILL
    folder = tmp_path / "vs" / "one" / "other"
    if ready is not None:
        left = Comparison.open(folder)
        assert left.kinds == KINDS[:ready]
        for kind in left.kinds:
            assert np.array_equal(left.similarity(kind), Comparison.open(compared).similarity(kind))
    listener = CompareListener()
    quick_compare(*sources, tmp_path, listener)
    assert listener.kinds == [*KINDS[ready or 0 :]]
    assert contents(folder) == contents(compared)


@pytest.mark.parametrize("left", ["w_q.safetensors", COMPARISON, "w_q.safetensors.partial"])
def test_what_a_kill_leaves_is_used_or_removed(
    sources: tuple[Path, Path], compared: Path, tmp_path: Path, left: str
) -> None:
    """A whole file that is not listed yet is adopted, and so are all where nothing is listed; half of one goes."""
    folder = copied(compared, tmp_path)
    if left == COMPARISON:
        (folder / COMPARISON).unlink()
    elif left.endswith(PARTIAL):
        (folder / left).write_bytes(b"half of a f")
    else:
        record = Comparison.open(folder).record
        record.with_files({name: entry for name, entry in record.files.items() if name != "w_q"}).save(folder)
    listener = CompareListener()
    quick_compare(*sources, tmp_path, listener)
    assert listener.kinds == []
    assert contents(folder) == contents(compared)


@pytest.mark.parametrize("spoil", [lambda path: path.write_bytes(path.read_bytes()[:-7]), Path.unlink])
def test_a_damaged_file_is_made_again(
    sources: tuple[Path, Path], compared: Path, tmp_path: Path, spoil: Callable[[Path], object]
) -> None:
    folder = copied(compared, tmp_path)
    spoil(folder / "w_q.safetensors")
    listener = CompareListener()
    quick_compare(*sources, tmp_path, listener)
    assert listener.kinds == ["w_q"]
    assert contents(folder) == contents(compared)


def test_a_folder_that_is_removed_meanwhile(sources: tuple[Path, Path], tmp_path: Path) -> None:
    class Cleaner(CompareListener):
        def look(self) -> None:
            shutil.rmtree(tmp_path / "vs")

    with pytest.raises(BuildError, match="was removed during the build: run the same command again"):
        quick_compare(*sources, tmp_path, Cleaner())


def test_one_at_a_time(sources: tuple[Path, Path], tmp_path: Path) -> None:
    with build_lock(tmp_path / "vs" / "one" / "other"), pytest.raises(BuildRunning, match="by another process"):
        quick_compare(*sources, tmp_path)


def test_too_little_memory(sources: tuple[Path, Path], tmp_path: Path) -> None:
    class Greedy(CompareListener):
        def look(self) -> None:
            raise MemoryError

    with pytest.raises(BuildError, match=r"not enough memory to compare one with other: .* finished kinds are kept"):
        quick_compare(*sources, tmp_path, Greedy())
    assert Comparison.open(tmp_path / "vs" / "one" / "other").kinds == ("ff_key",)


# Refused, replaced


def test_other_weights_since_are_refused_and_force_makes_it_anew(
    sources: tuple[Path, Path], compared: Path, tmp_path: Path
) -> None:
    folder = copied(compared, tmp_path)
    (folder / STITCHING).write_text("[]")
    changed = small_gpt2(tmp_path / "changed" / "one", seed=9)
    with pytest.raises(OptionsDiffer, match=r"made when one had other weights, from .*: add --force to replace it"):
        quick_compare(changed, sources[1], tmp_path)
    assert Comparison.open(folder).similarity("w_q").shape == (3, 2)
    assert {name: content for name, content in contents(folder).items() if name != STITCHING} == contents(compared)
    quick_compare(changed, sources[1], tmp_path, force=True)
    assert sorted(contents(folder)) == FILES  # what was stitched with other weights is gone, too
    assert not np.allclose(
        Comparison.open(folder).similarity("w_q"), Comparison.open(compared).similarity("w_q"), atol=1e-7
    )
    quick_compare(sources[0], sources[1], tmp_path, force=True)
    assert contents(folder) == contents(compared)


def test_force_keeps_what_was_stitched_with_the_same_weights(
    sources: tuple[Path, Path], compared: Path, tmp_path: Path
) -> None:
    folder = copied(compared, tmp_path)
    (folder / STITCHING).write_text("[]")
    listener = CompareListener()
    quick_compare(*sources, tmp_path, listener, force=True)
    assert listener.kinds == [*KINDS]
    assert sorted(contents(folder)) == sorted([*FILES, STITCHING])


def test_too_few_tokens_leave_nothing_behind(sources: tuple[Path, Path], tmp_path: Path) -> None:
    with pytest.raises(BuildError, match=r"one and other have 481 tokens in common .* needs at least 1000"):
        quick_compare(*sources, tmp_path, least_tokens=1000)
    assert [*tmp_path.iterdir()] == []
