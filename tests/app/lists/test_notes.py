"""What is said beside a head's lists, by what its model is."""

from dataclasses import replace

import pytest

from lexiscope.app.lists.notes import head_note, neuron_note, pairs_note, subhead_note
from lexiscope.precompute.shape import Shape

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


def test_what_lists_leave_out_is_said_where_it_applies() -> None:
    """Of scores beside QK, of what is written beside VO and neurons, both beside a head."""
    shape = replace(ROTARY, left_out=("a cap", "a norm"), left_out_writing=("another norm",))
    scores, written = "These lists leave out a cap, and a norm.", "These lists leave out another norm."
    assert scores in pairs_note(shape, "qk", 0)
    assert pairs_note(shape, "vo", 0) == neuron_note(shape) == written
    for note in (head_note(shape, 0), subhead_note(shape, 0, 1)):
        assert "These lists leave out a cap, and a norm, and another norm." in note
    assert "leave out" not in head_note(ROTARY, 0) + neuron_note(ROTARY)
