"""What views list, as tables for people, and these written out; rows for programs are in test_csv_format.py."""

import re
from pathlib import Path

import pytest
from starlette.testclient import TestClient

from lexiscope.app.formats.table import Column, Table
from lexiscope.app.formats.text_formats import Source, as_markdown
from lexiscope.app.pages import layer
from lexiscope.precompute.index.index import Index
from tests.support.pages import parsed
from tests.support.site import GPT2, LLAMA
from tests.support.tables import NASTY
from tests.support.views import neuron_view

SOURCE = Source("http://x/y?z=1", "weights 12, index 34")


@pytest.fixture(scope="module")
def index(site_data: Path) -> Index:
    return Index.open(site_data / LLAMA)


def nasty_table(title: str, score: float) -> Table:
    columns = (Column("#", "number"), Column("token", "token"), Column("score", "number"))
    rows = [{"#": at, "token": {"id": at, "token": token}, "score": score} for at, token in enumerate(NASTY)]
    return Table(title, columns, rows)


def test_twins_leave_out_how_the_page_shows_it(client: TestClient) -> None:
    path = f"/{GPT2}/head/1/2/vo"
    answer = client.get(f"{path}?group=from&lens=cosine")
    assert f"{path}.csv?lens=cosine>" in answer.headers["link"]
    assert f'{path}.tex?lens=cosine"' in answer.text
    assert "group" not in client.get(f"{path}.json?group=from").headers["link"].partition(",")[2]
    links = client.get(f"/{GPT2}/layer/1?page=2&lens=cosine").headers["link"]  # a CSV has all pages
    assert f"</{GPT2}/layer/1.csv?lens=cosine>" in links
    assert f"</{GPT2}/layer/1.md?lens=cosine&page=2>" in links


def test_markdown_is_one_table_whatever_tokens_hold() -> None:
    text = as_markdown([nasty_table("a|b", -0.12345)], SOURCE)
    title, _, head, rule, *body = text.splitlines()
    assert (title, head, rule) == ("**a\\|b**", "| \\# | token | score |", "| ---: | --- | ---: |")
    assert body[-1] == "Source: <http://x/y?z=1>, weights 12, index 34"
    cells = [re.split(r"(?<!\\)(?:\\\\)*\|", line) for line in body[: len(NASTY)]]
    assert {len(cell) for cell in cells} == {5}
    assert all(cell[3].strip() == "-0.123" for cell in cells)
    assert cells[0][2].strip() == "␣dog"
    assert cells[1][2].strip() == "\\<script\\>"


def test_lists_and_pairs_of_tokens() -> None:
    a, b, c, d = ({"id": at, "token": token} for at, token in enumerate(("a", "b_", " c", "\u00a0")))
    columns = (Column("x", "tokens"), Column("y", "pairs"), Column("z", "words"))
    rows = [
        {"x": [a, b], "y": [{"from": a, "to": c}, {"from": b, "to": d}], "z": [a, b]},
        {"x": None, "y": [], "z": []},
    ]
    table = Table("t", columns, rows)
    assert r"| a  b\_ | a → ␣c  b\_ → \\u00a0 | a  b\_ |" in as_markdown([table], SOURCE)


def test_where_is_one_column(client: TestClient) -> None:
    text = client.get(f"/{GPT2}/token/300.md").text
    assert "| where | rank | score | first tokens of its list |" in text
    assert re.search(r"^\| L[12]N\d+ \| \d+ \|", text, re.MULTILINE)
    assert re.search(r"^\| L[12]H\d+\.\d+ \| \d+ \|", text, re.MULTILINE)
    assert "| where | kind | end | ranks | tokens |" in client.get(f"/{GPT2}/search.md?q=e").text
    found = client.get(f"/{GPT2}/search.md?q=e&kind=vo&lens=cosine").text
    assert "| where | matrix | reads or query | writes or key | end | preset | rank | score |" in found


def test_titles_and_headings(client: TestClient, index: Index) -> None:
    titles = [table.title for table in neuron_view(index, 0, 3, "cosine", 2).tables() if table.audience == "people"]
    assert titles == [f"{LLAMA}, layer 0, neuron 3, {vector} (cosine)" for vector in ("key", "up", "value")]
    text = client.get(f"/{LLAMA}/head/0/1.md").text
    assert f"**{LLAMA}, layer 0, head 1, vo, top (dot, all)**" in text
    assert "| \\# | reads | writes | score |" in text
    assert "| \\# | query | key | score |" in text
    assert "| subhead | q | k | v | o |" in text


@pytest.mark.parametrize("face", ["md", "tex"])
def test_a_table_says_where_it_comes_from(client: TestClient, index: Index, face: str) -> None:
    text = client.get(f"/{LLAMA}/ff/1/5.{face}?k=3").text
    assert f"http://testserver/{LLAMA}/ff/1/5?k=3" in text
    assert index.manifest.build in text
    assert index.manifest.weights_sha256[:12] in text


def test_a_new_column_of_the_layer_table_is_one_line(client: TestClient, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is in every format at once, the page included: all come from one declaration."""
    twice = Column("twice", "number", get=lambda row: 2 * row["neuron"])
    monkeypatch.setattr(layer, "LAYER_COLUMNS", (*layer.LAYER_COLUMNS, twice))
    assert ",twice,model,layer,lens,build\r\n" in client.get(f"/{GPT2}/layer/1.csv").text
    for format_ in ("md", "tex"):
        assert "twice" in client.get(f"/{GPT2}/layer/1.{format_}").text
    page = parsed(client.get(f"/{GPT2}/layer/1").text)
    assert "twice" in [heading.text.strip() for heading in page.all("th")]
    assert "2" in [cell.text.strip() for cell in page.all("td")]


def test_people_see_the_end_of_a_value_that_its_key_agrees_with(client: TestClient) -> None:
    """Programs have both ends."""
    rows = client.get(f"/{GPT2}/layer/1.json?sort=similarity").json()["rows"]
    lines = [line for line in client.get(f"/{GPT2}/layer/1.md?sort=similarity").text.splitlines() if "| " in line][2:]
    assert len(lines) == len(rows)
    ends = set()
    for row, line in zip(rows, lines, strict=True):
        end = "bottom" if row["similarity_bottom"] > max(row["similarity"], 0.0499999) else "top"
        ends.add(end)
        assert line.split(" | ")[3] == end
        shown = row["value_bottom"] if end == "bottom" else row["value"]
        words = [entry["token"].strip() for entry in shown if entry["token"].strip().isalnum()]
        assert all(word in line.split(" | ")[2] for word in words)
    assert ends == {"top", "bottom"}
    assert "value_bottom_5_id" in client.get(f"/{GPT2}/layer/1.csv").text.splitlines()[0]
