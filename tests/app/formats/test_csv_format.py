"""The rows of CSVs: all that views list, over all pages, each saying what the file is about; and sent in parts."""

import csv
import io
import re
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from starlette.testclient import TestClient

from lexiscope.app.formats.csv_format import ROWS_PER_CHUNK, csv_chunks
from lexiscope.app.formats.table import Column, Table, constant
from lexiscope.app.formats.tables import about, view_csv
from lexiscope.precompute.index.index import Index
from lexiscope.precompute.live.wire.answers import SeedsAnswer, TermUsed
from tests.support.pages import parsed
from tests.support.site import GPT2, LLAMA, K, visit
from tests.support.tables import NASTY, rows
from tests.support.views import layer_view, make_view, search_view


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


@pytest.mark.parametrize(("query", "k", "ends"), [
    ("k=4", 4, ("top", "bottom")), ("ends=both", K, ("top", "bottom")), ("k=3&ends=bottom&sort=-norm", 3, ("bottom",)),
    ("k=2&ends=top&lens=cosine&token=300", 2, ("top",)),
])  # fmt: skip
@pytest.mark.parametrize(("model", "vectors"), [(GPT2, ("key", "value")), (LLAMA, ("key", "up", "value"))])
def test_csv_of_a_layer_is_those_of_its_neurons(
    client: TestClient, model: str, vectors: tuple[str, ...], query: str, k: int, ends: tuple[str, ...]
) -> None:
    """In the order of the table, filtered as the table is."""
    found = rows(client, f"/{model}/layer/1.csv?{query}")
    table = rows(client, f"/{model}/layer/1.csv?" + "&".join(a for a in query.split("&") if a[:2] not in ("k=", "en")))
    neurons = [row["neuron"] for row in table]
    assert len(found) == len(neurons) * len(vectors) * len(ends) * k > 0
    assert list(dict.fromkeys(row["neuron"] for row in found)) == neurons
    lens = "cosine" if "cosine" in query else "dot"
    for neuron in (neurons[0], neurons[-1]):
        own = rows(client, f"/{model}/ff/1/{neuron}.csv?k={k}&lens={lens}")
        mine = [row for row in found if row["neuron"] == neuron]
        names = ("vector", "end", "rank", "token", "token_id", "score", "layer", "lens", "build")
        assert [[row[name] for name in names] for row in mine] == [
            [row[name] for name in names] for row in own if row["end"] in ends
        ]


def test_lists_of_a_layer_without_hubs_keep_their_ranks(site_data: Path) -> None:
    index = Index.open(site_data / GPT2)
    whole = make_view(index, "layer", {"layer": 1}, {"format": "csv"}, k=5, ends="top")
    hubs = frozenset(whole.ids[0, 0, 0, :2].tolist())
    kept = list(replace(whole, left_out=hubs).rows())
    assert kept == [row for row in whole.rows() if row["token"]["id"] not in hubs]
    assert kept[0]["rank"] == 3


def test_lists_of_a_layer_are_a_csv(client: TestClient) -> None:
    for path in ("/layer/1?k=4", "/layer/1.json?ends=top", "/layer/1.md?k=4"):
        answer = client.get(f"/{GPT2}{path}", headers={"Accept": "application/json"})
        assert answer.status_code == 422
        assert "add .csv" in answer.json()["error"]["detail"]
    assert client.get(f"/{GPT2}/layer/1.csv?k={K + 1}").status_code == 422
    word = client.get(f"/{GPT2}/layer/1.csv?k=1&ends=top&token=dog")
    assert word.headers["location"].endswith("&k=1&ends=top")
    assert "layer/1.csv?k=100" not in client.get(f"/{GPT2}/layer/1").text
    assert f"/layer/1.csv?k={K}" in client.get(f"/{GPT2}/layer/1").text


@pytest.mark.parametrize(("path", "total"), [
    (f"/{GPT2}/token/300", lambda view: sum(role["total"] for role in view["roles"]) + view["pairs_total"]),
    (f"/{GPT2}/head/1/2", lambda view: sum(
        [len(of[m][e]) for of in (view, view["readable"]) for m in ("vo", "qk") for e in ("top", "bottom")]
        + [len(row[vector]) for row in view["subheads"] for vector in "qkvo"]
        + [len(row["similarity"][matrix]) for row in view["subheads"] for matrix in ("vo", "qk")]
        + [len(tokens) for of in view["directions"].values() for row in of["rows"] for tokens in row["tokens"].values()]
        + [len(view["positions"][name]) for name in ("shares", "by_distance")]
    )),
    (f"/{GPT2}", lambda view: sum(len(row["vo"]) + len(row["qk"]) for row in view["rows"])),
    ("/index", lambda view: len(view["models"])),
])  # fmt: skip
def test_csv_leaves_nothing_out(client: TestClient, path: str, total: Callable[[Any], int]) -> None:
    path, mark, query = path.partition("?")
    view = client.get(f"{path}.json{mark}{query}").json()
    assert len(rows(client, f"{path}.csv{mark}{query}")) == total(view) > 0


def test_csv_keeps_tokens_as_they_are() -> None:
    tokens = [{"id": at, "token": token} for at, token in enumerate(NASTY)]
    table = Table("", (Column("token", "token", get=lambda row: row),), tokens)
    (text,) = csv_chunks([table], {})
    assert [row["token"] for row in csv.DictReader(io.StringIO(text, newline=""))] == NASTY


def test_lists_of_one_file_share_their_columns() -> None:
    """What a list does not have is blank, and so is what is said of the file but does not hold for the list."""
    one = Table("", (constant("end", "top"), Column("x", "token")), [{"x": {"id": 7, "token": "a"}}, {"x": None}])
    other = Table("", (Column("n"), Column("end")), [{"n": 1, "end": "bottom"}], says_nothing_of=("preset",))
    for_people = Table("unseen", (Column("y"),), [{"y": 1}], "people")
    assert "".join(csv_chunks([one, for_people, other], {"model": "tiny", "preset": "all"})).split("\r\n") == [
        "end,x,x_id,n,model,preset", "top,a,7,,tiny,all", "top,,,,tiny,all", "bottom,,,1,tiny,", "",
    ]  # fmt: skip


def test_several_tokens_are_several_columns() -> None:
    rows = [{"t": [{"id": 1, "token": "a"}, {"id": 2, "token": "b"}]}, {"t": []}]
    assert "".join(csv_chunks([Table("", (Column("t", "tokens", count=2),), rows)], {})).split("\r\n") == [
        "t_1,t_1_id,t_2,t_2_id", "a,1,b,2", ",,,", "",
    ]  # fmt: skip


@pytest.mark.parametrize("start", ["=", "+", "-", "@", "\t", "\r"])
def test_what_visitors_type_is_no_formula(site_data: Path, start: str) -> None:
    """In a search and in seed words, which a spreadsheet would compute; tokens stay as they are."""
    index = Index.open(site_data / LLAMA)
    typed = f"{start}dog"
    assert about(search_view(index, typed))["q"] == f"'{typed}"
    place: Any = {"kind": "ff_key", "layer": 0, "index": 0}
    result: Any = {**place, "score": 1, "scores": [1], "fit": None, "cosine": None}
    term: TermUsed = {"word": typed, "weight": 1.0, "tokens": []}
    answer: SeedsAnswer = {
        "terms": [term], "nearest": [], "results": [result], "heads": [], "lists": [], "rank": None,
        "near": {}, "chance": None,
    }  # fmt: skip
    view = replace(make_view(index, "seeds", {}, {"answers": [answer]}), words=typed)
    (row,) = csv.DictReader(io.StringIO("".join(view_csv(view)), newline=""))
    assert row["words"] == row["word_1"] == f"'{typed}"
    assert about(search_view(index, "dog = 1"))["q"] == "dog = 1"
    filtered = replace(layer_view(index, 0), token={"id": 1, "token": start})
    assert about(filtered)["listing"] == start


@pytest.mark.parametrize(("empty", "full"), [
    (f"/{GPT2}/search.csv?q=nonesuch", f"/{GPT2}/search.csv?q=dog"),
    (f"/{GPT2}/search.csv?q=nonesuch+dog", f"/{GPT2}/search.csv?q=e+a"),
    (f"/{GPT2}/search.csv?q=nonesuch&kind=vo", f"/{GPT2}/search.csv?q=e&kind=vo&lens=cosine"),
    (f"/{GPT2}/token/473.csv?kind=qk&preset=words", f"/{GPT2}/token/300.csv"),
])  # fmt: skip
def test_csv_without_rows_still_has_its_header(client: TestClient, empty: str, full: str) -> None:
    assert not rows(client, empty)
    assert client.get(empty).text.strip() == client.get(full).text.partition("\r\n")[0] != ""
    assert rows(client, full)


@pytest.mark.parametrize(("path", "about"), [
    ("/ff/1/3.csv?lens=cosine", {"layer": "1", "neuron": "3", "lens": "cosine"}),
    ("/head/1/2/sub/1.csv", {"layer": "1", "head": "2", "subhead": "1", "lens": "dot"}),
    ("/head/1/2/svd/1.csv", {"layer": "1", "head": "2", "direction": "1", "lens": "dot"}),
    ("/head/1/2/vo.csv?preset=distinct", {"layer": "1", "head": "2", "lens": "dot", "preset": "distinct"}),
    ("/head/1/2.csv?lens=cosine&preset=distinct", {"layer": "1", "head": "2", "lens": "cosine"}),  # of words, too
    ("/layer/1.csv?lens=cosine", {"layer": "1", "lens": "cosine"}),
    ("/token/300.csv?kind=w_q", {"token_id": "300", "lens": "dot"}),
    (".csv?lens=cosine&preset=words", {"lens": "cosine", "preset": "words"}),
    ("/search.csv?q=e&lens=cosine", {"q": "e", "lens": "cosine"}),
])  # fmt: skip
def test_every_row_says_what_the_file_is_about(client: TestClient, path: str, about: dict[str, str]) -> None:
    found, build = rows(client, f"/{LLAMA}{path}"), client.get(f"/{LLAMA}.json").json()["build"]
    lists = [row for row in found if not row.get("place")]  # a head's places have no lens
    assert lists
    for row in lists:
        assert {"model": LLAMA, **about, "build": build}.items() <= row.items()
        assert list(row)[-1] == "build"


@pytest.mark.parametrize(("path", "is_pair"), [
    ("/head/1/2.csv?preset=distinct", lambda row: row["matrix"] != ""),
    ("/token/300.csv?preset=distinct", lambda row: row["role"] == "maps"),
])  # fmt: skip
def test_only_pairs_have_a_preset(client: TestClient, path: str, is_pair: Callable[[dict[str, str]], bool]) -> None:
    found = [row for row in rows(client, f"/{LLAMA}{path}") if not row.get("place")]
    readable = {(True, "words", "cosine")} if "/head/" in path else set()
    presets = {(is_pair(row), row["preset"], row["lens"]) for row in found}
    assert presets == {(True, "distinct", "dot"), (False, "", "dot")} | readable


def test_a_filtered_layer_says_so(client: TestClient) -> None:
    found = rows(client, f"/{LLAMA}/layer/1.csv?token=300")
    assert {row["listing_id"] for row in found} == {"300"}
    assert "listing" not in rows(client, f"/{LLAMA}/layer/1.csv")[0]


@pytest.fixture(scope="module")
def paged(site_data: Path) -> Iterator[TestClient]:
    """A visitor of pages with few rows."""
    with visit(site_data, layer_rows=7, token_rows=3, search_rows=3) as visitor:
        yield visitor


@pytest.mark.parametrize("query", ["", "sort=-norm&", "sort=coherence&lens=cosine&"])
def test_csv_of_a_layer_has_all_pages(paged: TestClient, query: str) -> None:
    path = f"/{LLAMA}/layer/1"
    first = paged.get(f"{path}.json?{query}").json()
    assert first["pages"] > 1
    pages = [paged.get(f"{path}.json?{query}page={page + 1}").json()["rows"] for page in range(first["pages"])]
    listed = [row for page in pages for row in page]
    assert len(listed) == first["total"]
    for asked in ("", "page=2", "page=1000000000"):
        found = rows(paged, f"{path}.csv?{query}{asked}")
        assert [(row["neuron"], row["key_1_id"], row["similarity"]) for row in found] == [
            (str(row["neuron"]), str(row["key"][0]["id"]), str(row["similarity"])) for row in listed
        ]


def test_csv_of_a_token_has_all_pages_of_all_kinds(paged: TestClient, site_data: Path) -> None:
    path, lens = f"/{LLAMA}/token/300", "cosine"
    expected: list[tuple[str, ...]] = []
    longest = 0
    for kind in (*Index.open(site_data / LLAMA).shape.kinds, "vo", "qk"):
        query = f"lens={lens}&kind={kind}"
        pages = paged.get(f"{path}.json?{query}").json()["pages"]
        longest = max(longest, pages)
        views = [paged.get(f"{path}.json?{query}&page={page + 1}").json() for page in range(pages)]
        listed = [("maps", pair) for view in views for pair in view["pairs"]]
        listed += [(role["role"], place) for view in views for role in view["roles"] for place in role["places"]]
        of_kind = [
            (role, kind, *(str(place.get(name, "")) for name in ("layer", "index", "rank"))) for role, place in listed
        ]
        assert len(rows(paged, f"{path}.csv?{query}&page=3")) == len(of_kind)
        expected += of_kind
    assert longest > 1
    found = [
        tuple(row[n] for n in ("role", "kind", "layer", "index", "rank"))
        for row in rows(paged, f"{path}.csv?lens={lens}")
    ]
    assert sorted(found) == sorted(expected)


@pytest.mark.parametrize("query", ["q=e&lens=cosine", "q=e+a", "q=e&kind=ff_key", "q=e&kind=vo&lens=cosine"])
def test_csv_of_a_search_has_all_pages(paged: TestClient, query: str) -> None:
    path = f"/{GPT2}/search"
    first = paged.get(f"{path}.json?{query}").json()
    assert first["pages"] > 1
    views = [paged.get(f"{path}.json?{query}&page={page + 1}").json() for page in range(first["pages"])]
    found = rows(paged, f"{path}.csv?{query}&page=2")
    matches = [match for view in views for match in view["matches"]]
    listed = [(row["kind"], row["layer"], row["index"], row["rank_1"]) for row in found if not row["from_id"]]
    assert listed == [(m["kind"], str(m["layer"]), str(m["index"]), str(m["ranks"][0])) for m in matches]
    pairs = [(row["kind"], row["from_id"], row["to_id"], row["score"]) for row in found if row["from_id"]]
    assert len(pairs) == first["pairs_total"]
    shown = [pair for view in views for pair in view["pairs"]]
    assert pairs[: len(shown)] == [
        (p["matrix"], str(p["from"]["id"]), str(p["to"]["id"]), str(p["score"])) for p in shown
    ]


@pytest.mark.parametrize(("path", "whole"), [
    (f"/{GPT2}/layer/1", "all 128 neurons"), (f"/{GPT2}/layer/1?page=2", "all 128 neurons"), (f"/{GPT2}/ff/1/3", None),
])  # fmt: skip
def test_a_page_says_when_its_csv_holds_more(paged: TestClient, path: str, whole: str | None) -> None:
    (link,) = [a for a in parsed(paged.get(path).text).all("a") if re.search(r"[.]csv(?![?]k=)", a.attributes["href"])]
    assert link.text.strip() == (f"Open CSV ({whole})" if whole else "Copy CSV")
    assert ("data-copy" in link.attributes) == (whole is None), "a long one is opened, not copied"
    assert "page=" not in link.attributes["href"]


def test_a_token_page_says_how_many_places_its_csv_holds(paged: TestClient) -> None:
    path = f"/{LLAMA}/token/300"
    (link,) = [a for a in parsed(paged.get(f"{path}?kind=ff_key").text).all("a") if ".csv" in a.attributes["href"]]
    assert link.text.strip() == f"Open CSV (all {len(rows(paged, path + '.csv?kind=ff_key'))} places)"


def test_a_long_csv_comes_in_chunks() -> None:
    count = 2 * ROWS_PER_CHUNK + 1
    chunks = [*csv_chunks([Table("", (Column("id"),), [{"id": at} for at in range(count)])], {})]
    assert [chunk.count("\r\n") for chunk in chunks] == [ROWS_PER_CHUNK, ROWS_PER_CHUNK, 2]
    assert "".join(chunks) == "id\r\n" + "".join(f"{at}\r\n" for at in range(count))
