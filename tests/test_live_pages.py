"""Live pages over HTTP, with a real worker on a small model: every face, links, addresses, and what is refused.
What a worker computes is for test_live_*.py, what happens when it fails for test_worker_*.py."""

import asyncio
import time
from itertools import permutations
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlencode, urlsplit

import orjson
import pytest
from starlette.testclient import TestClient

from app.faces import MEDIA_TYPES
from app.guard import HEADERS
from app.live_rows import clear_rank
from app.packed_text import unpack
from app.routes.live_arguments import PANELS
from app.routes.live_pages import LIVE
from tests.pages import parsed
from tests.site import GPT2, visit
from tests.tabular import rows

TEXT = "the dog and the lion"
SEEDS = f"/{GPT2}/seeds?words=dog,lion"
RELATION = f"/{GPT2}/relation?pairs=dog%3Edogs,lion%3Ehorse"
PROMPT = f"/{GPT2}/prompt?text=the+dog+and+the+lion"


@pytest.fixture(scope="module")
def live(client: TestClient) -> TestClient:
    """The site, when its worker has loaded the model: one worker, for the whole run of the tests."""
    for _ in range(60):
        answer = client.get(f"/{GPT2}/seeds.json?words=dog")
        if answer.status_code == 200:
            return client
        assert (answer.status_code, "retry-after" in answer.headers) == (503, True), answer.text
        time.sleep(0.5)
    raise TimeoutError(answer.text)


def twin(path: str, face: str) -> str:
    path, _, query = path.partition("?")
    return f"{path}{'' if face == 'html' else '.' + face}?{query}"


@pytest.mark.parametrize(("path", "face"), [
    (path, face) for page, path in zip(LIVE, (SEEDS, RELATION, PROMPT), strict=True) for face in ("html", *page.faces)
])  # fmt: skip
def test_every_page_in_every_face(live: TestClient, path: str, face: str) -> None:
    answer = live.get(twin(path, face))
    assert answer.status_code == 200, answer.text
    assert answer.headers["content-type"] == MEDIA_TYPES[face]
    assert HEADERS.items() <= answer.headers.items()
    assert f'<{path}>; rel="canonical"' in answer.headers["link"]
    again = live.get(twin(path, face), headers={"If-None-Match": answer.headers["etag"]})
    assert (again.status_code, again.content) == (304, b"")
    if face == "html":
        part = live.get(path, headers={"HX-Request": "true", "HX-Request-Type": "partial"})
        assert part.text.strip().partition("\n")[2] in answer.text
        assert "<html" not in part.text


@pytest.mark.parametrize("name", [page.name for page in LIVE])
def test_a_page_without_words_asks_for_them(live: TestClient, name: str) -> None:
    page = parsed(live.get(f"/{GPT2}/{name}").text)
    assert any(element.attributes.get("action") == f"/{GPT2}/{name}" for element in page.all("form"))
    examples = [link for link in page.links() if link.startswith(f"/{GPT2}/{name}?")]
    assert examples
    assert live.get(f"/{GPT2}/{name}.json").status_code == 200


def test_seeds_as_data(live: TestClient) -> None:
    view = live.get(f"/{GPT2}/seeds.json", params={"words": "2*dog - lion", "kind": "ff_value,w_o", "k": 7}).json()
    assert {"model", "kind", "seeds", "results"} <= view.keys()
    assert (view["words"], view["kind"]) == ("2*dog - lion", "ff_value,w_o")
    assert [(seed["word"], seed["weight"]) for seed in view["seeds"]] == [("dog", 2.0), ("lion", -1.0)]
    assert len(view["results"]) == 7
    scores = [result["score"] for result in view["results"]]
    assert scores == sorted(scores, reverse=True)
    for result in view["results"]:
        assert result["kind"] in ("ff_value", "w_o")
        assert result["score"] == pytest.approx((2 * result["scores"][0] - result["scores"][1]) / 3, abs=1e-5)
        assert (result["top"] == []) == (result["layer"] == 0)  # which is not built
        if result["top"]:
            place = f"ff/{result['layer']}/{result['index']}" if result["head"] is None else (
                f"head/{result['layer']}/{result['head']}/sub/{result['subhead']}"
            )  # fmt: skip
            stored = live.get(f"/{GPT2}/{place}.json").json()["value" if result["head"] is None else "o"]
            assert [token["id"] for token in result["top"]] == [token["id"] for token in stored["top"][:8]]
    found = rows(live, f"/{GPT2}/seeds.csv?words=dog,lion&k=7")
    assert len(found) == 7
    assert {"kind", "layer", "index", "score", "word_1", "score_2", "top_1", "top_1_id"} <= found[0].keys()
    assert {(row["model"], row["words"]) for row in found} == {(GPT2, "dog,lion")}


def test_signs_of_scores_are_explained_where_a_word_has_a_minus(live: TestClient) -> None:
    for words, explained in (("dog,lion", False), ("dog - lion", True)):
        html = live.get(f"/{GPT2}/seeds", params={"words": words}).text
        assert "without listing any of the words" in html
        assert ("before its weight" in html) == explained
        view = live.get(f"/{GPT2}/seeds.json", params={"words": words}).json()
        weights = [seed["weight"] for seed in view["seeds"]]
        for result in view["results"]:
            mean = sum(weight * own for weight, own in zip(weights, result["scores"], strict=True)) / 2
            assert result["score"] == pytest.approx(mean), "own scores are those before the weight"


def test_seeds_through_every_head(live: TestClient) -> None:
    assert live.get(twin(SEEDS, "json")).json()["heads"] == []
    view = live.get(twin(SEEDS, "json") + "&heads=1").json()
    assert {(head["layer"], head["head"]) for head in view["heads"]} == {
        (layer, h) for layer in range(3) for h in range(4)
    }
    assert all(head["writes"] and head["seeks"] for head in view["heads"])
    found = rows(live, twin(SEEDS, "csv") + "&heads=1")
    for kind, part in (("vo", "writes"), ("qk", "seeks")):
        assert [
            (int(row["layer"]), int(row["head"]), int(row["token_id"]), row["token"], float(row["score"]))
            for row in found
            if row["kind"] == kind
        ] == [
            (head["layer"], head["head"], token["id"], token["token"], token["score"])
            for head in view["heads"]
            for token in head[part]
        ]
    assert [row["index"] for row in found if row["kind"] == "ff_value"] == [str(r["index"]) for r in view["results"]]
    page = parsed(live.get(SEEDS + "&heads=1").text)
    assert {f"/{GPT2}/head/{layer}/{h}/{m}" for layer in range(3) for h in range(4) for m in ("vo", "qk")} <= set(
        page.links()
    )


@pytest.mark.parametrize(("asked", "canonical"), [
    ("seeds?words=dog+lion", "seeds?words=dog,lion"),
    ("seeds?words=+dog%2C%20lion&kind=ff_value&k=50&heads=0&utm=1", "seeds?words=dog,lion"),
    ("seeds?words=dog&kind=w_o&kind=ff_key", "seeds?words=dog&kind=ff_key,w_o"),
    ("seeds?words=dog-%20-2*lion", "seeds?words=dog-+-+2*lion"),
    ("relation?pairs=dog+->+cat&lens=dot", "relation?pairs=dog%3Ecat"),
    ("prompt?text=a+dog&panel=evolution&off=&convention=final&k=5", "prompt?text=a+dog"),
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


def test_relation_as_data(live: TestClient) -> None:
    view = live.get(twin(RELATION, "json")).json()
    assert [(pair["source"]["word"], pair["target"]["word"]) for pair in view["pairs"]] == [
        ("dog", "dogs"), ("lion", "horse"),
    ]  # fmt: skip
    assert len(view["heads"]) == 12
    assert [head["rank"] for head in view["heads"]] == sorted(head["rank"] for head in view["heads"])
    for head in view["heads"]:
        assert head["rank"] == pytest.approx(sum(head["ranks"]) / 2)
        assert head["score"] == pytest.approx(sum(head["scores"]) / 2, abs=1e-5)
    page = parsed(live.get(RELATION).text)
    assert f"/{GPT2}/head/{view['heads'][0]['layer']}/{view['heads'][0]['head']}/vo" in page.links()
    assert live.get(twin(RELATION, "json") + "&lens=cosine").json()["heads"] != view["heads"]


def test_exports_of_a_relation_say_that_the_first_piece_is_ranked(live: TestClient) -> None:
    path = f"/{GPT2}/relation?pairs=dog%3Ehorsing,lion%3Ehorse"
    pieces, whole = live.get(twin(path, "json")).json()["pairs"]
    assert (len(pieces["target"]["tokens"]) > 1, len(whole["target"]["tokens"])) == (True, 1)
    assert (pieces["ranked"], whole["ranked"]) == (pieces["target"]["tokens"][0], whole["target"]["tokens"][0])
    for row in rows(live, twin(path, "csv")):
        assert (row["ranked_1"], row["ranked_1_id"]) == (pieces["ranked"]["token"], str(pieces["ranked"]["id"]))
        assert (row["pieces_1"], row["pieces_2"]) == (str(len(pieces["target"]["tokens"])), "1")
        assert row["lens"] == "dot"
    for face in ("md", "tex"):
        assert f"of horsing, {len(pieces['target']['tokens'])} pieces, the first:" in live.get(twin(path, face)).text
        assert "pieces" not in live.get(twin(f"/{GPT2}/relation?pairs=lion%3Ehorse", face)).text


def test_only_heads_far_from_chance_are_said_to_carry_or_to_suppress(live: TestClient) -> None:
    """The small model has random weights: some head moves a single pair far up or down, hardly two pairs together."""
    seen = set()
    words = ("dog", "dogs", "lion", "horse", "Paris", "the")
    for pairs in ("dog>dogs,lion>horse", *map(">".join, permutations(words, 2))):
        asked = {"pairs": pairs}
        heads = live.get(f"/{GPT2}/relation.json", params=asked).json()["heads"]
        html = live.get(f"/{GPT2}/relation", params=asked).text.partition('id="map"')[0]
        carrying, _, suppressing = html.partition('id="suppresses"')
        bound = clear_rank(max(head["rank"] + head["rank_from_bottom"] - 1 for head in heads))
        for part, by in ((carrying, "rank"), (suppressing, "rank_from_bottom")):
            listed = [link for link in parsed(part).links() if link.endswith("/vo")]
            clear = sorted((head for head in heads if head[by] <= bound), key=lambda head: head[by])
            assert listed == [f"/{GPT2}/head/{head['layer']}/{head['head']}/vo" for head in clear]
            assert ("No head: none has" in part) == (not clear)
            seen.add((by, bool(clear)))
    assert len(seen) == 4, "both kinds, with heads and without"


def test_one_name_for_pairs_to_heads(live: TestClient) -> None:
    """In the bar, the title, the heading, the crumbs and on the help page."""
    html = live.get(f"/{GPT2}/relation").text
    assert 'Pairs<span class="long"> to heads</span></a>' in html
    page = parsed(html)
    assert page.all("title")[0].text.startswith("Pairs to heads in ")
    assert page.all("h1")[0].text.strip() == "Pairs to heads"
    assert page.all("li", **{"aria-current": "page"})[0].text.strip() == "pairs to heads"
    assert "Pairs to heads" in [h2.text.strip() for h2 in parsed(live.get("/-/help").text).all("h2")]


def test_a_prompt_as_data(live: TestClient) -> None:
    view = live.get(twin(PROMPT, "json")).json()
    assert "".join(token["token"] for token in view["tokens"]) == TEXT
    assert view["position"] == len(view["tokens"]) - 1
    assert _close(view["evolution"][-1]["cells"][-1], view["prediction"])
    assert view["evolution"][-1]["answer_rank"] == [1] * len(view["tokens"])
    assert [row["after"] for row in view["evolution"]] == ["embedding", *(["attention", "ff"] * 3)]
    assert view["untouched"] == view["changes"] == []
    earlier = live.get(twin(PROMPT, "json") + "&position=1&k=3").json()
    assert (earlier["position"], len(earlier["prediction"])) == (1, 3)


def _close(some: list[dict[str, Any]], others: list[dict[str, Any]]) -> bool:
    """The same tokens, as likely: products of other shapes round differently."""
    return [each["id"] for each in some] == [each["id"] for each in others] and [each["p"] for each in some] == (
        pytest.approx([each["p"] for each in others], abs=1e-5)
    )


@pytest.mark.parametrize("panel", PANELS)
def test_only_the_panel_that_is_open_is_computed(live: TestClient, panel: str) -> None:
    view = live.get(twin(PROMPT, "json"), params={"text": TEXT, "panel": panel, "layer": 1}).json()
    assert [name for name in PANELS if view[name] is not None] == [panel]
    page = parsed(live.get(PROMPT, params={"text": TEXT, "panel": panel, "layer": 1, "position": 2}).text)
    assert panel in page.ids()
    for link in {link for link in page.links() if link.startswith("/")}:
        path = urlsplit(link)
        if not path.path.endswith("/prompt") and "/0" not in path.path:  # layer 0 is not built
            assert live.get(link).status_code in (200, 303), link


def test_changes_are_undone_link_by_link(live: TestClient) -> None:
    view = live.get(twin(PROMPT, "json") + "&off=1.3,2.h1&set=1.5:2.5").json()
    assert [(c["layer"], c["neuron"], c["head"], c["value"]) for c in view["changes"]] == [
        (1, 3, None, 0.0), (2, None, 1, 0.0), (1, 5, None, 2.5),
    ]  # fmt: skip
    assert _close(view["untouched"], live.get(twin(PROMPT, "json")).json()["prediction"])
    assert view["prediction"] != view["untouched"]
    assert len(view["evolution_untouched"]) == len(view["evolution"])
    links = parsed(live.get(PROMPT + "&off=1.3,2.h1&set=1.5:2.5").text).links()
    for kept in ("&off=2.h1&set=1.5:2.5", "&off=1.3&set=1.5:2.5", "&off=1.3,2.h1", ""):
        assert PROMPT + kept in links
    assert {f"/{GPT2}/ff/1/3", f"/{GPT2}/ff/1/5", f"/{GPT2}/head/2/1"} <= set(links)


def test_a_run_that_is_yet_to_get_its_text_says_what_it_will_be_without(live: TestClient) -> None:
    html = live.get(f"/{GPT2}/prompt?off=L1N3,L0H1").text
    assert "The run will have" in html
    page = parsed(html)
    said = [e.text.split() for e in page.all("a") if e.attributes["href"] in (f"/{GPT2}/ff/1/3", f"/{GPT2}/head/0/1")]
    assert [words[:2] for words in said] == [["L1N3", "off"], ["L0H1", "off"]]
    assert {f"/{GPT2}/prompt?off=0.h1", f"/{GPT2}/prompt?off=1.3"} <= set(page.links())
    assert "The run will have" not in live.get(f"/{GPT2}/prompt").text


def test_examples_of_changes_are_of_the_model_itself(live: TestClient) -> None:
    html = live.get(f"/{GPT2}/prompt").text.partition('class="changes"')[2].partition("</details>")[0]
    *off, setting = (code.text.split()[0] for code in parsed(html).all("code"))
    assert len(off) == 4
    for changes in ({"off": ",".join(off)}, {"set": setting}):
        assert live.get(f"/{GPT2}/prompt", params={"text": TEXT, **changes}).status_code == 200


def test_neurons_and_heads_can_be_switched_off(live: TestClient) -> None:
    view = live.get(twin(PROMPT, "json") + "&panel=neurons").json()
    first = view["neurons"][0]
    links = parsed(live.get(PROMPT + "&panel=neurons&off=1.h0").text).links()
    assert f"{PROMPT}&panel=neurons&off=1.h0,{first['layer']}.{first['neuron']}" in links
    assert f"/{GPT2}/ff/{first['layer']}/{first['neuron']}" in links
    for panel in ("attention", "patterns"):
        assert (
            f"{PROMPT}&layer=1&panel={panel}&off=1.h2"
            in parsed(live.get(f"{PROMPT}&panel={panel}&layer=1").text).links()
        )
    for neuron in view["neurons"]:
        assert neuron["end"] == ("top" if neuron["coefficient"] >= 0 else "bottom")


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


def test_who_leaves_while_sending_a_form_is_no_fault(live: TestClient) -> None:
    arriving = iter([{"type": "http.request", "body": b"text=ab", "more_body": True}, {"type": "http.disconnect"}])
    sent: list[Any] = []

    async def receive() -> Any:
        return next(arriving)

    async def send(message: Any) -> None:
        sent.append(message)

    path = f"/{GPT2}/prompt"
    scope = {
        "type": "http", "method": "POST", "path": path, "raw_path": path.encode(), "query_string": b"",
        "headers": [(b"host", b"x")], "scheme": "http", "root_path": "", "http_version": "1.1",
    }  # fmt: skip
    asyncio.run(live.app(scope, receive, send))  # type: ignore[arg-type]
    assert sent[0]["status"] == 499


def _post(client: TestClient, **fields: str) -> Any:
    headers = {"content-type": "application/x-www-form-urlencoded"}
    return client.post(f"/{GPT2}/prompt", content=urlencode(fields), headers=headers)


@pytest.mark.parametrize(("path", "status", "said"), [
    ("seeds?words=dog+-", 422, "a word is missing"),
    ("seeds?words=dog&kind=ff_valu", 422, "ff_value"),
    ("seeds?words=dog&kind=ff_up", 404, "ff_up"),
    ("seeds?words=dog&k=1001", 422, "1000"),
    ("seeds?words=" + ",".join(["dog"] * 65), 413, "64"),
    ("seeds?words=dog&heads=all", 422, "heads = 'all': write 1 for all heads, or 0 for none"),
    ("seeds?words=dog&heads=2", 422, "heads = '2': write 1 for all heads, or 0 for none"),
    ("relation?pairs=dog", 422, "two words"),
    ("prompt?text=dog&panel=evolutio", 422, "evolution"),
    ("prompt?text=dog&off=9.1", 404, "0 to 2"),
    ("prompt?text=dog&position=9", 404, "position"),
    ("prompt?text=dog&layer=9", 404, "layer"),
    ("prompt?text=dog&neuron=-1", 422, "greater"),
    ("prompt?text=dog&neuron=99999999999999999999", 422, "less"),
    ("prompt?text=dog&panel=neurons&neuron=128", 404, "neuron 128 does not exist here: 0 to 127"),
    ("prompt?text=dog&head=x", 422, "integer"),
    ("head/1/2/vo?reading=other", 422, "mlp"),
    ("head/1/2/vo.events?reading=other", 422, "mlp"),
    ("head/1/2/vo.events?reading=norm&k=61", 422, "60"),
    ("head/0/2/vo?reading=norm", 404, "layer 0"),
    ("prompt?text=dog&convention=other", 422, "exact"),
    ("prompt?z=damaged", 422, "damaged"),
    ("prompt?text=" + "dog+" * 300, 413, "up to 64 are read"),
    ("prompt.md?text=dog", 404, "there is .json, .csv"),
    ("prompt.events", 422, "no text"),
    ("prompt.events?text=dog&k=0", 422, "greater"),
])  # fmt: skip
def test_what_cannot_be_answered_says_why(live: TestClient, path: str, status: int, said: str) -> None:
    answer = live.get(f"/{GPT2}/{path}", headers={"accept": "application/json"})
    assert (answer.status_code, answer.json()["error"]["status"]) == (status, status), answer.text
    assert said in answer.json()["error"]["detail"]


def test_a_run_tells_how_far_it_is(live: TestClient) -> None:
    answer = live.get(f"/{GPT2}/prompt.events?text=the+dog&panel=neurons")
    assert answer.headers["content-type"].startswith("text/event-stream")
    events = [event.split("\n") for event in answer.text.strip().split("\n\n")]
    names = [name.removeprefix("event: ") for name, _ in events]
    assert set(names[:-1]) == {"progress"}
    assert names[-1] == "page"
    shares = [orjson.loads(data.removeprefix("data: "))["share"] for _, data in events[:-1]]
    assert shares == sorted(shares)
    page = orjson.loads(events[-1][1].removeprefix("data: "))
    assert page["canonical"] == f"/{GPT2}/prompt?text=the+dog&panel=neurons"
    part = {"HX-Request": "true", "HX-Request-Type": "partial"}
    assert page["html"] == live.get(page["canonical"], headers=part).text


def test_a_run_that_fails_says_so_as_an_event(live: TestClient) -> None:
    *_, last = live.get(f"/{GPT2}/prompt.events?text=dog&off=9.1").text.strip().split("\n\n")
    name, data = last.split("\n")
    assert name == "event: fault"
    assert orjson.loads(data.removeprefix("data: ")) == {
        "status": 404, "detail": "layer 9 does not exist here: 0 to 2 do",
    }  # fmt: skip


def test_text_is_text(live: TestClient) -> None:
    for path in ("seeds?words=%3Cscript%3E", "relation?pairs=%3Cscript>dog", "prompt?text=%3C/textarea%3E%3Cscript%3E"):
        page = live.get(f"/{GPT2}/{path}")
        assert page.status_code in (200, 404, 422)
        assert "<script>" not in page.text
        assert page.text.count("</textarea>") <= 1


@pytest.mark.parametrize("reading", ["norm", "mlp"])
@pytest.mark.parametrize("lens", ["dot", "cosine"])
@pytest.mark.parametrize(("path", "names"), [("ff/1/5", ["key", "value"]), ("head/2/1/sub/3", ["q", "k", "v", "o"])])
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


@pytest.mark.parametrize("reading", ["norm", "mlp"])
@pytest.mark.parametrize("matrix", ["vo", "qk"])
@pytest.mark.parametrize("query", ["k=20", "preset=words&k=20", "lens=cosine&k=20"])
def test_other_readings_of_a_head(live: TestClient, matrix: str, query: str, reading: str) -> None:
    path = f"/{GPT2}/head/2/1/{matrix}"
    stored = live.get(f"{path}.json?{query}").json()
    assert "reading" not in stored
    view = live.get(f"{path}.json?{query}&reading={reading}").json()
    again = view.pop("reading")
    assert view == stored
    assert (again["name"], len(again["pairs"]), len(again["bottom"])) == (reading, 20, 20)
    before, now = ({(p["from"]["id"], p["to"]["id"]) for p in lists["pairs"]} for lists in (stored, again))
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
    lists = read["vectors"].values() if "vectors" in read else [{"top": read["pairs"], "bottom": read["bottom"]}]
    scores = [entry["score"] for each in lists for end in ("top", "bottom") for entry in each[end]]
    assert [float(row["score"]) for row in found if row["reading"] == "norm"] == pytest.approx(scores)
    for face in ("md", "tex"):
        text = live.get(f"{address}.{face}?{query}").text
        assert text.count("reading norm") == (len(read["vectors"]) if "vectors" in read else 2)
        assert f"{scores[0]:.3f}" in text


def test_events_of_a_head_need_a_reading(live: TestClient) -> None:
    answer = live.get(f"/{GPT2}/head/2/1/vo.events")
    assert (answer.status_code, "reading=norm" in answer.text) == (422, True)
    assert live.get(f"/{GPT2}/head/2/9/vo.events?reading=norm").status_code == 404


def test_a_prompt_as_one_long_table(live: TestClient) -> None:
    """Every number of the data is in it, once."""
    query = f"text=the+dog+and&panel={','.join(PANELS)}&layer=1&neuron=5&head=2&off=1.h0&position=1&k=3"
    view = live.get(f"/{GPT2}/prompt.json?{query}").json()
    found = rows(live, f"/{GPT2}/prompt.csv?{query}")

    def listed(*names: str, **wanted: str) -> list[tuple[str, ...]]:
        return [tuple(row[name] for name in names) for row in found if wanted.items() <= row.items()]

    assert listed("position", "token", panel="tokens") == [
        (str(at), token["token"]) for at, token in enumerate(view["tokens"])
    ]
    assert listed("layer", "head", "neuron", "value", panel="changes") == [("1", "0", "", "0.0")]
    for panel, cell in (("prediction", view["prediction"]), ("prediction_untouched", view["untouched"])):
        assert listed("position", "rank", "token_id", "measure", "value", panel=panel) == [
            ("1", str(rank), str(token["id"]), "p", str(token["p"])) for rank, token in enumerate(cell, 1)
        ]
    for panel in ("evolution", "evolution_untouched"):
        assert listed("layer", "part", "position", "token_id", "value", panel=panel) == [
            (str(row["layer"]), row["after"], str(at), str(token["id"]), str(token["p"]))
            for row in view[panel]
            for at, cell in enumerate(row["cells"])
            for token in cell
        ]
        assert listed("rank", "token_id", "value", panel=f"{panel}_answer") == [
            (str(row["answer_rank"][at]), str(view[panel][-1]["cells"][at][0]["id"]), str(row["answer"][at]))
            for row in view[panel]
            for at in range(len(view["tokens"]))
        ]
    assert listed("layer", "head", "position", "to_position", "value", panel="attention") == [
        (str(head["layer"]), str(head["head"]), str(at), str(to), str(weight))
        for head in view["attention"]
        for at, row in enumerate(head["weights"])
        for to, weight in enumerate(row)
    ]
    assert listed("layer", "head", "token_id", "value", panel="patterns") == [
        ("1", str(head["head"]), str(token["id"]), str(token["score"]))
        for head in view["patterns"]
        for token in head["pattern"]
    ]
    messages = [(head["head"], message) for head in view["patterns"] for message in head["messages"]]
    assert listed("head", "to_position", "value", panel="messages", measure="weight") == [
        (str(head), str(message["position"]), str(message["weight"])) for head, message in messages
    ]
    assert listed("token_id", "value", panel="messages", measure="score") == [
        (str(token["id"]), str(token["score"])) for _, message in messages for token in message["tokens"]
    ]
    for measure in ("coefficient", "strength"):
        assert listed("layer", "neuron", "rank", "value", panel="neurons", measure=measure) == [
            (str(neuron["layer"]), str(neuron["neuron"]), str(rank), str(neuron[measure]))
            for rank, neuron in enumerate(view["neurons"], 1)
        ]
    assert sorted(listed("position", "value", panel="neuron", measure="coefficient")) == [
        (str(at), str(value)) for at, value in enumerate(view["neuron"]["coefficients"])
    ]
    assert listed("token_id", panel="neuron", part="key") == [(str(t["id"]),) for t in view["neuron"]["key"]]
    assert listed("layer", "part", "value", panel="coverage", measure="covered") == [
        (str(row["layer"]), row["kind"], str(row["covered"])) for row in view["coverage"]
    ]
    assert {(row["model"], row["convention"]) for row in found} == {(GPT2, "final")}
    assert live.get(f"/{GPT2}/prompt.csv").text.startswith("panel,layer,part,")  # no text: its columns


def test_a_neuron_that_was_asked_about(live: TestClient) -> None:
    """Whatever its rank: what it reads and writes, its coefficient at each position; a text keeps the choice."""
    weakest = 5
    view = live.get(f"/{GPT2}/prompt.json?text=the+dog+and&panel=neurons&layer=1&neuron={weakest}").json()
    found = view["neuron"]
    assert (found["layer"], found["neuron"], len(found["coefficients"])) == (1, weakest, len(view["tokens"]))
    assert found["coefficients"][-1] == pytest.approx(found["coefficient"])
    stored = live.get(f"/{GPT2}/ff/1/{weakest}.json").json()
    assert found["key"] == [{"id": token["id"], "token": token["token"]} for token in stored["key"]["top"][:15]]
    page = parsed(live.get(f"/{GPT2}/prompt?text=the+dog+and&panel=neurons&layer=1&neuron={weakest}").text)
    assert "chosen" in page.ids()
    assert f"/{GPT2}/ff/1/{weakest}" in page.links()
    asked = parsed(live.get(f"/{GPT2}/prompt?panel=neurons&layer=1&neuron={weakest}").text)
    assert f"/{GPT2}/ff/1/{weakest}" in asked.links()
    assert [e.attributes["value"] for e in asked.all("input", name="neuron")] == [str(weakest)]
    assert f"/{GPT2}/prompt?text=The+capital+of+France+is&layer=1&neuron={weakest}&panel=neurons" in asked.links()
    other = parsed(live.get(f"/{GPT2}/prompt?text=the+dog+and&panel=neurons&layer=1&neuron={weakest}").text).links()
    assert f"/{GPT2}/prompt?text=the+dog+and&layer=2&panel=neurons" in other  # another layer's neuron 5 is another


def test_a_head_that_was_asked_about_comes_first(live: TestClient) -> None:
    path = f"/{GPT2}/prompt?text={TEXT.replace(' ', '+')}&panel=attention,patterns&layer=1&head=2"
    ids = parsed(live.get(path).text).ids()
    for part in ("head", "pattern"):
        assert [each for each in ids if each.startswith(f"{part}-")] == [f"{part}-{n}" for n in (2, 0, 1, 3)]
    view = live.get(path.replace("prompt?", "prompt.json?")).json()
    assert view["head"] == 2
    assert [len(each["messages"]) for each in view["patterns"]] == [3, 3, len(view["tokens"]), 3]
    for path in ("neuron=9999", "head=4"):
        answer = live.get(f"/{GPT2}/prompt?text=dog&{path}")
        assert (answer.status_code, "does not exist here" in answer.text) == (404, True)


@pytest.mark.parametrize("convention", ["final", "vocabulary", "exact"])
def test_every_convention_is_explained_beside_the_switch(live: TestClient, convention: str) -> None:
    page = parsed(live.get(PROMPT + f"&panel=patterns&convention={convention}").text)
    assert {"final", "vocabulary", "exact"} <= {b.text.partition(":")[0] for b in page.all("b")}
    assert "/-/help#conventions" in page.links()
    assert "conventions" in parsed(live.get("/-/help").text).ids()


@pytest.mark.parametrize(("text", "labels"), [(TEXT, 5), (TEXT + " dog" * 30, 18)])
def test_the_large_map_has_labels(live: TestClient, text: str, labels: int) -> None:
    """Tokens, or the numbers of every few positions where there are many."""
    asked = {"text": text, "panel": "attention", "head": "1"}
    tokens = live.get(f"/{GPT2}/prompt.json", params=asked).json()["tokens"]
    assert len(tokens) == len(text.split())
    found = parsed(live.get(f"/{GPT2}/prompt", params=asked).text).all("text")
    assert len(found) == 2 * labels
    shown = [token["token"].replace(" ", "␣") for token in tokens] if labels == 5 else [str(2 * n) for n in range(18)]
    assert [label.text for label in found[::2]] == [label.text for label in found[1::2]] == shown
    assert not parsed(live.get(f"/{GPT2}/prompt", params={**asked, "head": ""}).text).all("text")


def test_stored_pages_lead_to_live_ones(live: TestClient) -> None:
    for path, wanted in {
        "": "seeds", "/ff/1/5": "prompt?layer=1&neuron=5&panel=neurons", "/head/1/2": "prompt?off=1.h2",
        "/head/1/2/vo": "prompt?layer=1&head=2&panel=attention,patterns", "/search?q=dog": "seeds?words=dog",
        "/head/1/2/sub/3": "prompt?layer=1&head=2&panel=attention,patterns",
    }.items():  # fmt: skip
        assert f"/{GPT2}/{wanted}" in parsed(live.get(f"/{GPT2}{path}").text).links(), path


def test_without_a_worker_there_are_no_live_links(site_data: Path) -> None:
    with visit(site_data, worker="off") as visitor:
        for path in ("", "/ff/1/5", "/head/1/2", "/head/1/2/sub/0", "/search?q=dog"):
            links = parsed(visitor.get(f"/{GPT2}{path}").text).links()
            assert not [link for link in links if urlsplit(link).path.endswith(("/seeds", "/relation", "/prompt"))]
            assert not [link for link in links if "reading=" in link]
        for path in (
            "seeds",
            "seeds?words=dog",
            "relation",
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
