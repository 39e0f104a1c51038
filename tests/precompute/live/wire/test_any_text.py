"""Whatever visitors type is read or refused, and what is written back is read as the same."""

from collections.abc import Callable
from functools import partial
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lexiscope.precompute.errors import BadRequest
from lexiscope.precompute.live.wire.grammar import (
    parse_off,
    parse_pairs,
    parse_replaced,
    parse_set,
    parse_terms,
    write_off,
    write_pairs,
    write_set,
    write_terms,
)

READERS: dict[str, tuple[Callable[[str], Any], Callable[[Any], str]]] = {
    "words": (parse_terms, write_terms), "pairs": (parse_pairs, write_pairs), "off": (parse_off, write_off),
    "set": (parse_set, write_set), "mean": (partial(parse_replaced, "mean"), write_off),
}  # fmt: skip


@pytest.mark.parametrize("what", READERS)
@given(text=st.text(max_size=60))
def test_any_text_is_read_or_refused(what: str, text: str) -> None:
    read, write = READERS[what]
    try:
        meant = read(text)
    except BadRequest:
        return
    assert read(write(meant)) == meant


@pytest.mark.parametrize("number", ["0.00001", "100000", "0.5", "123456.789"])
def test_numbers_are_written_as_they_are_read(number: str) -> None:
    assert write_terms(parse_terms(f"dog, {number}*cat")) == f"dog + {number}*cat"
    assert write_set(parse_set(f"29.1240:{number}")) == f"29.1240:{number}"
