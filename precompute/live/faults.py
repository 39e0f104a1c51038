"""What may stop a live computation besides a wrong question, which is NotFound or BadRequest."""

import torch

from precompute.errors import LexiscopeError


class NoMemory(LexiscopeError):
    """The device has too little memory even for one question alone."""


class Cancelled(Exception):
    """Nobody waits for the answer any more; not an error that a user sees."""


def out_of_memory(error: BaseException) -> bool:
    """Of most of torch's errors only the text tells."""
    text = str(error)
    known = isinstance(error, MemoryError | torch.OutOfMemoryError)
    return known or "not enough memory" in text or "can't allocate memory" in text or "out of memory" in text
