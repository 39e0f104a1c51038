"""The sheet of a run over HTTP with a real worker: filters and orders against plain Python, and its files."""

import asyncio
import csv
import io
import re
import sys
from collections.abc import Callable
from typing import Any
from urllib.parse import urlencode

import pyarrow.parquet
import pytest
from starlette.testclient import TestClient

from lexiscope.app.formats import parquet
from lexiscope.app.formats.csv_format import table_rows
from lexiscope.app.pages.prompt import page
from lexiscope.app.pages.prompt.sheet import chosen_rows
from lexiscope.app.urls import content_type
from tests.support.site import GPT2, LLAMA

TEXT = "the dog <script> and the = lion"
LISTS = {"heads": ("looks_for", "found_by", "sends"), "neurons": ("key", "value")}


def sheet(live: TestClient, model: str = GPT2, format: str = ".json", **asked: Any) -> Any:
    answer = live.get(f"/{model}/prompt{format}?{urlencode({'text': TEXT, 'panel': 'sheet', **asked})}")
    assert answer.status_code == 200, answer.text
    return answer.json()["sheet"] if format == ".json" else answer


def words(row: dict[str, Any], of: str) -> list[str]:
    return [token["token"].strip().lower() for name in LISTS[of] for token in row[name] or ()]


def peak(row: dict[str, Any]) -> float:
    value: float = abs(row["coefficients"][row["peak"]])
    return value


def names_in(html: str) -> list[str]:
    return re.findall(r'<th scope="row"><a[^>]*>(L[0-9]+[HN][0-9]+)<', html)


@pytest.fixture(scope="module")
def every(live: TestClient) -> Any:
    return sheet(live)


def test_without_filters_there_are_all_rows(live: TestClient, every: Any) -> None:
    tokens = live.get(f"/{GPT2}/prompt.json?{urlencode({'text': TEXT, 'panel': 'sheet'})}").json()["tokens"]
    places = [(row["layer"], row["head"], row["position"]) for row in every["heads"]]
    assert places == sorted(set(places))
    assert len(places) == 3 * 4 * len(tokens) == every["total"]["heads"]
    assert every["total"]["neurons"] == len(every["neurons"]) > 0
    assert all(row["key"] and row["value"] for row in every["neurons"])  # also in layer 0, which is not built


@pytest.mark.parametrize(("asked", "heads", "neurons"), [
    ({"layer": 1}, lambda row: row["layer"] == 1, lambda row: row["layer"] == 1),
    ({"head": 2}, lambda row: row["head"] == 2, lambda row: False),  # noqa: ARG005
    ({"at": 3, "layer": 2}, lambda row: (row["position"], row["layer"]) == (3, 2), lambda row: row["layer"] == 2),
    ({"least": 0.4}, lambda row: row["attends"]["weight"] >= 0.4, lambda row: peak(row) >= 0.4),
    ({"least": 0.1, "at": 1}, lambda row: row["position"] == 1 and row["attends"]["weight"] >= 0.1,
     lambda row: abs(row["coefficients"][1]) >= 0.1),
    ({"word": "DOG"}, lambda row: "dog" in words(row, "heads"), lambda row: "dog" in words(row, "neurons")),
    ({"word": "<script>"}, lambda row: "<script>" in words(row, "heads"),
     lambda row: "<script>" in words(row, "neurons")),
    ({"word": "no such word"}, lambda row: False, lambda row: False),  # noqa: ARG005
])  # fmt: skip
def test_filters(
    live: TestClient, every: Any, asked: dict[str, Any], heads: Callable[[Any], bool], neurons: Callable[[Any], bool]
) -> None:
    found = sheet(live, **asked)
    assert found["heads"] == [row for row in every["heads"] if heads(row)]
    assert found["neurons"] == [row for row in every["neurons"] if neurons(row)]
    assert found["total"] == {of: len(found[of]) for of in LISTS}


def test_rows_of_high_bias_alone_are_left_out(live: TestClient, every: Any) -> None:
    found = sheet(live, bias="hide")
    assert 0 < found["total"]["neurons"] <= every["total"]["neurons"]
    assert all(row in every["heads"] for row in found["heads"])


@pytest.mark.parametrize(("of", "sort", "value"), [
    ("heads", "moved", lambda row: row["moved"]),
    ("heads", "message", lambda row: row["message"]),
    ("heads", "weight", lambda row: row["attends"]["weight"]),
    ("neurons", "adds", lambda row: abs(row["adds"])),
    ("neurons", "strength", lambda row: row["strength"]),
    ("neurons", "coefficient", peak),
])  # fmt: skip
def test_orders(live: TestClient, every: Any, of: str, sort: str, value: Callable[[Any], float]) -> None:
    found = sheet(live, of=of, sort=sort)
    assert found[of] == sorted(every[of], key=value, reverse=True)
    assert found["heads" if of == "neurons" else "neurons"] == []
    letter, number = ("H", "head") if of == "heads" else ("N", "neuron")
    names = [f"L{row['layer']}{letter}{row[number]}" for row in found[of][:50]]
    assert names_in(sheet(live, format="", of=of, sort=sort).text) == names


def test_pages_are_all_rows_and_rest_comes_last(live: TestClient, every: Any) -> None:
    pages = [sheet(live, format="", page=page).text for page in (1, 2, 3, 4)]
    rows = sorted(every["heads"], key=lambda row: (row["attends"]["position"] == 0, -row["moved"]))
    names = [name for page in pages for name in names_in(page)]
    assert names == [f"L{row['layer']}H{row['head']}" for row in rows]
    assert f"{len(rows)} rows: every head at every position" in pages[0]
    assert live.get(f"/{GPT2}/prompt?text=the&panel=sheet&page=9").status_code == 404


def test_the_word_that_is_sought_is_marked(live: TestClient, every: Any) -> None:
    word = next(text for text in words(every["heads"][0], "heads") if text.isalpha())
    page = sheet(live, format="", word=word).text
    marked = [re.sub("<[^>]*>|␣", "", inside).lower() for inside in re.findall("<mark>(.*?)</mark>", page)]
    assert set(marked) == {word}
    assert "in a list</small>" in page
    assert "No token of this model is “&lt;b&gt;q”" in sheet(live, format="", word="<b>q").text


@pytest.mark.parametrize("asked", [{}, {"of": "heads", "least": 0.3}, {"of": "neurons"}, {"word": "zzz"}])
def test_files_hold_the_same_rows(live: TestClient, asked: dict[str, Any]) -> None:
    of_json = sheet(live, **asked)
    answer = sheet(live, format=".parquet", **asked)
    assert answer.headers["content-type"] == content_type("parquet")
    table = pyarrow.parquet.read_table(io.BytesIO(answer.content)).to_pylist()
    written = list(csv.DictReader(io.StringIO(sheet(live, format=".csv", **asked).text, newline="")))
    assert len(table) == len(written) == sum(of_json["total"].values())
    for row, cells in zip(table, written, strict=True):
        for name, value in row.items():
            text = " | ".join(map(str, value)) if isinstance(value, list) else "" if value is None else str(value)
            assert cells[name] == text
    heads = [row for row in table if row["of"] == "head"]
    for row, expected in zip(heads, of_json["heads"], strict=True):
        assert row["sends"] == [token["token"] for token in expected["sends"]]
        assert (row["layer"], row["attends_position"]) == (expected["layer"], expected["attends"]["position"])
        assert row["moved"] == expected["moved"]


@pytest.mark.parametrize(("asked", "said"), [
    ({"layer": 3}, "layer = 3: there are 0 to 2"),
    ({"head": 99}, "head = 99: there are 0 to 3"),
    ({"at": 99}, "at = 99: there are 0 to"),
    ({"sort": "strength", "of": "heads"}, "heads are sorted by layer, moved"),
    ({"sort": "wrong"}, "sort"),
    ({"least": "much"}, "least"),
    ({"of": "rows"}, "of"),
])  # fmt: skip
def test_what_cannot_be_asked(live: TestClient, asked: dict[str, Any], said: str) -> None:
    answer = live.get(f"/{GPT2}/prompt.json?{urlencode({'text': TEXT, 'panel': 'sheet', **asked})}")
    assert answer.status_code == 422
    assert said in answer.json()["error"]["detail"]


def test_parquet_is_of_the_sheet_and_needs_its_extra(live: TestClient, monkeypatch: pytest.MonkeyPatch) -> None:
    path = f"/{LLAMA}/prompt.parquet?text=the+dog"
    assert "panel=sheet" in live.get(path).json()["error"]["detail"]
    assert ".parquet" in sheet(live, format="").text
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    answer = live.get(f"{path}&panel=sheet")
    assert (answer.status_code, "lexiscope[parquet]" in answer.json()["error"]["detail"]) == (404, True)
    assert ".parquet" not in sheet(live, format="").text


@pytest.mark.parametrize("format", [".json", "", ".events", ".csv", ".parquet"])
def test_other_visitors_do_not_wait_while_rows_are_chosen(
    live: TestClient, monkeypatch: pytest.MonkeyPatch, format: str
) -> None:
    called = []

    def in_a_thread(work: Callable[..., Any]) -> Callable[..., Any]:
        def checked(*given: Any) -> Any:
            with pytest.raises(RuntimeError, match="no running event loop"):
                asyncio.get_running_loop()
            called.append(work)
            return work(*given)

        return checked

    monkeypatch.setattr(page, "chosen_rows", in_a_thread(chosen_rows))
    monkeypatch.setattr(parquet, "table_rows", in_a_thread(table_rows))
    assert live.get(f"/{GPT2}/prompt{format}?{urlencode({'text': TEXT, 'panel': 'sheet'})}").status_code == 200
    assert len(called) == 1 + (format == ".parquet")
