"""Other readings beside stored lists, over HTTP with a real worker; the lists are tested in test_live_*readings.py."""

import orjson
import pytest
from starlette.testclient import TestClient

from tests.support.pages import parsed
from tests.support.site import GPT2
from tests.support.tables import rows


@pytest.mark.parametrize(("path", "names", "lens", "reading"), [
    ("ff/1/5", ["key", "value"], "dot", "norm"), ("head/2/1/sub/3", ["q", "k", "v", "o"], "cosine", "mlp"),
])  # fmt: skip
def test_other_readings_beside_the_stored_list(
    live: TestClient, path: str, names: list[str], lens: str, reading: str
) -> None:
    stored = live.get(f"/{GPT2}/{path}.json?k=10&lens={lens}").json()
    assert "reading" not in stored
    view = live.get(f"/{GPT2}/{path}.json?k=10&lens={lens}&reading={reading}").json()
    again = view.pop("reading")
    assert view == stored
    assert (again["name"], list(again["vectors"])) == (reading, names)
    for name, read in again["vectors"].items():
        assert (len(read["top"]), len(read["bottom"])) == (10, 10)
        before, now = ({token["id"] for token in lists[name]["top"]} for lists in (stored, again["vectors"]))
        assert read["overlap"] == pytest.approx(len(before & now) / len(before | now))
    page = parsed(live.get(f"/{GPT2}/{path}?reading={reading}").text)
    assert f"/{GPT2}/{path}#readings" in page.links()
    assert sum("overlap with the stored top" in element.text for element in page.elements) == len(names)


@pytest.mark.parametrize(("matrix", "query", "reading"), [
    ("vo", "k=20", "norm"), ("qk", "preset=words&k=20", "mlp"), ("vo", "lens=cosine&k=20", "mlp"),
])  # fmt: skip
def test_other_readings_of_a_head(live: TestClient, matrix: str, query: str, reading: str) -> None:
    path = f"/{GPT2}/head/2/1/{matrix}"
    stored = live.get(f"{path}.json?{query}").json()
    assert "reading" not in stored
    view = live.get(f"{path}.json?{query}&reading={reading}").json()
    again = view.pop("reading")
    assert view == stored
    assert (again["name"], len(again["top"]), len(again["bottom"])) == (reading, 20, 20)
    before, now = ({(p["from"]["id"], p["to"]["id"]) for p in lists["top"]} for lists in (stored, again))
    assert again["overlap"] == pytest.approx(len(before & now) / len(before | now))
    page = parsed(live.get(f"{path}?{query}&reading={reading}").text)
    assert len([e for e in page.elements if e.tag == "tr" and e.attributes.get("class") == "m"]) >= len(before & now)
    events = live.get(f"{path}.events?{query}&reading={reading}").text.strip().split("\n\n")
    assert {event.partition("\n")[0] for event in events[:-1]} <= {"event: progress"}
    last = events[-1].partition("\n")
    assert last[0] == "event: page"
    made = orjson.loads(last[2].removeprefix("data: "))
    assert ("read again" in made["html"], made["canonical"].endswith(f"reading={reading}")) == (True, True)


@pytest.mark.parametrize("path", ["ff/1/5", "head/2/1/sub/3", "head/2/1/vo"])
def test_tables_of_another_reading_hold_it_beside_the_stored_lists(live: TestClient, path: str) -> None:
    """A copy cites an address with the reading: it must have the reading's numbers, and say which are which."""
    address, query = f"/{GPT2}/{path}", "k=5&reading=norm"
    view = live.get(f"{address}.json?{query}").json()
    stored, found = rows(live, f"{address}.csv?k=5"), rows(live, f"{address}.csv?{query}")
    assert [{k: v for k, v in row.items() if k != "reading"} for row in found if row["reading"] == "stored"] == stored
    read = view["reading"]
    lists = read["vectors"].values() if "vectors" in read else [read]
    scores = [entry["score"] for each in lists for end in ("top", "bottom") for entry in each[end]]
    assert [float(row["score"]) for row in found if row["reading"] == "norm"] == pytest.approx(scores)
    for format in ("md", "tex"):
        text = live.get(f"{address}.{format}?{query}").text
        assert text.count("reading norm") == (len(read["vectors"]) if "vectors" in read else 2)
        assert f"{scores[0]:.3f}" in text


def test_events_of_a_head_need_a_reading(live: TestClient) -> None:
    answer = live.get(f"/{GPT2}/head/2/1/vo.events")
    assert (answer.status_code, "nothing to wait for" in answer.text) == (422, True)
    assert live.get(f"/{GPT2}/head/2/9/vo.events?reading=norm").status_code == 404
