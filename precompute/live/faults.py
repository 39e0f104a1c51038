"""What may stop a live computation besides a wrong question, which is NotFound or BadRequest."""

from precompute.errors import LexiscopeError


class NoMemory(LexiscopeError):
    """The device has too little memory even for one question alone."""


class Cancelled(Exception):
    """Nobody waits for the answer any more; not an error that a user sees."""
