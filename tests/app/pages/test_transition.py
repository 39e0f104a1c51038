"""Pairs to neurons: the page, what stored lists say of a pair at once, and the ways between heads and neurons."""

from pathlib import Path

import numpy as np
import pytest
from starlette.testclient import TestClient

from lexiscope.app.lists.stored_transitions import MOST_LISTED, listed_transitions
from lexiscope.app.urls import format_address
from lexiscope.precompute.index.index import Index
from lexiscope.precompute.live.wire.grammar import WordPair
from tests.support.pages import parsed
from tests.support.site import GPT2, LLAMA, RELATION, TRANSITION, visit
from tests.support.tables import rows

PAIR = f"/{LLAMA}/transition?pairs=dog%3Elion"


def test_neurons_as_data(live: TestClient) -> None:
    view = live.get(format_address(TRANSITION, "json")).json()
    assert [(pair["source"]["word"], pair["target"]["word"]) for pair in view["pairs"]] == [
        ("dog", "dogs"), ("lion", "horse"),
    ]  # fmt: skip
    assert (view["words"], view["lens"], view["shuffled_with"]) == ("dog>dogs,lion>horse", "dot", "pairs")
    assert {neuron["end"] for neuron in view["neurons"]} == {"top", "bottom"}
    assert len(view["neurons"]) == 100
    for neuron in view["neurons"]:
        assert neuron["up_rank"] is None
        assert len(neuron["key_ranks"]) == len(neuron["value_z"]) == 2
        assert neuron["value_end"] == ("bottom" if sum(neuron["value_z"]) < 0 else "top")
    shown = [neuron for neuron in view["neurons"] if neuron["layer"]]  # layer 0 is not built
    for name, end, tokens in (("key", "top", "reads"), ("value", None, "writes")):
        page = live.get(f"/{GPT2}/ff/{shown[0]['layer']}/{shown[0]['neuron']}.json").json()
        listed = page[name][end or shown[0]["value_end"]]
        assert [token["id"] for token in shown[0][tokens]] == [token["id"] for token in listed[: len(shown[0][tokens])]]
    assert live.get(format_address(TRANSITION, "json") + "&lens=cosine").json()["neurons"] != view["neurons"]
    assert len(live.get(format_address(TRANSITION, "json") + "&k=3").json()["neurons"]) == 6


@pytest.mark.parametrize("path", [TRANSITION, PAIR])
def test_the_tables_are_cut_where_chance_begins(live: TestClient, path: str) -> None:
    view = live.get(format_address(path, "json")).json()
    text = live.get(path).text
    for end, other in (("top", "bottom"), ("bottom", None)):
        section = text.partition(f'id="{end}"')[2].partition(f'id="{other}"' if other else "</main>")[0]
        found = [neuron for neuron in view["neurons"] if neuron["end"] == end]
        above, below = section.partition('<tr class="line">')[::2]
        assert f"the best neuron stays below {view['chance']:.2f} in" in below
        for part, is_above in ((above, True), (below, False)):
            wanted = [n for n in found if (n["score"] > view["chance"]) == is_above]
            names = [f"/ff/{n['layer']}/{n['neuron']}" for n in wanted]
            assert [link for link in parsed(part).links() if "/ff/" in link] == [
                f"/{view['model']}{name}" for name in names
            ]
    listed = rows(live, format_address(path, "csv"))
    assert [float(row["score"]) for row in listed] == [neuron["score"] for neuron in view["neurons"]]
    assert {float(row["chance"]) for row in listed} == {view["chance"]}
    assert {(row["lens"], row["model"]) for row in listed} == {("dot", view["model"])}


def test_a_gated_neuron_also_reads_with_up(live: TestClient) -> None:
    view = live.get(format_address(PAIR, "json")).json()
    for neuron in view["neurons"]:
        turned = neuron["up_z"][0] < 0
        assert (neuron["value_z"][0] < 0) == (turned != (neuron["end"] == "bottom")) or neuron["score"] <= 0
    assert "the gate times up" in live.get(PAIR).text
    assert "the gate times up" not in live.get(TRANSITION).text


@pytest.mark.parametrize(("source", "target"), [("dog", "lion"), ("the", "and"), ("e", "a"), ("dog", "qqqq")])
@pytest.mark.parametrize("lens", ["dot", "cosine"])
def test_neurons_whose_stored_lists_hold_a_pair(site_data: Path, source: str, target: str, lens: str) -> None:
    """All lists of an index are read, and compared with the words' texts."""
    index = Index.open(site_data / LLAMA)

    def ranks(ids: "np.ndarray[tuple[int], np.dtype[np.uint32]]", word: str) -> list[int]:
        return [at for at, token in enumerate(ids.tolist(), 1) if index.tokens.text(token).strip().lower() == word]

    expected = []
    for layer in index.layers:
        for neuron in range(index.shape.d_mlp):
            key, value = (index.shard(layer).vector(kind, neuron, lens) for kind in ("ff_key", "ff_value"))
            for end, ids in (("top", value.ids[0]), ("bottom", value.ids[1])):
                if (a := ranks(key.ids[0], source)) and (b := ranks(ids, target)):
                    expected.append((a[0] + b[0], layer, neuron, end, [a[0], b[0]]))
    found, total = listed_transitions(index, (WordPair(source=source, target=target),), lens)
    assert found is not None
    assert total == len(expected)
    assert [(sum(row["ranks"]), row["layer"], row["neuron"], row["end"], row["ranks"]) for row in found] == sorted(
        expected
    )[:MOST_LISTED]


def test_heads_and_neurons_are_a_click_apart(live: TestClient, site_data: Path) -> None:
    relation, transition = (f"/{GPT2}/{page}?pairs=dog%3Elion" for page in ("relation", "transition"))
    assert relation in parsed(live.get(transition).text).links()
    page = live.get(relation)
    assert transition in parsed(page.text).links()
    view = live.get(format_address(relation, "json")).json()
    for neuron in view["neurons"]:
        assert f"/{GPT2}/ff/{neuron['layer']}/{neuron['neuron']}" in parsed(page.text).links()
    assert live.get(format_address(RELATION, "json")).json()["neurons"] is None, "of one pair alone"
    search = f"/{GPT2}/search.json?q=dog+%3E+lion"
    assert live.get(search).json()["neurons"] == view["neurons"]
    assert transition in live.get(f"/{GPT2}/search?q=dog+%3E+lion", headers={"HX-Request": "true",
        "HX-Request-Type": "partial", "HX-Target": "div#suggestions"}).text.replace("&gt;", "%3E")  # fmt: skip
    with visit(site_data, worker="off") as visitor:
        page = visitor.get(f"/{GPT2}/search?q=dog+%3E+lion")
        assert visitor.get(search).json()["neurons"] == view["neurons"]
        assert "Neurons that list dog and lion" in page.text
        assert visitor.get(search.replace("+%3E+", "+")).json()["neurons"] is None
