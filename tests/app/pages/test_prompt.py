"""Pages of a prompt, over HTTP with a real worker: data, tables, panels, changes and events.
Runs themselves are tested in tests/precompute/live."""

import math
import re
from collections.abc import Iterable
from typing import Any
from urllib.parse import urlsplit

import orjson
import pytest
from starlette.testclient import TestClient

from lexiscope.app.html.numbers import number as number_text
from lexiscope.app.html.numbers import percent, ratio
from lexiscope.app.lists.view import visible
from lexiscope.app.urls import format_address
from lexiscope.precompute.live.wire.asks import PANEL_NAMES
from tests.support.pages import Parsed, parsed
from tests.support.site import GPT2, LLAMA, PROMPT, TEXT
from tests.support.tables import rows


def test_a_prompt_as_data(live: TestClient) -> None:
    view = live.get(format_address(PROMPT, "json")).json()
    assert "".join(token["token"] for token in view["tokens"]) == TEXT
    assert view["position"] == len(view["tokens"]) - 1
    assert _close(view["evolution"][-1]["cells"][-1], view["prediction"])
    assert view["evolution"][-1]["answer_rank"] == [1] * len(view["tokens"])
    assert [row["after"] for row in view["evolution"]] == ["embedding", *(["attention", "ff"] * 3)]
    assert view["untouched"] == view["changes"] == []
    earlier = live.get(format_address(PROMPT, "json") + "&position=1&k=3").json()
    assert (earlier["position"], len(earlier["prediction"])) == (1, 3)


def _close(some: list[dict[str, Any]], others: list[dict[str, Any]]) -> bool:
    """The same tokens, as likely: products of other shapes round differently."""
    return [each["id"] for each in some] == [each["id"] for each in others] and [each["p"] for each in some] == (
        pytest.approx([each["p"] for each in others], abs=1e-5)
    )


@pytest.mark.parametrize("panel", PANEL_NAMES)
def test_only_the_panel_that_is_open_is_computed(live: TestClient, panel: str) -> None:
    view = live.get(format_address(PROMPT, "json"), params={"text": TEXT, "panel": panel, "layer": 1}).json()
    assert [name for name in PANEL_NAMES if view[name] is not None] == [panel]
    page = parsed(live.get(PROMPT, params={"text": TEXT, "panel": panel, "layer": 1, "position": 2}).text)
    assert panel in page.ids()
    for link in {link for link in page.links() if link.startswith("/")}:
        path = urlsplit(link)
        if not path.path.endswith("/prompt") and "/0" not in path.path:  # layer 0 is not built
            assert live.get(link).status_code in (200, 303), link


def test_a_right_prediction_is_marked(live: TestClient) -> None:
    view, page = live.get(format_address(PROMPT, "json")).json(), live.get(PROMPT).text
    hits = [each["rank"] == 1 for each in view["truth"]]
    assert (view["right"]["hits"], view["right"]["of"], page.count(" ✓</span>")) == (sum(hits), len(hits), sum(hits))
    assert f"<b>{sum(hits)} of {len(hits)}</b> right" in page
    csv = rows(live, format_address(PROMPT, "csv") + "&token=dog")
    assert [float(row["value"]) for row in csv if row["panel"] == "right"] == [*view["right"].values()]
    assert len([row for row in csv if row["panel"] == "truth"]) == len(hits)
    words = [row for row in csv if row["panel"] == "evolution_word"]
    assert ({row["token"] for row in words}, len(words)) == ({" dog"}, 2 * len(view["evolution"]))


def test_the_first_token_is_put_in_front(live: TestClient) -> None:
    """The form asks for it where the tokenizer puts none, and says whose it is where it does."""
    address = live.post(f"/{GPT2}/prompt", data={"text": TEXT, "bos": "1"}, follow_redirects=False).headers["location"]
    assert address == f"{PROMPT}&bos=1"
    view, page = live.get(format_address(address, "json")).json(), live.get(address).text
    assert view["bos"]["by"] == "asked"
    assert view["tokens"][0] == view["bos"]["token"]
    assert 'name="bos" value="1" checked' in page
    assert "by the tokenizer" not in page
    assert live.get(f"{PROMPT}&bos=2").status_code == 422


def test_updates_of_every_layer_and_heads_of_an_opened_one(live: TestClient) -> None:
    """From the last layer down; a change of the prediction says from which token to which; both ends in CSV."""
    address = f"{PROMPT}&panel=updates"
    view, page = live.get(format_address(address, "json")).json(), live.get(address)
    assert [row["of"] for row in view["updates"]] == ["attention", "ff"] * 3
    changes = [row for row in view["updates"] if row["changes"]]
    assert page.text.count(" → ") == len(changes) > 0
    opened = next(link for link in parsed(page.text).links() if "layer=1" in link and link.endswith("#layer-1"))
    heads = live.get(format_address(opened.partition("#")[0], "json")).json()
    assert [row["head"] for row in heads["updates"] if row["of"] == "head"] == [0, 1, 2, 3]
    assert f"/{GPT2}/head/1/3" in parsed(live.get(opened.partition("#")[0]).text).links()
    csv = rows(live, format_address(address, "csv"))
    listed = [row for row in csv if row["panel"] == "updates" and row["measure"] == "score"]
    assert len(listed) == sum(len(row["top"]) + len(row["bottom"]) for row in view["updates"])
    assert {row["end"] for row in listed} == {"top", "bottom"}
    hidden = live.get(format_address(address, "json"), params={"text": TEXT, "panel": "updates", "hubs": "hide"}).json()
    assert all(len(row["top"]) == len(view["updates"][0]["top"]) for row in hidden["updates"])


def test_changes_are_undone_link_by_link(live: TestClient) -> None:
    view = live.get(format_address(PROMPT, "json") + "&off=1.3,2.h1&set=1.5:2.5").json()
    assert [(c["layer"], c["neuron"], c["head"], c["value"]) for c in view["changes"]] == [
        (1, 3, None, 0.0), (2, None, 1, 0.0), (1, 5, None, 2.5),
    ]  # fmt: skip
    assert _close(view["untouched"], live.get(format_address(PROMPT, "json")).json()["prediction"])
    assert view["prediction"] != view["untouched"]
    assert len(view["evolution_untouched"]) == len(view["evolution"])
    links = parsed(live.get(PROMPT + "&off=1.3,2.h1&set=1.5:2.5").text).links()
    for kept in ("&off=2.h1&set=1.5:2.5", "&off=1.3&set=1.5:2.5", "&off=1.3,2.h1", ""):
        assert PROMPT + kept in links
    assert {f"/{GPT2}/ff/1/3", f"/{GPT2}/ff/1/5", f"/{GPT2}/head/2/1"} <= set(links)


def test_bars_of_predictions_are_on_one_scale(live: TestClient) -> None:
    """Half a bar is 50 %, also where nothing is likelier: the same with the changes of a run and without them."""
    view = live.get(format_address(PROMPT, "json") + "&off=1.h2").json()
    bars = [int(each.attributes["data-bar"]) for each in parsed(live.get(PROMPT + "&off=1.h2").text).all("td")
            if "data-bar" in each.attributes]  # fmt: skip
    assert bars == [round(50 * token["p"]) for token in (*view["prediction"], *view["untouched"])]


def test_a_change_at_one_position(live: TestClient) -> None:
    """It reaches that position and those after it; links make it hold everywhere, or only at another."""
    json = format_address(PROMPT, "json")
    view = live.get(json + "&off=1.h2@2,1.3").json()
    assert [change["position"] for change in view["changes"]] == [2, None]
    plain, changed = (live.get(json + more).json()["evolution"][-1]["answer"] for more in ("", "&off=0.h1@2,1.h2@2"))
    assert changed[:2] == pytest.approx(plain[:2], abs=1e-6)
    assert changed[2:] != pytest.approx(plain[2:], abs=1e-6)
    links = parsed(live.get(f"{PROMPT}&off=1.h2@2,1.3&position=1").text).links()
    base = f"{PROMPT}&position=1&off="
    assert {f"{base}{off}" for off in ("1.3", "1.h2,1.3", "1.h2@1,1.3", "1.h2@2", "1.h2@2,1.3@1")} <= set(links)
    wrong = live.get(PROMPT + "&off=1.h2@9")
    assert (wrong.status_code, "position 9 does not exist here: 0 to 4 do" in wrong.text) == (404, True)


def test_a_run_that_is_yet_to_get_its_text_says_what_it_will_be_without(live: TestClient) -> None:
    html = live.get(f"/{GPT2}/prompt?off=L1N3,L0H1").text
    assert "The run will have" in html
    page = parsed(html)
    said = [e.text.split() for e in page.all("a") if e.attributes["href"] in (f"/{GPT2}/ff/1/3", f"/{GPT2}/head/0/1")]
    assert [words[:2] for words in said] == [["L1N3", "off"], ["L0H1", "off"]]
    assert {f"/{GPT2}/prompt?off=0.h1", f"/{GPT2}/prompt?off=1.3"} <= set(page.links())
    assert "The run will have" not in live.get(f"/{GPT2}/prompt").text


def test_neurons_and_heads_can_be_switched_off(live: TestClient) -> None:
    view = live.get(format_address(PROMPT, "json") + "&panel=neurons").json()
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


def test_a_prompt_as_one_long_table(live: TestClient) -> None:
    """Every number of the data is in it, once."""
    query = f"text=the+dog+and&panel={','.join(PANEL_NAMES)}&layer=1&neuron=5&head=2&off=1.h0&position=1&k=3"
    view = live.get(f"/{GPT2}/prompt.json?{query}").json()
    found = rows(live, f"/{GPT2}/prompt.csv?{query}")

    def check(names: str, expected: Iterable[tuple[Any, ...]], **wanted: str) -> None:
        listed = [tuple(row[name] for name in names.split()) for row in found if wanted.items() <= row.items()]
        assert listed == [tuple(map(str, row)) for row in expected], wanted

    check("position token", ((at, token["token"]) for at, token in enumerate(view["tokens"])), panel="tokens")
    check("layer head neuron value", [(1, 0, "", 0.0)], panel="changes")
    for panel, cell in (("prediction", view["prediction"]), ("prediction_untouched", view["untouched"])):
        expected = ((1, rank, token["id"], "p", token["p"]) for rank, token in enumerate(cell, 1))
        check("position rank token_id measure value", expected, panel=panel)
    for panel in ("evolution", "evolution_untouched"):
        check("layer part position token_id value", (
            (row["layer"], row["after"], at, token["id"], token["p"])
            for row in view[panel] for at, cell in enumerate(row["cells"]) for token in cell
        ), panel=panel)  # fmt: skip
        check("rank token_id value", (
            (row["answer_rank"][at], view[panel][-1]["cells"][at][0]["id"], row["answer"][at])
            for row in view[panel] for at in range(len(view["tokens"]))
        ), panel=f"{panel}_answer")  # fmt: skip
    check("layer head position to_position value", (
        (head["layer"], head["head"], at, to, weight)
        for head in view["attention"] for at, row in enumerate(head["weights"]) for to, weight in enumerate(row)
    ), panel="attention")  # fmt: skip
    patterns = (
        (1, head["head"], token["id"], token["score"]) for head in view["patterns"] for token in head["pattern"]
    )
    check("layer head token_id value", patterns, panel="patterns")
    for side in ("found_by", "message"):
        listed = ((head["head"], token["id"], token["score"]) for head in view["patterns"] for token in head[side])
        check("head token_id value", listed, panel=side, measure="score")
    seen = ((head["head"], head["found_from"]["position"], 1) for head in view["patterns"])
    check("head position to_position", seen, panel="found_by", measure="weight")
    messages = [(head["head"], message) for head in view["patterns"] for message in head["messages"]]
    weights = ((head, message["position"], message["weight"]) for head, message in messages)
    check("head to_position value", weights, panel="messages", measure="weight")
    scores = ((token["id"], token["score"]) for _, message in messages for token in message["tokens"])
    check("token_id value", scores, panel="messages", measure="score")
    for measure in ("coefficient", "strength"):
        neurons = ((n["layer"], n["neuron"], rank, n[measure]) for rank, n in enumerate(view["neurons"], 1))
        check("layer neuron rank value", neurons, panel="neurons", measure=measure)
    first_only = ((n["layer"], n["neuron"], int(n["first_only"])) for n in view["neurons"])
    check("layer neuron value", first_only, panel="neurons", measure="first_only")
    for at, value in enumerate(view["neuron"]["coefficients"]):
        check("value", [(value,)], panel="neuron", measure="coefficient", position=str(at))
    check("token_id", ((token["id"],) for token in view["neuron"]["key"]), panel="neuron", part="key")
    covered = ((row["layer"], row["kind"], row["covered"]) for row in view["coverage"])
    check("layer part value", covered, panel="coverage", measure="covered")
    positions = view["positions"]
    check("layer head value", ((h["layer"], h["head"], h["first"]) for h in positions["heads"]), panel="positions",
          part="alone", measure="first")  # fmt: skip
    parts = [(h["layer"], h["head"], h["parts"]["biases"]) for h in positions["heads"]]
    check("layer head value", parts, panel="positions", part="variance", measure="biases")
    keys = [(1, key["position"], key["score"]) for key in positions["chosen"]["keys"]]
    check("position to_position value", keys, panel="positions", part="by_key", measure="score")
    attribution = view["attribution"]
    check("token_id value", [(attribution["token"]["id"], attribution["logit"])], panel="attribution", part="logit")
    check("value", [(attribution["baseline"],)], panel="attribution", part="baseline")
    check("part value", ((s["part"], s["term"]) for s in attribution["sums"]), panel="attribution", measure="sum")
    head_terms = ((row["layer"], head, t) for row in attribution["layers"] for head, t in enumerate(row["heads"]))
    check("layer head value", head_terms, panel="attribution", part="head")
    for part in ("attention_bias", "neurons", "ff_bias"):
        check("layer value", ((r["layer"], r[part]) for r in attribution["layers"]), panel="attribution", part=part,
              measure="term")  # fmt: skip
    neuron_terms = [(r["layer"], r["neuron"], r["term"]) for r in attribution["raises"] if r["neuron"] is not None]
    check("layer neuron value", neuron_terms, panel="attribution", part="neuron", end="top")
    sweep = view["sweep"]
    check("token_id value", [(sweep["token"]["id"], sweep["log_p"])], panel="sweep", measure="log_p")
    for measure in ("change", "direct"):
        swept = ((p["layer"], p["head"], rank, p[measure]) for rank, p in enumerate(sweep["parts"], 1))
        check("layer head rank value", swept, panel="sweep", measure=measure)
    assert {row["model"] for row in found} == {GPT2}
    lists = {"patterns", "found_by", "message", "messages", "sheet", "heads"}
    assert {row["panel"] for row in found if row["convention"] == "vocabulary"} == lists
    assert {row["convention"] for row in found} == {"vocabulary", ""}
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
    assert f"/{GPT2}/prompt" in page.links()  # of the menu: without what was chosen here
    strip = live.get(f"/{GPT2}/prompt?text=the+dog+and&panel=neurons&layer=1&neuron={weakest}").text
    colours = re.findall(
        r'<span class="num( lowers)?" data-heat', strip.split('<ol class="values"')[1].split("</ol>")[0]
    )
    assert [colour != "" for colour in colours] == [value < 0 for value in found["coefficients"]]
    assert f"/{GPT2}/ff/1/{weakest}" in page.links()
    asked = parsed(live.get(f"/{GPT2}/prompt?panel=neurons&layer=1&neuron={weakest}").text)
    assert f"/{GPT2}/ff/1/{weakest}" in asked.links()
    assert [e.attributes["value"] for e in asked.all("input", name="neuron")] == [str(weakest)]
    assert f"/{GPT2}/prompt?text=The+capital+of+France+is&layer=1&neuron={weakest}&panel=neurons" in asked.links()
    other = parsed(live.get(f"/{GPT2}/prompt?text=the+dog+and&panel=neurons&layer=1&neuron={weakest}").text).links()
    assert f"/{GPT2}/prompt?text=the+dog+and&layer=2&panel=neurons" in other  # another layer's neuron 5 is another


def test_neurons_over_the_whole_text(live: TestClient) -> None:
    """The strongest, or those that were asked for: a row for each, a column for each token; each can be added."""
    address = f"{PROMPT}&panel=neurons"
    view = live.get(format_address(address, "json")).json()
    assert view["activations"] == []
    strongest = view["strongest"]
    assert all(len(neuron["coefficients"]) == len(view["tokens"]) for neuron in strongest)
    first = strongest[0]
    page = parsed(live.get(address).text)
    assert f"{address}&neurons={first['layer']}.{first['neuron']}" in page.links()
    asked = f"{address}&neurons=2.7,1.3"
    chosen = live.get(format_address(asked, "json")).json()["activations"]
    assert [(neuron["layer"], neuron["neuron"]) for neuron in chosen] == [(2, 7), (1, 3)]
    html = live.get(asked).text
    table = parsed(html.partition('class="map activations"')[2].partition("</table>")[0])
    assert len(table.all("td")) == 2 * len(view["tokens"])
    assert {f"/{GPT2}/ff/2/7", f"{address}&neurons=1.3", f"{address}&neurons=2.7"} <= set(table.links())
    found = rows(live, format_address(asked, "csv"))
    values = [float(row["value"]) for row in found if row["panel"] == "activations" and row["neuron"] == "7"
              and row["measure"] == "coefficient"]  # fmt: skip
    assert sorted(values) == sorted(chosen[0]["coefficients"])
    assert [e.attributes["value"] for e in parsed(html).all("input", name="neurons")][:1] == ["2.7,1.3"]


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


def test_why_a_word(live: TestClient) -> None:
    """The terms on the page sum to what it says; every part has its lists and a link that switches it off."""
    address = f"{PROMPT}&panel=attribution"
    view = live.get(format_address(address, "json")).json()["attribution"]
    assert view["token"]["id"] == live.get(format_address(PROMPT, "json")).json()["prediction"][0]["id"]
    total = view["logit"] - view["baseline"]
    assert sum(part["term"] for part in view["sums"]) == pytest.approx(total, abs=1e-3)
    page = parsed(live.get(address).text)
    assert f"{address}&token={view['token']['id']}#attribution" in page.links()
    for part in (*view["raises"], *view["lowers"]):
        kind, number = ("head", part["head"]) if part["neuron"] is None else ("ff", part["neuron"])
        name = f"{part['layer']}.{'h' if kind == 'head' else ''}{number}"
        assert f"/{GPT2}/{kind}/{part['layer']}/{number}" in page.links()
        assert f"{address}&off={name}&token={view['token']['id']}" in page.links()
        assert part["share"] == (pytest.approx(part["term"] / total) if total > 0 else None)
        assert bool(part["attends"]) == (kind == "head")
    other = live.get(format_address(address, "json") + "&token=lion&against=dog").json()["attribution"]
    assert (other["token"]["token"].strip(), other["against"]["token"].strip()) == ("lion", "dog")
    assert live.get(f"{address}&token=lion&against=dog").status_code == 200
    by_id = live.get(f"{address}&token={other['token']['id']}").text
    assert f"<title>Why “{visible(other['token']['token'])}”" in by_id
    assert f'value="{other["token"]["token"]}"' in by_id  # not the id
    plain = live.get(format_address(address, "json") + "&against=none").json()["attribution"]
    assert (plain["baseline"], plain["logit"]) == (0, pytest.approx(view["logit"], abs=1e-4))
    assert live.get(f"{address}&k=1").status_code == 200  # no second token to compare with
    wrong = live.get(f"{address}&token=999999")
    assert (wrong.status_code, "token 999999 does not exist here" in wrong.text) == (404, True)


@pytest.mark.parametrize("over", ["heads", "neurons"])
def test_what_is_lost_without_each_part(live: TestClient, over: str) -> None:
    """A row, a link that switches it off and a point for each; the correlation in words; the map of all heads."""
    address = f"{PROMPT}&panel=sweep&off=1.h2,1.3" + ("&over=neurons" if over == "neurons" else "")
    view = live.get(format_address(address, "json")).json()
    html, sweep = live.get(address).text, view["sweep"]
    page, (drawn,) = parsed(html), pictures(html)[-1:]
    assert "Direct effect is not importance" in html
    assert f"<b>{ratio(sweep['spearman'])}</b>" in html
    assert len(drawn.all("circle")) == sweep["of"] == len(sweep["parts"])
    without = live.get(format_address(PROMPT, "json") + f"&k=50&off=1.h2,1.3,{_off_name(sweep['parts'][0])}").json()
    p = {token["id"]: token["p"] for token in without["prediction"]}[sweep["token"]["id"]]
    assert math.log(p) == pytest.approx(sweep["log_p"] + sweep["parts"][0]["change"], abs=1e-4)
    for rank, part in enumerate(sweep["parts"]):
        kind, number = ("head", part["head"]) if over == "heads" else ("ff", part["neuron"])
        assert (f"/{GPT2}/{kind}/{part['layer']}/{number}" in page.links()) >= (rank < 50)
        link = f"{PROMPT}&off=1.h2,1.3,{_off_name(part)}&token={sweep['token']['id']}"
        assert (link in page.links()) == (over == "heads" or rank < 50)
        assert ("pairs" in part) == (rank < 50)
    titles = [title.text for title in drawn.all("title")[1:]]
    first = sweep["parts"][0]
    assert f"change {'+' * (first['change'] > 0)}{number_text(first['change'])}" in titles[0]
    assert ("No neuron is left" in live.get(f"{address}&cut=1e6").text) == (over == "neurons")


def _off_name(part: dict[str, Any]) -> str:
    return f"{part['layer']}." + (f"h{part['head']}" if part["neuron"] is None else str(part["neuron"]))


@pytest.mark.parametrize("wrong", ["over=x", "over=neurons&cut=-1", "over=neurons&cut=nan", "over=neurons&cut=x"])
def test_a_sweep_of_what_is_no_part(live: TestClient, wrong: str) -> None:
    answer = live.get(f"{PROMPT}&panel=sweep&{wrong}")
    assert (answer.status_code, wrong.rpartition("&")[2].partition("=")[0] in answer.text) == (422, True)


def pictures(html: str) -> list[Parsed]:
    """The SVGs of a page, each by itself."""
    return [parsed(each.partition("</svg>")[0]) for each in html.partition("<main")[2].split("<svg")[1:]]


@pytest.mark.parametrize("position", [0, 4])
def test_the_rank_of_the_answer_over_all_steps(live: TestClient, position: int) -> None:
    """A point for each step, on a logarithmic axis; the steps that change the rank most are named."""
    address = f"{PROMPT}&position={position}"
    ranks = [row["answer_rank"][position] for row in live.get(format_address(address, "json")).json()["evolution"]]
    steps = ["embedding", *(f"L{layer} {part}" for layer in range(3) for part in ("attention", "FF"))]
    drawn = pictures(live.get(address).text)[0]
    told = [title.text for title in drawn.all("title")[1:]]
    assert told == [f"{step}: rank {rank:,}" for step, rank in zip(steps, ranks, strict=True)]
    (line,) = drawn.all("path", **{"class": "line"})
    heights = [float(point.split()[1]) for point in line.attributes["d"].removeprefix("M").split("L")]
    decade = 160 / max(1, math.ceil(math.log10(max(ranks))))
    assert heights == pytest.approx([decade * math.log10(rank) for rank in ranks], abs=0.06)
    changes = {
        f"{step}: {before:,} to {rank:,}": max(before, rank) / min(before, rank)
        for step, before, rank in zip(steps[1:], ranks, ranks[1:], strict=False)
    }
    largest = sorted((name for name in changes if changes[name] >= 1.5), key=lambda name: -changes[name])[:4]
    assert {text.text.strip() for text in drawn.all("text", **{"class": "named"})} == set(largest)
    assert largest


@pytest.mark.parametrize("asked", [
    {"text": "the <script> and the lion"}, {"text": TEXT, "position": 2, "off": "1.h2"}, {"text": TEXT + " dog" * 30},
])  # fmt: skip
def test_the_path_to_a_word(live: TestClient, asked: dict[str, str | int]) -> None:
    """Every head is an arc from where it looks most, every neuron a dot; its number is that of the data, its link
    switches it off; the picture of a long text has room for the tokens that heads look at."""
    asked |= {"panel": "attribution"}
    view = live.get(f"/{GPT2}/prompt.json", params=asked).json()
    html = live.get(f"/{GPT2}/prompt", params=asked).text
    assert "<script>" not in html
    drawn, found = pictures(html)[0], view["attribution"]
    titles = [title.text.partition(":")[0] for title in drawn.all("title")[1:]]
    shown = list(zip(drawn.links(), titles, strict=True))
    before = f"{asked['off']}," if "off" in asked else ""
    for part in found["path"]:
        kind, number = ("", part["neuron"]) if part["head"] is None else ("h", part["head"])
        signed = f"{'+' if part['term'] > 0 else ''}{number_text(part['term'])}"
        name = f"L{part['layer']}{kind.upper() or 'N'}{number} {signed}"
        off = f"off={before}{part['layer']}.{kind}{number}"
        if part["head"] is not None:
            look = part["attends"][0]
            name += f", looks at {visible(view['tokens'][look['position']]['token'])} {percent(look['weight'])}"
        ((href, _),) = [(href, title) for href, title in shown if title.startswith(name)]
        assert {off, f"token={found['token']['id']}"} <= set(href.partition("?")[2].split("&"))
    assert len(shown) == len(found["path"])
    heads = [part for part in found["path"] if part["head"] is not None]
    by_class = [element.attributes.get("class") for element in drawn.elements]
    assert (by_class.count("arc"), by_class.count("dot")) == (len(heads), len(shown) - len(heads))
    lowering = [part for part in found["path"] if part["term"] < 0]
    assert by_class.count("takes") == len(lowering) > 0
    columns = min(view["position"] + 1, 10)
    assert 1 <= by_class.count("stream") + by_class.count("stream here") <= columns


def test_heads_by_position_lead_to_the_chosen_one(live: TestClient) -> None:
    """It has parts of scores where positions are learned, and charts by distance where they are rotary."""
    address = f"{PROMPT}&panel=positions"
    view = live.get(format_address(address, "json")).json()["positions"]
    assert (view["by"], view["chosen"]) == ("position", None)
    links = [link for link in parsed(live.get(address).text).links() if link.endswith("#chosen-head")]
    for head in view["heads"]:
        assert any(f"layer={head['layer']}&head={head['head']}" in link for link in links)
    chosen = live.get(f"{address}&layer=1&head=2").text
    assert f"/{GPT2}/head/1/2" in parsed(chosen).links()
    assert "of the variance" in chosen
    rotary = parsed(live.get(f"/{LLAMA}/prompt?text=the+dog+and&panel=positions&layer=1&head=2").text)
    assert len(rotary.all("svg", **{"class": "chart", "role": "img"})) == 2
    alone = live.get(f"/{GPT2}/prompt?text=a&panel=positions")
    assert "A single token has no other position" in alone.text


@pytest.mark.parametrize(("text", "large", "small"), [(TEXT, 1, 1), (TEXT + " dog" * 30, 2, 5)])
def test_maps_of_attention_have_labels(live: TestClient, text: str, large: int, small: int) -> None:
    """Tokens, or the numbers of every few positions where there are many; the large map has weights, too."""
    asked = {"text": text, "panel": "attention", "head": "1"}
    view = live.get(f"/{GPT2}/prompt.json", params=asked).json()
    tokens = [token["token"].replace(" ", "␣") for token in view["tokens"]]
    assert len(tokens) == len(text.split())
    _, chosen, *others = pictures(live.get(f"/{GPT2}/prompt", params=asked).text)
    for drawn, step in ((chosen, large), *((other, small) for other in others)):
        labels = [label.text.strip() for label in drawn.all("text") if "transform" in label.attributes]
        assert labels == (tokens if step == 1 else [str(at) for at in range(0, len(tokens), step)])
        weights = [number.text.strip() for number in drawn.all("text")[2 * len(labels) :]]
        of_head = next(head["weights"] for head in view["attention"] if (head["layer"], head["head"]) == (2, 1))
        expected = [ratio(weight) for row in of_head for weight in row]
        assert weights == (expected if drawn is chosen and step == 1 else [])


@pytest.mark.parametrize(("text", "position", "together"), [
    ("the <script> and the lion", 4, 1), (TEXT, 2, 1), (TEXT + " dog" * 45, 49, 2),
])  # fmt: skip
def test_a_strip_for_every_head(live: TestClient, text: str, position: int, together: int) -> None:
    """Its numbers are those of the data; it leads to the head; tokens stay text; long texts have no more cells."""
    asked: dict[str, str | int] = {"text": text, "panel": "attention", "position": position}
    view = live.get(f"/{GPT2}/prompt.json", params=asked).json()
    html = live.get(f"/{GPT2}/prompt", params=asked).text
    assert ("<script>" in html, f", {together} to a cell" in html) == (False, together > 1)
    drawn = pictures(html)[0]
    title, *heads = [each.text for each in drawn.all("title")]
    assert f"from position {view['position']}" in title
    expected = []
    for layer, of_layer in enumerate(view["looks"]):
        for head, weights in enumerate(of_layer):
            assert len(weights) == view["position"] + 1
            best = sorted(range(len(weights)), key=lambda at: -weights[at])[:3]
            looks = ", ".join(f"{visible(view['tokens'][at]['token'])} {percent(weights[at])}" for at in best)
            expected.append(f"L{layer}H{head}: {looks}")
            assert drawn.links()[len(expected) - 1].endswith(f"&layer={layer}&head={head}#head-{head}")
    assert heads == expected
    cells = sum(path.attributes["d"].count("M") for path in drawn.all("path") if "data-heat" in path.attributes)
    assert 0 < cells <= 32 * len(expected)


PATTERNS = f"{PROMPT}&layer=1&panel=patterns"
DATA = PATTERNS.replace("prompt?", "prompt.json?")


@pytest.mark.parametrize(("asked", "convention", "canonical"), [
    ("", "vocabulary", ""),
    ("&convention=vocabulary&lens=dot&rows=heads", "vocabulary", ""),
    ("&convention=final", "final", "&convention=final"),
    ("&convention=exact&lens=cosine", "exact", "&convention=exact&lens=cosine"),
])  # fmt: skip
def test_the_usual_convention_is_the_vocabularys(live: TestClient, asked: str, convention: str, canonical: str) -> None:
    """An address that names another, as all did that meant the final norm, keeps its meaning."""
    assert live.get(DATA + asked).json()["convention"] == convention
    assert f'<{PATTERNS}{canonical}>; rel="canonical"' in live.get(PATTERNS + asked).headers["link"]


def test_both_sides_of_every_head(live: TestClient) -> None:
    view = live.get(DATA + "&position=1&k=3").json()
    cells = live.get(PATTERNS + "&position=1&k=3").text.split("<dd>")[1:]
    for head in view["patterns"]:
        for side in ("pattern", "found_by", "message"):
            shown = parsed(cells.pop(0).partition("<dt>")[0]).links()
            assert shown == [f"/{GPT2}/token/{token['id']}" for token in head[side]]
        assert head["found_from"]["position"] > 1
        assert f"position={head['found_from']['position']}&" in parsed(cells.pop(0).partition("</dl>")[0]).links()[0]
    last = live.get(DATA).json()["patterns"]
    assert [head["found_from"] for head in last] == [None] * 4  # nobody looks at the last position but itself


def test_all_tokens_at_one_head(live: TestClient) -> None:
    path = f"{PATTERNS}&head=2&rows=tokens"
    view = live.get(path.replace("prompt?", "prompt.json?")).json()
    assert (view["head"], view["rows"], view["patterns"]) == (2, "tokens", None)
    assert [token["position"] for token in view["patterns_by_token"]] == list(range(len(view["tokens"])))
    by_head = live.get(f"{DATA}&position=1").json()["patterns"][2]
    token = view["patterns_by_token"][1]
    for side in ("pattern", "found_by", "message"):
        assert [each["id"] for each in token[side]] == [each["id"] for each in by_head[side]]
    assert token["looks_at"]["position"] == by_head["messages"][0]["position"]
    assert token["found_from"] == by_head["found_from"]
    links = parsed(live.get(path).text).links()
    assert f"{PATTERNS}&head=2&position=1".split("&layer")[0] in {link.split("&layer")[0] for link in links}
    assert {f"/{GPT2}/head/1/2", f"{PROMPT}&layer=1&head=3&panel=patterns&rows=tokens"} <= set(links)
    assert live.get(f"{DATA}&rows=tokens").json()["head"] == 0


@pytest.mark.parametrize("of", ["", "&head=1&rows=tokens"])
def test_tables_for_people(live: TestClient, of: str) -> None:
    """Every list is in Markdown and LaTeX; other panels have no such table."""
    view = live.get(DATA + of).json()
    lists = view["patterns"] or view["patterns_by_token"]
    markdown = live.get(PATTERNS.replace("prompt?", "prompt.md?") + of).text
    table = [line for line in markdown.splitlines() if line.startswith("| ")][1:]
    assert len(table) == len(lists) + 1
    assert "looks for" in markdown
    assert "is found by" in markdown
    assert "(vocabulary, dot)" in markdown
    latex = live.get(PATTERNS.replace("prompt?", "prompt.tex?") + of).text
    assert "is found by" in latex
    other = live.get(PROMPT.replace("prompt?", "prompt.md?"))
    assert (other.status_code, "panel=patterns" in other.text) == (404, True)
    assert "prompt.md" not in live.get(PROMPT).text


def test_what_is_linked_opens_with_the_same_lens(live: TestClient) -> None:
    links = parsed(live.get(f"{PATTERNS}&lens=cosine").text).links()
    assert f"/{GPT2}/head/1/2?lens=cosine" in links
    assert any("/token/" in link and link.endswith("?lens=cosine") for link in links)
    assert PATTERNS in links
    neurons = parsed(live.get(f"{PROMPT}&panel=neurons&lens=cosine").text).links()
    assert any("/ff/" in link and link.endswith("?lens=cosine") for link in neurons)
    first = live.get(f"{PROMPT}&panel=neurons&lens=cosine".replace("prompt?", "prompt.json?")).json()["neurons"]
    built = next(neuron for neuron in first if neuron["layer"] == 1)
    stored = live.get(f"/{GPT2}/ff/1/{built['neuron']}.json?lens=cosine").json()
    assert [token["id"] for token in built["key"]] == [token["id"] for token in stored["key"]["top"][:5]]


def test_a_gated_neuron_that_was_asked_about_shows_its_up(live: TestClient) -> None:
    path = f"/{LLAMA}/prompt{{}}?text=the+dog&panel=neurons&layer=1&neuron=3"
    up = live.get(path.format(".json")).json()["neuron"]["up"]
    stored = live.get(f"/{LLAMA}/ff/1/3.json").json()["up"]
    listed = [row for row in rows(live, path.format(".csv")) if (row["panel"], row["part"]) == ("neuron", "up")]
    for end in ("top", "bottom"):
        ids = [token["id"] for token in up[end]]
        assert ids == [token["id"] for token in stored[end]][: len(ids)] != []
        assert [int(row["token_id"]) for row in listed if row["end"] == end] == ids
    assert live.get(f"/{GPT2}/prompt.json?text=the+dog&panel=neurons&layer=1&neuron=3").json()["neuron"]["up"] is None


def test_words_that_a_head_repeats(live: TestClient) -> None:
    """Counted once a row, whatever their case and spaces, and highlighted."""
    path = f"/{GPT2}/prompt.json?text=the+dog+and+the+lion+and+the+horse&panel=patterns&rows=tokens&layer=1&k=20"
    found = 0
    for head in range(4):
        view = live.get(f"{path}&head={head}").json()
        rows_of = view["patterns_by_token"]
        for repeat in view["repeats_of_head"]:
            field = {"looks_for": "pattern", "found_by": "found_by", "sends": "message"}[repeat["list"]]
            there = [{token["token"].strip().lower() for token in row[field]} for row in rows_of]
            assert sum(repeat["word"] in words for words in there) == repeat["rows"] >= max(3, len(rows_of) / 4)
            assert {token["token"].strip().lower() for token in repeat["tokens"]} == {repeat["word"]}
            found += 1
        html = live.get(f"{path.replace('.json', '')}&head={head}").text
        assert ("<mark>" in html) == bool(view["repeats_of_head"])
        counts = [row["value"] for row in rows(live, f"{path.replace('.json', '.csv')}&head={head}")
                  if row["panel"] == "repeats"]  # fmt: skip
        assert [*map(float, counts)] == [each["rows"] for each in view["repeats_of_head"]]
    assert found
    assert live.get(DATA).json()["repeats_of_head"] is None


HEADS = f"/{GPT2}/prompt?text=the+dog+and+the+lion+and+the+horse&panel=heads"


@pytest.mark.parametrize("by", ["repeats", "self", "letter", "first", "entropy", "distance", "moves"])
def test_heads_by_a_measure(live: TestClient, by: str) -> None:
    """The map has every head, the table those with the most; both lead to all tokens at the head."""
    address = HEADS if by == "repeats" else f"{HEADS}&by={by}"
    view = live.get(address.replace("prompt?", "prompt.json?")).json()
    values = {
        (head["layer"], head["head"]): max(head[by].values()) if isinstance(head[by], dict) else head[by]
        for head in view["heads"]
    }
    assert (view["by"], len(values)) == (by, 12)
    page = parsed(live.get(address).text)
    there = [f"layer={layer}&head={head}" for layer, head in sorted(values, key=lambda at: -values[at])]
    table = [link for link in page.links() if "rows=tokens" in link and "panel=patterns" in link]
    assert len(table) == 12 + 12
    assert all(where in link and "by=" not in link for where, link in zip(there, table, strict=False))
    assert all(f"layer={at // 4}&head={at % 4}" in link for at, link in enumerate(table[12:]))
    assert live.get(f"{HEADS}&by=x").status_code == 422


def test_heads_as_rows(live: TestClient) -> None:
    view = live.get(HEADS.replace("prompt?", "prompt.json?")).json()
    listed = [row for row in rows(live, HEADS.replace("prompt?", "prompt.csv?")) if row["panel"] == "heads"]
    for head in view["heads"]:
        of_head = {(row["measure"], row["part"]): row["value"] for row in listed
                   if (int(row["layer"]), int(row["head"])) == (head["layer"], head["head"])}  # fmt: skip
        assert {float(of_head[name, ""]) for name in ("first", "rests")} == {head["first"], float(head["rests"])}
        assert all(float(of_head["self", name]) == share for name, share in head["self"].items())
