"""Weights and coefficients as visitors type them: how they look, how large they may be, how they are written back."""

from decimal import Decimal

from precompute.errors import BadRequest

LARGEST = 1e6
NUMBER = r"[0-9]+(?:\.[0-9]*)?|\.[0-9]+"  # a pattern; signs are for whoever uses it


def checked_size(value: float) -> float:
    """The same number, unless it is too large for a weight or a coefficient."""
    if abs(value) > LARGEST:
        raise BadRequest(f"{value:g} is too large: numbers go up to {LARGEST:g}")
    return value


def write_number(value: float) -> str:
    """A number as people write it, without an exponent."""
    return f"{Decimal(f'{value:.12g}'):f}"
