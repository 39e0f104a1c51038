"""Choose where to compute: on the device that was asked for, if it can be used here."""

import torch

from lexiscope.precompute.errors import BuildError, first_line


def pick_device(asked: str) -> torch.device:
    if asked == "auto":
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    try:
        device = torch.device(asked)
        torch.zeros(1, device=device).item()
    except (RuntimeError, AssertionError, NotImplementedError, ImportError) as error:
        raise BuildError(f"device {asked!r} cannot be used here ({first_line(error)}); try auto or cpu") from None
    return device


def is_out_of_memory(error: BaseException) -> bool:
    """Return True if an error means that memory ran out; most errors of torch say so in their text alone."""
    text = str(error)
    known = isinstance(error, MemoryError | torch.OutOfMemoryError)
    return known or "not enough memory" in text or "can't allocate memory" in text or "out of memory" in text
