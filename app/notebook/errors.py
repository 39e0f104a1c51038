"""The errors that only a notebook can raise; all other errors are in precompute/errors.py.

LexiscopeError
├── Unreachable    no server answers at an address, or something else does
├── NeedsIndex     a question that a server's pages do not answer: it takes the index itself
└── NeedsPackage   pandas, polars, pyarrow or torch is not installed
"""

from collections.abc import Iterator
from contextlib import contextmanager

from lexiscope.precompute.errors import LexiscopeError, NotFound


class Unreachable(LexiscopeError):
    """No server answers at the address, or the answer comes from something other than Lexiscope."""


class NeedsIndex(LexiscopeError):
    """The question needs the index itself, but this model is read from a server."""


class NeedsPackage(LexiscopeError):
    """A package is not installed; the message names it and the command that installs it."""


def no_such_text(text: str, model: str) -> NotFound:
    """Return the error for a token that was asked for by its exact text and does not exist."""
    return NotFound(
        f"no token of {model} is exactly {text[:100]!r}: a word without a space before it is looked for as on the "
        "site, and ids such as 2767 work, too"
    )


@contextmanager
def needed_for(what: str, install: str) -> Iterator[None]:
    """Raise NeedsPackage if a package that is imported in this block is not installed."""
    try:
        yield
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] == "lexiscope":
            raise  # the missing module is no package of a user, but an error of the program
        raise NeedsPackage(f"{what} needs {error.name}, which is not installed: pip install {install}") from None
