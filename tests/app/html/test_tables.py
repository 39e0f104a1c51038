"""Tables as HTML: what each kind of column writes, and that hostile text stays text."""

import pytest
from markupsafe import Markup

from lexiscope.app.formats.pair_tables import pair_groups, pair_list
from lexiscope.app.formats.table import Column, Kind, Table, token_list
from lexiscope.app.html.tables import html
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
    assert page.links() == ["/m/token/1", "/m/token/3"]
    assert HOSTILE not in written
    assert "<caption>top</caption>" in written


def test_a_list_without_its_hubs_keeps_their_ranks() -> None:
    written = html(token_list([{**DOG, "score": 2.0, "rank": 4}]), "list", model="m")
    assert "<td>4<td>" in written


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
