"""Live pages over HTTP, with real workers on small models: every format, links, addresses, other readings beside stored
lists, and what is refused."""

import re
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, unquote, urlencode, urlsplit

import orjson
import pytest
from starlette.testclient import TestClient

from lexiscope.app.pages.prompt import all_layers
from lexiscope.app.site.security import HEADERS
from lexiscope.app.urls import DATA_FORMATS, content_type, format_address, unpack
from tests.support.pages import parsed
from tests.support.site import DIFFERENCE, GPT2, HEADS, LLAMA, PROMPT, RELATION, SEEDS, TEXT, TRANSITION, visit
from tests.support.tables import rows


@pytest.mark.parametrize(("path", "format"), [
    (path, format)
    for path in (SEEDS, RELATION, TRANSITION, HEADS, PROMPT)
    for format in ("html", *(("json", "csv") if path == PROMPT else DATA_FORMATS))
])  # fmt: skip
def test_every_page_in_every_format(live: TestClient, path: str, format: str) -> None:
    answer = live.get(format_address(path, format))
    assert answer.status_code == 200, answer.text
    assert answer.headers["content-type"] == content_type(format)
    assert HEADERS.items() <= answer.headers.items()
    assert f'<{path}>; rel="canonical"' in answer.headers["link"]
    again = live.get(format_address(path, format), headers={"If-None-Match": answer.headers["etag"]})
    assert (again.status_code, again.content) == (304, b"")
    if format == "html":
        part = live.get(path, headers={"HX-Request": "true", "HX-Request-Type": "partial"})
        assert part.text.strip().partition("\n")[2] in answer.text
        assert "<html" not in part.text


OF_PATTERNS = ("patterns", "found_by", "message", "messages", "repeats")


@pytest.mark.parametrize(
    "asked", ["", "&rows=tokens&lens=cosine", "&position=2&k=2&convention=exact", "&hubs=hide&off=1.3"]
)
def test_all_layers_are_in_one_file_as_on_their_pages(live: TestClient, asked: str) -> None:
    address = f"{format_address(PROMPT, 'csv')}&panel=patterns{asked}"
    tokens = live.get(format_address(PROMPT, "json")).json()["tokens"]
    of_layer = (
        [f"head={head}" for head in range(4)]
        if "rows=tokens" in asked
        else [f"position={position}" for position in ([2] if "position" in asked else range(len(tokens)))]
    )
    single = [rows(live, f"{address}&layer={layer}&{where}") for layer in range(3) for where in of_layer]
    expected = [row for page in single for row in page if row["panel"] in OF_PATTERNS]
    found = rows(live, f"{address}&layer=all")
    assert [row["token"] for row in found if row["panel"] == "tokens"] == [token["token"] for token in tokens]
    assert [row for row in found if row["panel"] in OF_PATTERNS] == expected
    changes = [row for row in single[0] if row["panel"] == "changes"]
    assert [row for row in found if row["panel"] not in ("tokens", *OF_PATTERNS)] == changes
    assert bool(changes) == ("off=" in asked)
    assert {row["layer"] for row in expected} == {"0", "1", "2"}


@pytest.mark.parametrize(("query", "status", "said"), [
    (".csv?text=a+dog&layer=all&panel=evolution", 422, "panel=patterns"),
    (".csv?layer=all&panel=patterns", 422, "there is no text"),
    (".json?text=a+dog&layer=all&panel=patterns", 422, "/prompt.csv"),
    ("?text=a+dog&layer=all&panel=patterns", 422, "/prompt.csv"),
    (".csv?text=a+dog&layer=most&panel=patterns", 422, "layer"),
    (".csv?text=a+dog&layer=-1&panel=patterns", 422, "layer"),
])  # fmt: skip
def test_what_is_no_file_of_all_layers(live: TestClient, query: str, status: int, said: str) -> None:
    answer = live.get(f"/{GPT2}/prompt{query}")
    assert (answer.status_code, said in answer.text) == (status, True), answer.text[-600:]


@pytest.mark.parametrize(("limit", "said"), [("MOST_TOKENS", "tokens in their lists"), ("MOST_SECONDS", "runs took")])
def test_a_file_of_all_layers_is_bounded(
    live: TestClient, monkeypatch: pytest.MonkeyPatch, limit: str, said: str
) -> None:
    monkeypatch.setattr(all_layers, limit, 0)
    answer = live.get(f"{format_address(PROMPT, 'csv')}&panel=patterns&layer=all")
    assert (answer.status_code, said in answer.text) == (413, True)


@pytest.mark.parametrize("name", ["seeds", "relation", "transition", "heads", "prompt"])
def test_a_page_without_words_asks_for_them(live: TestClient, name: str) -> None:
    page = parsed(live.get(f"/{GPT2}/{name}").text)
    assert any(element.attributes.get("action") == f"/{GPT2}/{name}" for element in page.all("form"))
    examples = [link for link in page.links() if link.startswith(f"/{GPT2}/{name}?")]
    assert examples
    assert live.get(f"/{GPT2}/{name}.json").status_code == 200


@pytest.mark.parametrize(("asked", "canonical"), [
    ("seeds?words=dog+lion", "seeds?words=dog,lion"),
    ("seeds?words=+dog%2C%20lion&kind=ff_value&k=50&heads=0", "seeds?words=dog,lion"),
    ("seeds?words=dog&kind=w_o&kind=ff_key", "seeds?words=dog&kind=ff_key,w_o"),
    ("seeds?words=dog-%20-2*lion", "seeds?words=dog-+-+2*lion"),
    ("seeds?words=dog&kind=&k=&heads=", "seeds?words=dog"),
    ("relation?pairs=dog%3Ecat&pairs=lion%3Ehorse&pairs=", "relation?pairs=dog%3Ecat,lion%3Ehorse"),
    ("heads?words=dog+lion%2B+horse,dog&layers=2,0-1&head=&end=&k=&lens=", "heads?words=dog,lion%2Bhorse&layers=0-2"),
    ("heads?words=%23300&layers=0&head=1&end=bottom&k=8", "heads?words=%23300&head=1&end=bottom"),
    ("prompt?text=a+dog&z=&position=&layer=&neuron=&head=&panel=&set=&convention=&lens=&rows=&k=", "prompt?text=a+dog"),
    ("relation?pairs=dog+->+cat&lens=dot", "relation?pairs=dog%3Ecat"),
    ("transition?pairs=dog+->+cat;lion→horse&lens=dot&k=50", "transition?pairs=dog%3Ecat,lion%3Ehorse"),
    ("prompt?text=a+dog&panel=evolution&off=&convention=vocabulary&lens=dot&rows=heads&k=5", "prompt?text=a+dog"),
    (
        "prompt?text=a+dog&panel=neurons&panel=evolution&off=L1N3,1.h2",
        "prompt?text=a+dog&panel=evolution,neurons&off=1.3,1.h2",
    ),
    ("prompt?text=a%0D%0Adog&set=1.3:2.50", "prompt?text=a%0Adog&set=1.3:2.5"),
])  # fmt: skip
def test_one_view_has_one_address(live: TestClient, asked: str, canonical: str) -> None:
    answer = live.get(f"/{GPT2}/{asked}")
    assert answer.status_code == 200, answer.text
    assert f'</{GPT2}/{canonical}>; rel="canonical"' in answer.headers["link"]
    assert live.get(f"/{GPT2}/{canonical}").headers["etag"] == answer.headers["etag"]


def test_a_text_by_post_gets_an_address_that_opens_cold(live: TestClient) -> None:
    short = _post(live, text=TEXT, panel="neurons", off="")
    assert (short.status_code, short.headers["location"]) == (303, PROMPT + "&panel=neurons")
    long = " ".join(["the dog and the lion\r\n"] * 60)
    answer = _post(live, text=long)
    assert answer.status_code == 303
    where = urlsplit(answer.headers["location"])
    assert unpack(parse_qs(where.query)["z"][0]) == long.replace("\r\n", "\n")
    opened = live.get(answer.headers["location"])
    assert opened.status_code in (200, 413)  # 413: more tokens than a run may have
    assert (
        f'<{answer.headers["location"]}>; rel="canonical"' in opened.headers.get("link", "") or "tokens" in opened.text
    )


@pytest.mark.parametrize(("fields", "status", "said"), [
    ({"panel": "neurons"}, 422, "there is no text"),
    ({"text": "".join(chr(0x4E00 + n * 7919 % 20000) for n in range(9000))}, 413, "url_limit"),
    ({"text": "x" * (1 << 20)}, 413, "form"),
    ({"text": TEXT, "off": "nobody"}, 422, "a neuron is layer.neuron"),
    ({"text": "a\0b"}, 422, "NUL"),
])  # fmt: skip
def test_a_post_that_cannot_have_an_address(live: TestClient, fields: dict[str, str], status: int, said: str) -> None:
    answer = _post(live, **fields)
    assert (answer.status_code, said in answer.text) == (status, True), answer.text[-600:]


def test_changes_in_a_form_are_bounded(live: TestClient) -> None:
    answer = _post(live, text=TEXT, off=",".join(["0.1"] * 5000))
    assert (answer.status_code, "(off, set, mean, patch)" in answer.text) == (413, True)


def _post(client: TestClient, **fields: str) -> Any:
    headers = {"content-type": "application/x-www-form-urlencoded"}
    return client.post(f"/{GPT2}/prompt", content=urlencode(fields), headers=headers)


@pytest.mark.parametrize(("path", "status", "said"), [
    ("seeds?words=dog+-", 422, "a word is missing"),
    ("seeds?words=dog&kind=ff_valu", 422, "ff_value"),
    ("seeds?words=dog&kind=ff_up", 404, "ff_up"), ("seeds?words=dog&k=1001", 422, "1000"),
    ("seeds?words=" + ",".join(["dog"] * 65), 413, "64"),
    ("seeds?words=dog&heads=all", 422, "heads = 'all': write 1 for all heads, or 0 for none"),
    ("seeds?words=dog&heads=2", 422, "heads = '2': write 1 for all heads, or 0 for none"),
    ("relation?pairs=dog", 422, "two words"),
    ("transition?pairs=dog", 422, "two words"), ("transition?pairs=dog>", 422, "a word is missing"),
    ("transition?pairs=dog>cat>lion", 422, "two words"), ("transition?pairs=%23300>dog", 422, "not of token ids"),
    ("transition?pairs=dog>cat&k=0", 422, "greater"), ("transition?pairs=dog>cat&k=1001", 422, "1000"),
    ("transition?pairs=" + "a" * 101 + ">b", 422, "up to 100"), ("transition?pairs=dog>cat&lens=l2", 422, "cosine"),
    ("transition?pairs=" + ",".join(f"a{n}>b" for n in range(65)), 413, "65 pairs: up to 64"),
    ("heads?words=dog%2B", 422, "a word is missing after +"),
    ("heads?words=dog+-+lion", 422, "joined, as in horse+lion"),
    ("heads?words=dog&layers=3", 404, "tiny-gpt2 has layers 0 to 2"),
    ("heads?words=dog&layers=2-1", 422, "write layers such as 0-3"),
    ("heads?words=dog&head=4", 404, "head 4 does not exist here: 0 to 3 do"),
    ("heads?words=%23999999", 404, "token 999999 does not exist"), ("heads?words=dog&k=51", 422, "50"),
    ("heads?words=dog&end=middle", 422, "bottom"),
    ("heads?words=" + "%2B".join(["dog"] * 65), 413, "64"),
    ("heads?layers=all&words=" + ",".join(f"a{n}" for n in range(43)), 413, "through 12 heads are 516: up to 512"),
    ("prompt?text=dog&panel=evolutio", 422, "evolution"),
    ("prompt?text=dog&off=9.1", 404, "0 to 2"),
    ("prompt?text=dog&position=9", 404, "position"),
    ("prompt?text=dog&layer=9", 404, "layer"), ("prompt?text=dog&neuron=-1", 422, "greater"),
    ("prompt?text=dog&neuron=99999999999999999999", 422, "less"),
    ("prompt?text=dog&panel=neurons&neuron=128", 404, "neuron 128 does not exist here: 0 to 127"),
    ("prompt?text=dog&head=x", 422, "integer"), ("head/1/2/vo?reading=other", 422, "mlp"),
    ("head/1/2/vo.events?reading=other", 422, "mlp"),
    ("head/1/2/vo.events?reading=norm&k=61", 422, "60"),
    ("head/0/2/vo?reading=norm", 404, "layer 0"),
    ("prompt?text=dog&convention=other", 422, "exact"),
    ("prompt?z=damaged", 422, "damaged"),
    ("prompt?text=" + "dog+" * 300, 413, "up to 64 are read"),
    ("prompt.md?text=dog", 404, "add panel=patterns. There is .json and .csv"),
    ("prompt.events", 422, "no text"), ("prompt.events?text=dog&k=0", 422, "greater"),
])  # fmt: skip
def test_what_cannot_be_answered_says_why(live: TestClient, path: str, status: int, said: str) -> None:
    answer = live.get(f"/{GPT2}/{path}", headers={"accept": "application/json"})
    assert (answer.status_code, answer.json()["error"]["status"]) == (status, status), answer.text
    assert said in answer.json()["error"]["detail"]


def test_text_is_text(live: TestClient) -> None:
    for path in (
        "seeds?words=%3Cscript%3E",
        "heads?words=%3Cscript%3E",
        "relation?pairs=%3Cscript>dog",
        "transition?pairs=%3Cscript>dog",
        "prompt?text=%3C/textarea%3E%3Cscript%3E",
    ):
        page = live.get(f"/{GPT2}/{path}")
        assert page.status_code in (200, 404, 422)
        assert "<script>" not in page.text
        assert page.text.count("</textarea>") == page.text.count("<textarea")


def test_stored_pages_lead_to_live_ones(live: TestClient) -> None:
    for path, wanted in {
        "": "seeds?rank=fit", "/ff/1/5": "prompt?layer=1&neuron=5&panel=neurons", "/head/1/2": "prompt?off=1.h2",
        "/head/1/2/vo": "prompt?layer=1&head=2&panel=attention,patterns", "/search?q=dog": "seeds?words=dog&rank=fit",
        "/head/1/2/sub/3": "prompt?layer=1&head=2&panel=attention,patterns",
        "/token/300": "heads?words=%23300&layers=0-2",
        "?lens=cosine": "heads?words=couch,dog,run,happy&layers=0-2&lens=cosine",
        "/seeds?words=dog,lion": "heads?words=dog,lion&layers=0-2",
    }.items():  # fmt: skip
        assert f"/{GPT2}/{wanted}" in parsed(live.get(f"/{GPT2}{path}").text).links(), path


def test_without_a_worker_there_are_no_live_links(site_data: Path) -> None:
    with visit(site_data, worker="off") as visitor:
        for path in ("", "/ff/1/5", "/head/1/2", "/head/1/2/sub/0", "/token/300", "/search?q=dog"):
            links = parsed(visitor.get(f"/{GPT2}{path}").text).links()
            assert not [
                link
                for link in links
                if urlsplit(link).path.endswith(("/seeds", "/relation", "/transition", "/heads", "/prompt"))
            ]
            assert not [link for link in links if "reading=" in link]
        for path in (
            "seeds",
            "seeds?words=dog",
            "relation",
            "transition?pairs=dog>lion",
            "heads",
            "prompt",
            "prompt?text=dog",
            "prompt.events?text=dog",
            "ff/1/5?reading=mlp",
            "head/1/2/vo?reading=mlp",
            "head/1/2/vo.events?reading=mlp",
        ):
            answer = visitor.get(f"/{GPT2}/{path}")
            assert answer.status_code == 404
            assert "LEXISCOPE_WORKER=auto" in answer.text


def test_a_pair_in_the_search_box_goes_to_pairs_to_heads(live: TestClient, site_data: Path) -> None:
    path = f"/{GPT2}/search?q=dog+%3E+lion"
    relation = f"/{GPT2}/relation?pairs=dog%3Elion"
    answer = live.get(path)
    assert (answer.status_code, answer.headers["location"]) == (303, relation)
    assert live.get(path.replace("?", ".json?")).json()["jump"] == relation
    assert relation in parsed(live.get(f"/{GPT2}/search?q=dog+lion").text).links()
    with visit(site_data, worker="off") as visitor:
        answer = visitor.get(path)
        assert answer.status_code == 200
        assert visitor.get(path.replace("?", ".json?")).json()["jump"] is None
        assert "needs a" in answer.text
        assert relation in parsed(answer.text).links()
        assert "LEXISCOPE_WORKER" in visitor.get(relation).text


@pytest.mark.parametrize(("q", "words"), [
    ("dog lion", "dog,lion"), ('"New York", dog', '"New+York",dog'), ("horse - dog", "horse+-+dog"),
    ("dog", None), ("L1N5", None), ("dog > lion", None), ("#300 dog", None), ("dog -", None),
])  # fmt: skip
def test_a_search_of_several_words_asks_for_neurons(live: TestClient, q: str, words: str | None) -> None:
    found = live.get(f"/{GPT2}/search", params={"q": q})
    asked = [each.attributes["hx-get"] for each in parsed(found.text).all("div", **{"hx-trigger": "load"})]
    assert [unquote(address) for address in asked] == [f"/{GPT2}/seeds?words={words}&rank=fit&k=10"] * bool(words)
    for address in asked:
        page = parsed(live.get(address).text)
        assert "vectors" in page.ids()


def test_home_has_a_card_of_seed_words(live: TestClient) -> None:
    page = parsed(live.get("/").text)
    cards = [link for link in page.links() if "/seeds?" in link]
    assert cards
    assert all(live.get(card).status_code == 200 and "rank=fit" in card for card in cards)


@pytest.mark.parametrize(("path", "names", "lens", "reading"), [
    ("ff/1/5", ["key", "value"], "dot", "norm"), ("head/2/1/sub/3", ["q", "k", "v", "o"], "cosine", "mlp"),
    ("ff/1/5", ["key", "value"], "cosine", "pseudo"), ("head/2/1/sub/3", ["q", "k", "v", "o"], "dot", "first"),
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
    ("vo", "k=20", "first"), ("qk", "lens=cosine&k=20", "pseudo"),
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


def test_the_side_of_pairs_that_is_read_after_the_first_block(live: TestClient) -> None:
    path = f"/{GPT2}/head/2/1/vo"
    found = {side: live.get(f"{path}.json?k=9&reading=first&side={side}") for side in ("source", "target", "both")}
    readings = {side: answer.json()["reading"] for side, answer in found.items()}
    assert {side: reading["side"] for side, reading in readings.items()} == {side: side for side in found}
    tops = [orjson.dumps(reading["top"]) for reading in readings.values()]
    assert len({*tops}) == 3
    assert live.get(f"{path}.json?k=9&reading=first").json()["reading"] == readings["both"]
    assert "side" not in live.get(f"{path}.json?k=9&reading=norm").json()["reading"]
    page = parsed(live.get(f"{path}?reading=first&side=source").text)
    assert f"{path}?reading=first&side=target#readings" in page.links()
    assert f"{path}?reading=norm#readings" in page.links()
    assert "reading first of the source" in live.get(f"{path}.md?k=9&reading=first&side=source").text


@pytest.mark.parametrize(("path", "sources", "not_of_it"), [
    ("relation?pairs=dog%3Elion", ("first", "norm"), "pseudo"), ("heads?words=dog", ("first", "norm"), "pseudo"),
    ("seeds?words=dog", ("first", "pseudo"), "norm"), ("seeds?words=dog,lion&rank=fit", ("first", "pseudo"), "norm"),
])  # fmt: skip
def test_words_are_read_from_where_the_visitor_chooses(
    live: TestClient, path: str, sources: tuple[str, ...], not_of_it: str
) -> None:
    name, query = path.split("?")
    found = "results" if name == "seeds" else "heads"
    plain = live.get(f"/{GPT2}/{name}.json?{query}").json()
    assert (plain["source"], live.get(f"/{GPT2}/{name}.json?{query}&source=raw").json()) == ("raw", plain)
    for source in sources:
        view = live.get(f"/{GPT2}/{name}.json?{query}&source={source}").json()
        assert (view["source"], view[found] == plain[found]) == (source, False)
        page = parsed(live.get(f"/{GPT2}/{path}&source={source}").text)
        (kept,) = [e for e in page.elements if e.tag == "input" and e.attributes.get("name") == "source"]
        assert kept.attributes["value"] == source
        assert {row["source"] for row in rows(live, f"/{GPT2}/{name}.csv?{query}&source={source}")} == {source}
    assert live.get(f"/{GPT2}/{path}&source={not_of_it}").status_code == 422


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
    assert (answer.status_code, "give a reading, such as reading=norm" in answer.text) == (422, True)
    assert live.get(f"/{GPT2}/head/2/9/vo.events?reading=norm").status_code == 404


def test_a_token_before_any_text(live: TestClient, site_data: Path) -> None:
    """Beside what is stored, if asked for. A bare address answers as before, and a difference runs on nothing."""
    plain = live.get(f"/{GPT2}/token/300")
    assert f"/{GPT2}/token/300?beforehand=live" in parsed(plain.text).links()
    assert "before_text" not in live.get(f"/{GPT2}/token/300.json").json()
    for model, has_bias in ((GPT2, True), (LLAMA, False)):
        found = live.get(f"/{model}/token/300.json?beforehand=live").json()["before_text"]
        assert (found["bias"] is not None) == has_bias
        assert found["positions"] > 0
        page = re.sub(r"\s+", " ", live.get(f"/{model}/token/300?beforehand=live").text)
        assert f"<small>(rank {found['mean_state']['rank']:,})</small>" in page
        assert ("from the final norm’s bias" in page, "its final norm has no bias" in page) == (has_bias, not has_bias)
        assert f"mean of {found['positions']} positions" in page
    assert live.get(f"/{DIFFERENCE}/token/300.json?beforehand=live").status_code == 404
    assert "beforehand=live" not in live.get(f"/{DIFFERENCE}/token/300").text
    with visit(site_data, worker="off") as stranger:
        assert "beforehand=live" not in stranger.get(f"/{GPT2}/token/300").text
        assert stranger.get(f"/{GPT2}/token/300?beforehand=live").status_code == 404
