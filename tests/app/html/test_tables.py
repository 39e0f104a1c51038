"""Tables, numbers and tokens as HTML: what each kind of column writes, and that hostile text stays text."""

from collections.abc import Callable
from html import unescape

import pytest
from markupsafe import Markup

from lexiscope.app.formats.pair_tables import pair_groups, pair_list
from lexiscope.app.formats.table import Column, Kind, Table, token_list
from lexiscope.app.html.numbers import BAR_STEPS, bar, heat, number, percent, rank_heat, ratio, score, short_rank
from lexiscope.app.html.tables import html
from lexiscope.app.html.tokens import chip, plain, seed_words
from lexiscope.app.lists.view import Token, visible
from lexiscope.app.pages.page import find_pages
from tests.support.pages import parsed

HOSTILE = "<script>alert(1)</script>"
DOG, LION, EVIL = ({"id": at, "token": text} for at, text in ((1, " dog"), (2, " lion"), (3, HOSTILE)))

find_pages()  # chips link to pages of tokens


def pair(first: dict[str, object], second: dict[str, object], score: float) -> dict[str, object]:
    return {"from": first, "to": second, "score": score}


def test_a_list_of_tokens_has_ranks_bars_and_dots() -> None:
    entries = [{**DOG, "score": 2.0}, {**EVIL, "score": -1.0}]
    written = html(token_list(entries), "list top", Markup("top"), model="m", row_id="ff_key-t", marked={3})
    page = parsed(written)
    assert [row.attributes.get("id") for row in page.all("tr")] == [None, "ff_key-t1", "ff_key-t3"]
    assert [row.attributes.get("class") for row in page.all("tr")] == [None, None, "m"]
    assert [cell.attributes.get("data-bar") for cell in page.all("td")] == [None, None, "50", None, None, "25"]
    assert page.links() == ["#ff_key-t1", "/m/token/1", "#ff_key-t3", "/m/token/3"]
    assert [link.attributes.get("aria-label") for link in page.all("a", tabindex="-1")] == [
        "Link to row 1",
        "Link to row 2",
    ]
    assert HOSTILE not in written
    assert "<caption>top</caption>" in written


def test_a_list_without_its_hubs_keeps_their_ranks() -> None:
    written = html(token_list([{**DOG, "score": 2.0, "rank": 4}]), "list", model="m")
    assert "<td>4<td>" in written
    linked = parsed(html(token_list([{**DOG, "score": 2.0, "rank": 4}]), "list", model="m", row_id="t"))
    assert [(link.attributes["href"], link.text) for link in linked.all("a", tabindex="-1")] == [("#t1", "4")]


def test_pairs_and_groups_of_pairs() -> None:
    pairs = [pair(DOG, LION, 3.0), pair(LION, DOG, 2.0), pair(DOG, EVIL, 1.0)]
    listed = parsed(html(pair_list(pairs, "vo"), "list pairs", row_id="t", model="m"))  # type: ignore[arg-type]
    assert [row.attributes.get("id") for row in listed.all("tr")][1:] == ["t1-2", "t2-1", "t1-3"]
    grouped = parsed(html(pair_groups(pairs, "vo"), "list groups", model="m"))  # type: ignore[arg-type]
    assert grouped.links() == [f"/m/token/{token}" for token in (1, 2, 3, 2, 1)]
    assert "no pairs" in html(pair_list([], "qk"), "list pairs", empty="no pairs")


@pytest.mark.parametrize(("kind", "value", "cell"), [
    ("text", HOSTILE, "<td>&lt;script&gt;alert(1)&lt;/script&gt;"),
    ("text", None, "<td>"),
    ("number", 3, '<td class="n">3'),
    ("number", -0.5, '<td class="n">−0.500'),
    ("number", None, '<td class="n">–'),
    ("ratio", 0.5, '<td class="n" data-heat="4">.50'),
    ("ratio", None, '<td class="n">–'),
    ("change", 0.0, '<td class="n">unchanged'),
    ("tokens", None, "<td>"),
    ("address", 7, '<th scope="row" class="n">7'),
    ("address", "L1", '<th scope="row">L1'),
])  # fmt: skip
def test_what_a_cell_holds(kind: Kind, value: object, cell: str) -> None:
    written = html(Table("", (Column("x", kind),), [{"x": value}]))
    assert f"<tr>{cell}\n" in written


def test_one_cell_may_take_the_place_of_the_others() -> None:
    columns = (
        Column("name", "address", link=lambda row: f"/m?a={row['name']}&b"),
        Column("n", "number", instead=lambda row: row["why"]),
        Column("o", "number"),
    )
    rows = [{"name": "a", "why": "", "n": 1, "o": 2}, {"name": "b", "why": "<none>: `run` it", "n": None, "o": None}]
    written = html(
        Table("", columns, rows), "grid", "hidden", cells={"o": lambda row, _: Markup("<b>{}</b>").format(row["o"])}
    )
    assert '<caption class="u">hidden</caption>' in written
    assert '<tr><th scope="row"><a href="/m?a=a&amp;b">a</a><td class="n">1<td class="n"><b>2</b>' in written
    assert '<td colspan="2" class="none">&lt;none&gt;: <code>run</code> it' in written


@pytest.mark.parametrize(("write", "written"), [
    (number, {1.5: "1.500", -0.25: "−0.250", 0.0: "0.000", 123.4567: "123.457"}),
    (ratio, {0.123: ".12", 1.0: "1.00", None: "–", -0.2: "−.20", -0.001: ".00", 0.999: "1.00"}),
    (percent, {1.0: "100%", 0.9996: "100%", 0.9: "90%", 0.0995: "10%", 0.0512: "5.1%", 0.0004: "<0.1%", 0.0: "<0.1%"}),
    (short_rank, {1.0: "1", 7.5: "7.5", 43.4: "43", 999.6: "1.0k", 1234: "1.2k", 23456: "23k"}),
])  # fmt: skip
def test_numbers(write: Callable[[float | None], str], written: dict[float | None, str]) -> None:
    assert {value: write(value) for value in written} == written


@pytest.mark.parametrize(("write", "written"), [
    (score, {(0.006584, 0.006584): ".00658", (-0.0234, 0.05): "−.0234", (0.0, 0.0): "0.000",
             (1.23456, 9.9): "1.235", (-1.23456, 9.9): "−1.235", (1.23456, 99): "1.23", (12.3456, 999): "12.3",
             (12.3, 1e4): "12"}),
    (heat, {(0, 1): 0, (1, 1): 8, (0.5, 1): 4, (2, 1): 8, (-1, 1): 0, (None, 1): 0, (0.3, 0.3): 8}),
    (bar, {(2, 2): BAR_STEPS, (-2, 2): BAR_STEPS, (1, 2): 25, (0, 2): 0, (0, 0): 0}),
    (rank_heat, {(1.0, 10_000): 8, (0.5, 10_000): 8, (50.0, 10_000): 3, (500.0, 10_000): 0, (9999.0, 10_000): 0}),
])  # fmt: skip
def test_numbers_beside_their_peak(
    write: Callable[[float | None, float], object], written: dict[tuple[float | None, float], object]
) -> None:
    """For ranks, the upper bound is a twentieth of all tokens."""
    assert {(value, peak): write(value, peak) for value, peak in written} == written


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
