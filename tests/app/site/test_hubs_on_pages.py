"""Hubs on every stored page: marked, or with `hubs=hide` left out of every list in every format, with true ranks."""

import csv
import io
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from starlette.testclient import TestClient

from lexiscope.app.urls import format_address
from lexiscope.precompute.build.inverted import invert_pairs
from lexiscope.precompute.index.manifest import Manifest
from lexiscope.precompute.shape import MATRICES
from tests.support.crowded import BYTE, DOG
from tests.support.crowded import crowded as crowd_lists
from tests.support.pages import parsed
from tests.support.site import visit
from tests.support.synthetic import D_VOCAB, make_manifest, rewrite_shard, write_index

HUBS = {DOG, BYTE}
LISTS = {
    "neuron": "/tiny/ff/1/3?k=12",
    "subhead": "/tiny/head/1/1/sub/2",
    "direction": "/tiny/head/1/1/svd/2",
    "pairs": "/tiny/head/1/0/vo?k=40",
    "head": "/tiny/head/1/0",
}
FIRST_TOKENS = {"layer": "/tiny/layer/1", "token": "/tiny/token/40", "search": "/tiny/search?q=%2340", "model": "/tiny"}
PAGES = LISTS | FIRST_TOKENS


@pytest.fixture(scope="module")
def crowded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[TestClient]:
    """Under dot most lists begin with two hubs, and under cosine none."""
    data: Path = tmp_path_factory.mktemp("crowded")
    folder = data / "tiny"
    manifest = write_index(folder, make_manifest(k=20, pairs=40))
    for layer in range(manifest.shape.n_layers):
        arrays = crowd_lists(manifest, layer, {"dot": (DOG, BYTE)}, 0.8)
        for matrix in MATRICES:
            cosine = arrays[f"{matrix}.ids"][:, 1]
            cosine[np.isin(cosine, [*HUBS])] = 41
            arrays[f"{matrix}.ids"][:, 0, :, :, ::3, 0] = DOG
            arrays[f"{matrix}.ids"][:, 0, :, :, ::4, 1] = BYTE
        ids, counts = ({matrix: arrays[f"{matrix}.{part}"] for matrix in MATRICES} for part in ("ids", "count"))
        rewrite_shard(folder, Manifest.load(folder), layer, arrays | invert_pairs(ids, counts, D_VOCAB))
    with visit(data) as visitor:
        yield visitor


def hidden(path: str) -> str:
    return f"{path}{'&' if '?' in path else '?'}hubs=hide"


def lists_in(value: Any, where: str = "") -> Iterator[tuple[str, list[dict[str, Any]]]]:
    """Every list by score in an answer, with its place."""
    if isinstance(value, dict):
        for name, part in value.items():
            yield from lists_in(part, f"{where}/{name}")
    elif isinstance(value, list):
        if value and isinstance(value[0], dict) and "score" in value[0] and ("id" in value[0] or "from" in value[0]):
            yield where, value
        for at, part in enumerate(value):
            yield from lists_in(part, f"{where}/{at}")


def ids(entry: dict[str, Any]) -> set[int]:
    return {entry["id"]} if "id" in entry else {entry["from"]["id"], entry["to"]["id"]}


@pytest.mark.parametrize("path", LISTS.values(), ids=LISTS)
def test_lists_lose_their_hubs_and_keep_their_ranks(crowded: TestClient, path: str) -> None:
    shown, without = (crowded.get(format_address(each, "json")).json() for each in (path, hidden(path)))
    assert "hubs" not in shown
    assert without["hubs"] == "hide"
    left = dict(lists_in(without))
    n_hidden = 0
    for where, entries in lists_in(shown):
        ranks = [rank for rank, entry in enumerate(entries, 1) if not ids(entry) & HUBS]
        n_hidden += len(entries) - len(ranks)
        kept = left.get(where, [])
        assert [entry.get("rank", at) for at, entry in enumerate(kept, 1)] == ranks
        assert [ids(entry) for entry in kept] == [ids(entries[rank - 1]) for rank in ranks]
    assert without["hubs_hidden"] == n_hidden > 0


@pytest.mark.parametrize("path", PAGES.values(), ids=PAGES)
@pytest.mark.parametrize("format", ["csv", "md", "tex"])
def test_no_format_has_them(crowded: TestClient, path: str, format: str) -> None:
    answer = crowded.get(format_address(hidden(path), format))
    assert answer.status_code == 200, answer.text
    if format == "csv":
        rows = list(csv.DictReader(io.StringIO(answer.text)))
        listed = {value for row in rows for name, value in row.items() if re.search(r"(token|from|to|_\d)_id$", name)}
        assert not listed & {str(hub) for hub in HUBS}


@pytest.mark.parametrize("path", ["/tiny/ff/1/3?k=12", "/tiny/head/1/1/sub/2"])
def test_ends_have_their_own_ranks_and_no_gaps(crowded: TestClient, path: str) -> None:
    data = crowded.get(format_address(hidden(path), "json")).json()
    vector = data.get("value") or data.get("o")
    tables = crowded.get(format_address(hidden(path), "md")).text.split("\n\n**")
    (table,) = (part for part in tables if re.search(r"(value|, o) \(dot\), without hubs", part.partition("\n")[0]))
    rows = [line.split(" | ") for line in table.splitlines() if re.match(r"\| +(\d|\|)", line)]
    for end, at in (("top", 0), ("bottom", 3)):
        ranks = [int(row[at].strip(" |")) for row in rows if row[at].strip(" |")]
        assert ranks == [entry.get("rank", number) for number, entry in enumerate(vector[end], 1)]
        assert all(row[at].strip(" |") for row in rows[: len(ranks)])
    assert "without hubs" in crowded.get(format_address(hidden(path), "tex")).text
    assert {
        row["hubs"] for row in csv.DictReader(io.StringIO(crowded.get(format_address(hidden(path), "csv")).text))
    } == {"hide"}


@pytest.mark.parametrize("path", PAGES.values(), ids=PAGES)
def test_marks_and_links(crowded: TestClient, path: str) -> None:
    page = crowded.get(path).text
    marked = {int(token) for token in re.findall(r'class="t hub"[^>]*href="/tiny/token/(\d+)"', page)}
    plain = {int(token) for token in re.findall(r'class="t" href="/tiny/token/(\d+)"', page)}
    assert marked <= HUBS
    assert not plain & HUBS
    without = crowded.get(hidden(path)).text
    assert 'aria-label="Hubs"' in page
    assert 'aria-label="Hubs"' in without
    links = [link for link in parsed(without).links() if re.match(r"/tiny(/|\?|$)", link)]
    switch = {link for link in links if "hubs=hide" not in link}
    assert switch == {path}  # back to where they are shown; all others take the argument along
    assert "hubs=hide" in crowded.get(hidden(path)).headers["link"]
    assert not re.search(rf'class="t( hub)?"[^>]*href="/tiny/token/({DOG}|{BYTE})\?', without)


@pytest.mark.parametrize("path", FIRST_TOKENS.values(), ids=FIRST_TOKENS)
def test_columns_of_first_tokens_skip_them(crowded: TestClient, path: str) -> None:
    text = crowded.get(format_address(hidden(path), "json")).text
    for hub in HUBS:
        assert f'"id":{hub},' not in text


def test_a_list_of_mostly_hubs_says_so(crowded: TestClient) -> None:
    page = crowded.get("/tiny/ff/1/3?k=3").text
    assert "mostly hubs" in page
    assert {"/tiny/ff/1/3?k=3&hubs=hide", "/tiny/ff/1/3?k=3&lens=cosine"} <= {*parsed(page).links()}
    assert 'aria-label="Hubs"' not in crowded.get("/tiny/ff/1/3?lens=cosine").text  # there are none


def test_what_leads_elsewhere_takes_it_along(crowded: TestClient) -> None:
    for path in ("/tiny/layer/1?token=dog&hubs=hide", "/tiny/search?q=L1N3&hubs=hide", "/tiny/random?hubs=hide"):
        answer = crowded.get(path)
        assert (answer.status_code, "hubs=hide" in answer.headers["location"]) == (303, True)


def test_a_page_about_a_hub_keeps_it(crowded: TestClient) -> None:
    pairs = crowded.get(f"/tiny/token/{DOG}.json?hubs=hide&kind=vo").json()
    assert pairs["pairs"]
    assert BYTE not in {pair["other"]["id"] for pair in pairs["pairs"]}
