"""What may stop a live computation besides a wrong question (NotFound and BadRequest of precompute/errors.py)."""

import torch

from precompute.errors import LexiscopeError


class NoMemory(LexiscopeError):
    """The device has too little memory even for one question alone."""


class Cancelled(Exception):
    """Nobody waits for the answer any more; not an error that a user sees."""


def out_of_memory(error: BaseException) -> bool:
    """Of most of torch's errors only the text tells."""
    said = str(error)
    known = isinstance(error, MemoryError | torch.OutOfMemoryError)
    return known or "not enough memory" in said or "can't allocate memory" in said or "out of memory" in said
