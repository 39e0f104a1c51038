"""Tokens as chips: what they hold is visible, and can do no harm."""

from html import unescape

import pytest

from lexiscope.app.html.tokens import chip, plain, seed_words
from lexiscope.app.lists.view import Token, visible
from tests.support.pages import parsed


@pytest.mark.parametrize(("text", "expected"), [
    (" dog", "␣dog"), ("    ", "␣␣␣␣"), ("\n\t", "\\n\\t"), ("\x00\x7f", "\\x00\\x7f"), ("\u00a0", "\\u00a0"),
    (r"\xa0", r"\xa0"),  # the byte A0, which is no text by itself
    ("\u202egnp", "\\u202egnp"), ("\u0301", "\N{DOTTED CIRCLE}\u0301"), ("\U000e0001", "\\U000e0001"),
    ("", "(no text)"), ("שלום", "שלום"), ("<script>", "<script>"), (" consequently", "␣consequently"),
    ('"><img src=x onerror=y>', '"><img␣src=x␣onerror=y>'),
])  # fmt: skip
def test_visible(text: str, expected: str) -> None:
    """A token that a list may cut is whole in its title."""
    assert visible(text) == expected
    link = chip({"id": 7, "token": text}, "m")
    assert [element.tag for element in parsed(link).elements if element.tag != "i"] == ["a", "bdi"]
    _, inside = link.removesuffix("</bdi></a>").split("<bdi", 1)
    title, text = inside.split(">", 1)
    assert unescape(text.replace("<i>", "").replace("</i>", "")) == expected
    assert unescape(title) == (f' title="{expected}"' if len(expected) > 9 else "")


@pytest.mark.parametrize("text", [" a", "a ", " a b ", "␣", " ␣a", "a", '"><img src=x>', "&amp;", "{{x}}", "##a"])
def test_outer_spaces_are_set_apart(text: str) -> None:
    elements = parsed(chip({"id": 7, "token": text}, "m")).elements
    assert {element.tag for element in elements} <= {"a", "bdi", "i"}
    assert "".join(element.text for element in elements) == visible(text)


@pytest.mark.parametrize(("text", "inside"), [
    ("##ing", "<i>##</i>ing"), ("##é", "<i>##</i>é"), ("##", "##"), ("###", "###"), (" ##a", "<i>␣</i>##a"),
])  # fmt: skip
def test_the_mark_of_a_piece_is_set_apart(text: str, inside: str) -> None:
    assert f"<bdi>{inside}</bdi>" in chip({"id": 7, "token": text}, "m")


def test_seed_words() -> None:
    texts = (" Dog", "dog", "x", " cat", "12", " lion", "\n", "horse", " mouse")
    assert seed_words({"id": n, "token": text} for n, text in enumerate(texts)) == "Dog,cat,lion,horse"


def test_titles_hold_no_control_characters() -> None:
    tokens: list[Token] = [{"id": 1, "token": " dog"}, {"id": 2, "token": "a\x00b"}, {"id": 3, "token": "\x1b[1m"}]
    assert plain(tokens).isprintable()
    assert plain(tokens).startswith("dog, ")
