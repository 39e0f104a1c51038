"""What is said beside a head's lists, by what its model is."""

from dataclasses import replace

import pytest

from app.views.notes import head_note, pairs_note, subhead_note
from precompute.shape import Shape

LEARNED = Shape("bert", 2, 4, 4, 32, 8, 48, 99, gated=False, tied=True, positions="learned", causal=False)
ROTARY = replace(LEARNED, positions="rotary", causal=True)


@pytest.mark.parametrize(("d_rotary", "subhead", "said"), [
    (None, 1, "mix channel 1 with 5:"),
    (None, 6, "mix channel 6 with 2:"),
    (4, 1, "mix channel 1 with 3:"),
    (4, 3, "mix channel 3 with 1:"),
    (4, 4, "turn only the first 4 of 8 channels"),
    (4, 7, "turn only the first 4 of 8 channels"),
])  # fmt: skip
def test_which_channels_turn_together(d_rotary: int | None, subhead: int, said: str) -> None:
    assert said in subhead_note(replace(ROTARY, d_rotary=d_rotary), 0, subhead)


def test_learned_positions_turn_nothing() -> None:
    assert subhead_note(LEARNED, 0, 1) == ""
    assert pairs_note(LEARNED, "vo", 0) == ""
    assert "learned" in pairs_note(LEARNED, "qk", 0)


@pytest.mark.parametrize(("left_out", "said"), [
    ((), ""),
    (("the norms of queries and keys",), "Lists of heads leave out the norms of queries and keys."),
    (("a cap", "a norm"), "Lists of heads leave out a cap, and a norm."),
])  # fmt: skip
def test_what_lists_leave_out_is_said_on_every_page_of_a_head(left_out: tuple[str, ...], said: str) -> None:
    shape = replace(ROTARY, left_out=left_out)
    notes = [head_note(shape, 0), pairs_note(shape, "vo", 0), pairs_note(shape, "qk", 0), subhead_note(shape, 0, 1)]
    assert all(said in note for note in notes)
    assert all(("leave out" in note) == bool(left_out) for note in notes)
