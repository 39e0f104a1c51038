"""Means, patches and a second text on the page of a run, over HTTP with a real worker. Their numbers are tested in
tests/precompute/live/test_changes.py."""

import re
from typing import Any
from urllib.parse import parse_qs, urlencode, urlsplit

import pytest
from starlette.testclient import TestClient

from lexiscope.app.urls import unpack
from tests.support.pages import parsed
from tests.support.site import GPT2, PROMPT, TEXT
from tests.support.tables import rows

OTHER = "the lion and the dog"
ASKED = "&mean=0.5,1.h1@2&from=the+lion+and+the+dog&patch=1.h2@3"


def data(live: TestClient, more: str) -> Any:
    answer = live.get(PROMPT.replace("prompt?", "prompt.json?") + more)
    assert answer.status_code == 200, answer.text
    return answer.json()


def test_changes_as_data(live: TestClient) -> None:
    view = data(live, f"&off=2.3&set=1.5:2.5{ASKED}")
    assert [tuple(change.values()) for change in view["changes"]] == [
        ("off", 2, 3, None, 0.0, None), ("set", 1, 5, None, 2.5, None), ("mean", 0, 5, None, None, None),
        ("mean", 1, None, 1, None, 2), ("patch", 1, None, 2, None, 3),
    ]  # fmt: skip
    assert list(view["changes"][0]) == ["kind", "layer", "neuron", "head", "value", "position"]
    assert view["mean_over"] == {"means": "prompt", "positions": len(view["tokens"])}
    assert "".join(token["token"] for token in view["from"]["tokens"]) == view["from_text"] == OTHER
    assert len(view["from"]["evolution"]) == len(view["evolution"])
    assert len(view["from"]["prediction"]) == 5
    plain = data(live, "")
    assert (plain["from"], plain["from_text"], plain["mean_over"]) == (None, "", None)
    found = rows(live, PROMPT.replace("prompt?", "prompt.csv?") + ASKED)
    listed = {panel: [row for row in found if row["panel"] == panel] for panel in {row["panel"] for row in found}}
    assert [(row["part"], row["value"]) for row in listed["changes"]] == [("mean", ""), ("mean", ""), ("patch", "")]
    assert [row["token"] for row in listed["tokens_from"]] == [token["token"] for token in view["from"]["tokens"]]
    assert [int(row["token_id"]) for row in listed["prediction_from"]] == [t["id"] for t in view["from"]["prediction"]]
    cells = [token["id"] for row in view["from"]["evolution"] for cell in row["cells"] for token in cell]
    assert [int(row["token_id"]) for row in listed["evolution_from"]] == cells


def test_each_change_is_undone_and_moved_by_a_link(live: TestClient) -> None:
    page = live.get(f"{PROMPT}&off=2.h0{ASKED}").text
    links = set(parsed(page).links())
    rest = "&from=the+lion+and+the+dog"
    for kept in (
        f"&mean=0.5,1.h1@2{rest}&patch=1.h2@3", f"&off=2.h0&mean=1.h1@2{rest}&patch=1.h2@3",
        f"&off=2.h0&mean=0.5{rest}&patch=1.h2@3", f"&off=2.h0&mean=0.5,1.h1@2{rest}",
        f"&off=2.h0&mean=0.5,1.h1{rest}&patch=1.h2@3", f"&off=2.h0&mean=0.5,1.h1@2{rest}&patch=1.h2",
        f"&off=2.h0&mean=0.5@4,1.h1@2{rest}&patch=1.h2@3", f"&mean=0.5,1.h1@2,2.h0{rest}&patch=1.h2@3", rest,
    ):  # fmt: skip
        assert PROMPT + kept in links, kept
    assert any(link.endswith("&means=texts") for link in links)
    said = re.sub(r"\s+", " ", re.sub(r"<[^>]+>", "", page))
    assert f"Means are over all {len(TEXT.split())} positions of this text, run without changes" in said
    assert "from the second text" in said
    texts = live.get(f"{PROMPT}&mean=1.h1&means=texts").text
    assert re.search(r"Means are over \d+ positions of sentences that Lexiscope has, without their first ones", texts)
    waiting = live.get(f"/{GPT2}/prompt?{ASKED[1:]}").text
    assert "The run will have" in waiting
    assert f">\n{OTHER}</textarea>" in waiting


@pytest.mark.parametrize(("second", "differs"), [
    (OTHER, [1, 4]), (TEXT, []), ("the dog and the old lion", [4]), ("the dog", []), ("lion", [0]),
])  # fmt: skip
def test_two_texts_side_by_side(live: TestClient, second: str, differs: list[int]) -> None:
    more = f"&{urlencode({'from': second})}"
    view, page = data(live, more), parsed(live.get(PROMPT + more).text)
    titles = [e.attributes["title"] for e in page.all("span") if e.attributes.get("title", "").startswith("position")]
    marked = [title for title in titles if title.endswith(": differs")]
    of_words = "".join(token["token"] for token in view["from"]["tokens"]).split()
    if len(of_words) == len(view["from"]["tokens"]):  # each word is a token
        assert marked == [f"position {at}: differs" for at in differs]
    assert len(titles) == len(view["from"]["tokens"])
    assert "second" in page.ids()
    steps = [e.text for e in page.all("th", scope="col")]
    assert ("second text" in steps, any("without" in each for each in steps)) == (True, False)
    both = [e.text.strip() for e in parsed(live.get(f"{PROMPT}{more}&off=1.h2").text).all("th", scope="col")]
    assert both.index("without") + 1 == both.index("second text")
    for panel in ("attention", "patterns", "neurons", "coverage", "attribution"):
        assert live.get(f"{PROMPT}{more}&panel={panel}").status_code == 200


def test_a_second_text_is_text(live: TestClient) -> None:
    page = live.get(f"/{GPT2}/prompt", params={"text": TEXT, "from": "</textarea><script>"})
    assert page.status_code == 200
    assert "<script>" not in page.text


def _post(live: TestClient, **fields: str) -> Any:
    headers = {"content-type": "application/x-www-form-urlencoded"}
    return live.post(f"/{GPT2}/prompt", content=urlencode(fields), headers=headers)


def test_the_form_knows_them(live: TestClient) -> None:
    fields = {"mean": "L1H2,0.5", "means": "texts", "from": "a\r\nlion", "patch": "1.h1@0", "off": "", "set": ""}
    answer = _post(live, text=TEXT, **fields)
    assert answer.headers["location"] == f"{PROMPT}&mean=1.h2,0.5&means=texts&from=a%0Alion&patch=1.h1@0"
    opened = live.get(answer.headers["location"])
    assert (opened.status_code, f'<{answer.headers["location"]}>; rel="canonical"' in opened.headers["link"]) == (
        200,
        True,
    )
    names = [e.attributes["name"] for e in parsed(opened.text).elements if e.tag in ("input", "textarea", "select")
             and e.attributes.get("name") in fields]  # fmt: skip
    assert {*fields} <= {*names}
    usual = _post(live, text=TEXT, **dict.fromkeys(fields, ""))
    assert usual.headers["location"] == PROMPT
    wrong = _post(live, text=TEXT, from_=OTHER)
    assert (wrong.status_code, "did you mean from?" in wrong.text) == (422, True)


def test_long_texts_are_packed_each_by_itself(live: TestClient, monkeypatch: pytest.MonkeyPatch) -> None:
    long, longer = "the dog " * 200, "the lion " * 200
    for text, second in ((TEXT, longer), (long, longer), (long, OTHER)):
        answer = _post(live, text=text, **{"from": second, "patch": "1.h1@0"})
        query = {name: values[0] for name, values in parse_qs(urlsplit(answer.headers["location"]).query).items()}
        assert (query.get("text") or unpack(query["z"]), query.get("from") or unpack(query["z_from"])) == (text, second)
        assert (len(text) > 1000, len(second) > 1000) == ("z" in query, "z_from" in query)
        opened = live.get(answer.headers["location"])
        assert (opened.status_code, "tokens: up to 64 are read" in opened.text) == (413, True)
    again = parsed(opened.text)  # the form with the error has both
    assert {"text", "from", "patch"} <= {e.attributes.get("name") for e in again.elements}
    monkeypatch.setattr("lexiscope.app.pages.prompt.page.LONGEST_PLAIN_TEXT", 10)
    packed = _post(live, text=TEXT, **{"from": OTHER, "patch": "1.h2"}).headers["location"]
    assert {"z", "z_from"} <= parse_qs(urlsplit(packed).query).keys()
    view = live.get(packed.replace("prompt?", "prompt.json?")).json()
    assert (view["text"], view["from_text"], len(view["changes"])) == (TEXT, OTHER, 1)
    odd = "".join(chr(0x4E00 + n * 7919 % 20000) for n in range(9000))
    for fields in ({"from": odd}, {"mean": ",".join(["0.1"] * 5000)}, {"patch": ",".join(["0.1"] * 5000)}):
        assert _post(live, text=TEXT, **fields).status_code == 413


@pytest.mark.parametrize(("query", "status", "field", "said"), [
    ("patch=1.h2", 422, "from", "from is empty: patch takes values of a second text"),
    ("patch=1.h2&from=the+lion", 422, "patch", "only texts of as many tokens are patched everywhere"),
    ("patch=1.h2@4&from=the+lion", 422, "patch", "the second text has the positions 0 to 1"),
    ("patch=nobody&from=the+lion", 422, "patch", "a neuron is layer.neuron"),
    ("mean=1.h2&off=1.h2", 422, "mean", "it is changed in two ways at once"),
    ("mean=1.h9", 404, "mean", "head 9 does not exist here: 0 to 3 do"),
    ("mean=1.2:3", 422, "mean", "a neuron is layer.neuron"), ("means=none&mean=1.h2", 422, "mean", "means = 'none'"),
    ("z_from=damaged", 422, None, "damaged"), ("from_=a", 422, None, "from_"),
    ("from=" + "dog+" * 300, 413, "from", "up to 64 are read"),
    ("mean=" + ",".join(f"0.{n}" for n in range(65)), 413, "mean", "up to 64 are taken"),
])  # fmt: skip
def test_bad_input_is_refused_in_words(live: TestClient, query: str, status: int, field: str | None, said: str) -> None:
    answer = live.get(f"{PROMPT}&{query}", headers={"accept": "application/json"})
    assert (answer.status_code, said in answer.json()["error"]["detail"]) == (status, True), answer.text
    page = parsed(live.get(f"{PROMPT}&{query}").text)
    if field:
        assert field in {e.attributes.get("name") for e in page.elements if e.tag in ("input", "textarea")}
