"""Tokens as markup: what they hold is visible, and can do no harm."""

from html import unescape

import pytest

from app.html.markup import chip, chips, grouped, pair, plain, ticked
from app.views.token_text import shown
from tests.support.pages import parsed


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (" dog", "␣dog"),
        ("    ", "␣␣␣␣"),
        ("\n\t", "\\n\\t"),
        ("\x00\x7f", "\\x00\\x7f"),
        ("\u202egnp", "\\u202egnp"),
        ("\u0301", "\N{DOTTED CIRCLE}\u0301"),
        ("\U000e0001", "\\U000e0001"),
        ("", "(no text)"),
        ("שלום", "שלום"),
        ("<script>", "<script>"),
        (" consequently", "␣consequently"),
        ('"><img src=x onerror=y>', '"><img␣src=x␣onerror=y>'),
    ],
)
def test_shown(text: str, expected: str) -> None:
    """A token that a list may cut is whole in its title."""
    assert shown(text) == expected
    link = chip("m", {"id": 7, "token": text})
    assert [element.tag for element in parsed(link).elements if element.tag != "i"] == ["a", "bdi"]
    _, inside = link.removesuffix("</bdi></a>").split("<bdi", 1)
    title, text = inside.split(">", 1)
    assert unescape(text.replace("<i>", "").replace("</i>", "")) == expected
    assert unescape(title) == (f' title="{expected}"' if len(expected) > 9 else "")


@pytest.mark.parametrize("text", [" a", "a ", " a b ", "␣", " ␣a", "a", '"><img src=x>', "&amp;", "{{x}}"])
def test_outer_spaces_are_set_apart(text: str) -> None:
    elements = parsed(chip("m", {"id": 7, "token": text})).elements
    assert {element.tag for element in elements} <= {"a", "bdi", "i"}
    assert "".join(element.text for element in elements) == shown(text)


@pytest.mark.parametrize(
    ("model", "lens", "href"),
    [
        ("gpt2", "dot", "/gpt2/token/7"),
        ("gpt2", "cosine", "/gpt2/token/7?lens=cosine"),
        ('a"b', "dot", "/a%22b/token/7"),
    ],
)
def test_chips_lead_to_their_token(model: str, lens: str, href: str) -> None:
    assert parsed(chips(model, [{"id": 7, "token": "x"}], lens)).links() == [href]


def test_pairs() -> None:
    a, b, c = ({"id": n, "token": text} for n, text in enumerate((" a", " b", "\n")))
    first, second, third = (
        {"from": a, "to": b, "score": 3.0},
        {"from": b, "to": a, "score": 2.0},
        {"from": a, "to": c, "score": 1.0},
    )
    assert parsed(pair("m", first)).links() == ["/m/token/0", "/m/token/1"]  # type: ignore[arg-type]
    assert grouped([first, second, third]) == [(a, [first, third]), (b, [second])]  # type: ignore[list-item]
    assert plain([a, b, c]) == "a, b, \\n"  # type: ignore[list-item]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("run `lexiscope demo` <now>", "run <code>lexiscope demo</code> &lt;now&gt;"),
        ("an odd ` tick & more", "an odd ` tick &amp; more"),
        ("`<b>`", "<code>&lt;b&gt;</code>"),
    ],
)
def test_ticked(text: str, expected: str) -> None:
    assert ticked(text) == expected
