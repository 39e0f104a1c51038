"""What views list, as rows for programs (records) and as tables for people (tables), and both written out."""

import csv
import io
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from starlette.testclient import TestClient

from app.records import records
from app.table_text import Source, Table, as_csv, as_latex, as_markdown
from app.tables import tables
from app.token_text import shown
from app.view_types import SeedsView, VectorView, View
from app.views.parameters import ff_view, pairs_view
from precompute.index import Index
from tests.site import GPT2, LLAMA

SOURCE = Source("http://x/y?z=1", "weights 12, index 34")
NASTY = [
    " dog",
    "<script>",
    "a|b",
    "`x`",
    "\\",
    "*b*_c_",
    "a\nb",
    "\x00",
    "100%",
    "$x^2_~{}&#",
    '"q"',
    "--",
    "‮abc",
    "é",
    "",
]


@pytest.fixture(scope="module")
def index(site_data: Path) -> Index:
    return Index.open(site_data / LLAMA)


def rows(client: TestClient, path: str) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(client.get(path).text, newline="")))


def test_csv_of_a_neuron_holds_all_its_lists(client: TestClient) -> None:
    path = f"/{LLAMA}/ff/1/5"
    view, found = client.get(f"{path}.json").json(), rows(client, f"{path}.csv")
    for vector in ("key", "up", "value"):
        for end in ("top", "bottom"):
            listed = [row for row in found if (row["vector"], row["end"]) == (vector, end)]
            assert [int(row["rank"]) for row in listed] == list(range(1, 26))
            assert [
                {"id": int(row["token_id"]), "token": row["token"], "score": float(row["score"])} for row in listed
            ] == view[vector][end]


def test_csv_of_pairs(client: TestClient) -> None:
    path = f"/{GPT2}/head/1/2/qk"
    view, found = client.get(f"{path}.json").json(), rows(client, f"{path}.csv")
    assert [(int(row["from_id"]), row["to"], float(row["score"])) for row in found if row["end"] == "top"] == [
        (pair["from"]["id"], pair["to"]["token"], pair["score"]) for pair in view["pairs"]
    ]


@pytest.mark.parametrize(("path", "total"), [
    (f"/{GPT2}/layer/1", lambda view: len(view["rows"])),
    (f"/{GPT2}/token/300", lambda view: sum(len(role["places"]) for role in view["roles"]) + len(view["pairs"])),
    (f"/{GPT2}/search?q=dog", lambda view: len(view["matches"])),
    (f"/{GPT2}", lambda view: sum(len(row["vo"]) + len(row["qk"]) for row in view["rows"])),
    ("/index", lambda view: len(view["models"])),
])  # fmt: skip
def test_csv_leaves_nothing_out(client: TestClient, path: str, total: Callable[[Any], int]) -> None:
    path, mark, query = path.partition("?")
    view = client.get(f"{path}.json{mark}{query}").json()
    assert len(rows(client, f"{path}.csv{mark}{query}")) == total(view) > 0


def test_csv_keeps_tokens_as_they_are() -> None:
    text = as_csv({"token": token, "id": at} for at, token in enumerate(NASTY))
    assert [row["token"] for row in csv.DictReader(io.StringIO(text, newline=""))] == NASTY
    assert as_csv([]) == ""


def test_markdown_is_one_table_whatever_tokens_hold() -> None:
    table = Table("a|b", ("#", "token", "score"), [(at, shown(token), -0.12345) for at, token in enumerate(NASTY)])
    text = as_markdown([table], SOURCE)
    title, _, head, rule, *body = text.splitlines()
    assert (title, head, rule) == ("**a\\|b**", "| \\# | token | score |", "| ---: | --- | ---: |")
    assert body[-1] == "Source: <http://x/y?z=1>, weights 12, index 34"
    cells = [re.split(r"(?<!\\)(?:\\\\)*\|", line) for line in body[: len(NASTY)]]
    assert {len(cell) for cell in cells} == {5}
    assert all(cell[3].strip() == "-0.123" for cell in cells)
    assert cells[0][2].strip() == "␣dog"
    assert cells[1][2].strip() == "\\<script\\>"


def test_latex_has_no_loose_special_characters() -> None:
    table = Table("100% & more", ("#", "token", "score"), [(at, shown(token), -0.5) for at, token in enumerate(NASTY)])
    comments, tabular = as_latex([table], SOURCE).split("\n\n")
    assert comments == "% http://x/y?z=1\n% weights 12, index 34"
    lines = tabular.rstrip().splitlines()
    assert (lines[0], lines[-1]) == (r"\begin{tabular}{rlr}", r"\end{tabular}")
    body = lines[5:-2]
    assert len(body) == len(NASTY)
    for line in body:
        assert line.endswith(r"& $-0.500$ \\")
        cell = line.split(" & ", 1)[1].rsplit(" & ", 1)[0]
        left = re.sub(r"\\[{}$&#_%]|\\text[a-z]+\{\}|-\{\}-", "", cell)
        assert not set(left) & set('\\{}$&#^_~%<>|"`')
    assert body[0] == r"0 & \textvisiblespace{}dog & $-0.500$ \\"


def test_tables_have_rows_as_wide_as_their_heads(client: TestClient, index: Index) -> None:
    for view in (ff_view(index, 0, 3), pairs_view(index, "vo", 0, 1)):
        for table in tables(view):
            assert {len(row) for row in table.rows} == {len(table.columns)}
    assert [table.title for table in tables(ff_view(index, 0, 3, "cosine", 2))] == [
        f"{LLAMA}, layer 0, neuron 3, {vector} (cosine)" for vector in ("key", "up", "value")
    ]
    text = client.get(f"/{LLAMA}/head/0/1.md").text
    assert f"**{LLAMA}, layer 0, head 1, vo, top (dot, all)**" in text
    assert "| \\# | reads | writes | score |" in text
    assert "| \\# | query | key | score |" in text
    assert "| subhead | q | k | v | o |" in text


@pytest.mark.parametrize("face", ["md", "tex"])
def test_a_table_says_where_it_comes_from(client: TestClient, index: Index, face: str) -> None:
    text = client.get(f"/{LLAMA}/ff/1/5.{face}?k=3").text
    assert f"http://testserver/{LLAMA}/ff/1/5?k=3" in text
    assert index.manifest.build[:12] in text
    assert index.manifest.weights_sha256[:12] in text


@pytest.mark.parametrize("function", [records, tables])
def test_other_views_have_none(function: Callable[[View], Any]) -> None:
    for view in (SeedsView.of(), VectorView.of()):
        with pytest.raises(TypeError, match="no table"):
            function(view)
