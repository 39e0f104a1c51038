"""Which prompts run together, and what happens when memory runs out."""

from collections.abc import Sequence

import pytest
import torch

from lexiscope.precompute.live import batches
from lexiscope.precompute.live.batches import halving, of_like_length
from lexiscope.precompute.live.wire.errors import NoMemory


@pytest.mark.parametrize(("lengths", "groups"), [
    ([], []), ([5], [[0]]), ([8, 8, 7, 6], [[0, 1, 2, 3]]),
    ([8, 100, 7, 90, 74], [[1, 3], [4], [0, 2]]),
])  # fmt: skip
def test_prompts_of_like_length_run_together(lengths: list[int], groups: list[list[int]]) -> None:
    assert of_like_length(lengths, [1] * len(lengths)) == groups


def test_a_pass_has_a_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(batches, "MOST_PASS_TOKENS", 30)
    assert of_like_length([10, 10, 10, 10], [1, 1, 1, 1]) == [[0, 1, 2], [3]]
    assert of_like_length([10, 10, 10], [2, 2, 1]) == [[0], [1, 2]]
    assert of_like_length([50, 50], [1, 1]) == [[0], [1]]


ERRORS = [torch.OutOfMemoryError("CUDA out of memory"), RuntimeError("can't allocate memory: 3 bytes"), MemoryError()]


@pytest.mark.parametrize("error", ERRORS, ids=lambda error: type(error).__name__)
@pytest.mark.parametrize("fits", [0, 1, 2, 3, 10])
def test_where_memory_runs_out_halves_are_tried(error: Exception, fits: int) -> None:
    sizes, freed = [], []

    def run(jobs: Sequence[int]) -> list[int]:
        sizes.append(len(jobs))
        if len(jobs) > fits:
            raise error
        return [10 * job for job in jobs]

    found = halving([1, 2, 3, 4, 5], run, lambda: freed.append(True))
    if fits:
        assert found == [10, 20, 30, 40, 50]
    else:
        assert all(isinstance(each, NoMemory) and "shorter" in str(each) for each in found)
        assert len(found) == 5
    assert len(freed) == sum(size > fits for size in sizes)


def test_other_errors_are_not_hidden() -> None:
    def run(_: Sequence[int]) -> list[int]:
        raise RuntimeError("shapes do not fit")

    with pytest.raises(RuntimeError, match="shapes"):
        halving([1, 2], run, lambda: None)
