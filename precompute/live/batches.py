"""Group the prompts that run together: those of similar length, as many as fit, and fewer if memory runs out."""

from collections.abc import Callable, Sequence
from typing import TypeVar

import torch

from lexiscope.precompute.device import is_out_of_memory
from lexiscope.precompute.errors import LexiscopeError, first_line
from lexiscope.precompute.live.wire.errors import NoMemory

MOST_PASS_TOKENS = 4096  # most tokens of one pass, padding included
PADDING_SHARE = 0.25  # most of a pass that may be padding

Job = TypeVar("Job")
Answer = TypeVar("Answer")


def of_like_length(lengths: Sequence[int], rows: Sequence[int]) -> list[list[int]]:
    """Return the positions of prompts in their list, in groups of similar length. `lengths` are in tokens; `rows` says
    how many runs each prompt needs."""
    groups: list[list[int]] = []
    longest = count = 0
    for number in sorted(range(len(lengths)), key=lambda n: -lengths[n]):
        fits = (
            groups
            and lengths[number] >= (1 - PADDING_SHARE) * longest
            and (count + rows[number]) * longest <= MOST_PASS_TOKENS
        )
        if fits:
            groups[-1].append(number)
            count += rows[number]
        else:
            groups.append([number])
            longest, count = lengths[number], rows[number]
    return groups


def free_memory(device: torch.device) -> None:
    """Give memory back that torch keeps for later."""
    if device.type == "cuda":
        torch.cuda.empty_cache()


def halving(
    jobs: Sequence[Job], run: Callable[[Sequence[Job]], list[Answer]], retry: Callable[[], None]
) -> list[Answer | LexiscopeError]:
    """Answer all jobs at once; if memory runs out, answer each half of them by itself. `retry` frees what memory it
    can."""
    try:
        return list(run(jobs))
    except (MemoryError, RuntimeError) as error:
        if not is_out_of_memory(error):
            raise
        why = first_line(error)
    retry()  # not in the `except`, where the error would still keep the tensors of the run in memory
    if len(jobs) == 1:
        return [NoMemory(f"not enough memory for this prompt ({why}): a shorter one, or fewer panels, needs less")]
    middle = len(jobs) // 2
    return halving(jobs[:middle], run, retry) + halving(jobs[middle:], run, retry)
