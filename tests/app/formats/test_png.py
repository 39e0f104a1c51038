"""Pictures of a page's words: size, and tokens that the font has no letters for."""

import struct
from typing import Any

import pytest

from lexiscope.app.formats.png import HEIGHT, WIDTH, Picture, as_png


def drawn(*entries: Any, title: str = "L1N2") -> bytes:
    words = [entry if isinstance(entry, tuple) else (entry,) for entry in entries]
    return as_png(Picture(title, "neuron 2 of layer 1", [("value writes", words)]))


def test_a_picture_has_the_size_that_chats_expect() -> None:
    png = drawn("dog", " cat", ("Paris", " France"))
    assert (png[:8], png[12:16]) == (b"\x89PNG\r\n\x1a\n", b"IHDR")
    assert struct.unpack(">II", png[16:24]) == (WIDTH, HEIGHT)


@pytest.mark.parametrize("token", [
    "", " ", "\n\n", "\x00", "\x7f", "a\nb", "\xa0", "日本", "🐕", "عرب", "\u202etop", "a\u0301", "\ufffd",
    "\U0010ffff", " dog ", ("dog", "日本"),
])  # fmt: skip
def test_what_the_font_cannot_draw_is_left_out_and_each_word_is_there_once(token: Any) -> None:
    assert drawn("dog", token, "cat") == drawn("dog", "cat")


@pytest.mark.parametrize("token", ["<script>alert(1)</script>", "=cmd()", "%s{}"])
def test_any_other_text_is_drawn(token: str) -> None:
    assert drawn(token) not in (drawn(), drawn("dog"))


def test_long_words_are_cut() -> None:
    assert drawn("W" * 100_000, title="W" * 100_000) == drawn("W" * 200, title="W" * 200)


def test_no_word_is_drawn_beyond_the_picture() -> None:
    many = [f"word{at}" for at in range(400)]
    assert drawn(*many) == drawn(*many[:200])
    assert as_png(Picture("", "", [])) != as_png(Picture("", "", [("empty", [])]))
