"""Pages of seed words, over HTTP with a real worker; tests/precompute/live has the ranking."""

import csv

import pytest
from starlette.testclient import TestClient

from lexiscope.app.urls import format_address
from tests.support.pages import parsed
from tests.support.site import GPT2, SEEDS
from tests.support.tables import rows


@pytest.mark.parametrize("lens", ["dot", "cosine"])
def test_seeds_as_data(live: TestClient, lens: str) -> None:
    asked = {"words": "2*dog - lion", "kind": "ff_value,w_o", "k": "7", "lens": lens}
    view = live.get(f"/{GPT2}/seeds.json", params=asked).json()
    assert view["lens"] == lens
    assert {"model", "kind", "seeds", "results"} <= view.keys()
    assert (view["words"], view["kind"]) == ("2*dog - lion", "ff_value,w_o")
    assert [(seed["word"], seed["weight"]) for seed in view["seeds"]] == [("dog", 2.0), ("lion", -1.0)]
    assert len(view["results"]) == 7
    scores = [result["score"] for result in view["results"]]
    assert scores == sorted(scores, reverse=True)
    for result in view["results"]:
        assert result["kind"] in ("ff_value", "w_o")
        assert result["score"] == pytest.approx((2 * result["scores"][0] - result["scores"][1]) / 3, abs=1e-5)
        assert len(result["top"]) == 8
        assert result["computed"] == (result["layer"] == 0)  # which is not built
        if result["layer"]:
            place = f"ff/{result['layer']}/{result['index']}" if result["head"] is None else (
                f"head/{result['layer']}/{result['head']}/sub/{result['subhead']}"
            )  # fmt: skip
            stored = live.get(f"/{GPT2}/{place}.json?lens={lens}").json()["value" if result["head"] is None else "o"]
            assert [token["id"] for token in result["top"]] == [token["id"] for token in stored["top"][:8]]
    found = rows(live, f"/{GPT2}/seeds.csv?words=dog,lion&k=7")
    assert len(found) == 7
    assert {"kind", "layer", "index", "score", "word_1", "score_2", "top_1", "top_1_id"} <= found[0].keys()
    assert {(row["model"], row["words"]) for row in found} == {(GPT2, "dog,lion")}


@pytest.mark.parametrize(("kind", "matrix", "side"), [("vo_out", "vo", "out"), ("qk_query", "qk", "query")])
def test_seeds_find_directions(live: TestClient, kind: str, matrix: str, side: str) -> None:
    asked = {"words": "dog,lion", "kind": kind, "k": "5"}
    links = parsed(live.get(f"/{GPT2}/seeds", params=asked).text).links()
    results = live.get(f"/{GPT2}/seeds.json", params=asked).json()["results"]
    assert len(results) == 5
    for result in results:
        assert (result["kind"], result["subhead"]) == (kind, None)
        path = f"/{GPT2}/head/{result['layer']}/{result['head']}/svd/{result['direction']}"
        assert path in links
        if result["layer"]:  # layer 0 is not built
            stored = live.get(f"{path}.json").json()[matrix][side]["top"][:8]
            assert [token["id"] for token in result["top"]] == [token["id"] for token in stored]


def test_a_direction_in_other_readings(live: TestClient) -> None:
    path = f"/{GPT2}/head/1/2/svd/1"
    reading = live.get(f"{path}.json?reading=norm&k=8").json()["reading"]
    assert [*reading["vectors"]] == ["in", "out", "query", "key"]
    assert all(len(vector["top"]) == 8 for vector in reading["vectors"].values())
    assert live.get(f"{path}?reading=mlp&k=8").text.count("overlap with the stored top") == 4


@pytest.mark.parametrize(
    ("page", "asked"), [("seeds", "words=dog"), ("relation", "pairs=dog%3Elion"), ("heads", "words=dog")]
)
def test_csv_of_a_page_that_was_asked_nothing_is_a_table_without_rows(live: TestClient, page: str, asked: str) -> None:
    (empty,) = csv.reader(live.get(f"/{GPT2}/{page}.csv").text.splitlines())
    full = rows(live, f"/{GPT2}/{page}.csv?{asked}")[0].keys()
    assert {"layer", "head", "rank", "score", "model"} <= set(empty) <= full


def test_a_page_of_seeds_keeps_its_lens(live: TestClient) -> None:
    html = live.get(f"{SEEDS}&lens=cosine").text
    page = parsed(html)
    view = live.get(format_address(SEEDS, "json") + "&lens=cosine").json()
    first = view["results"][0]
    assert f"/{GPT2}/ff/{first['layer']}/{first['index']}?lens=cosine" in page.links()
    assert f"/{GPT2}/token/{first['top'][0]['id']}?lens=cosine" in page.links()
    assert SEEDS in page.links(), "the other lens"
    assert "the mean of its cosines" in html
    assert {row["lens"] for row in rows(live, format_address(SEEDS, "csv") + "&lens=cosine")} == {"cosine"}


def test_signs_of_scores_are_explained_where_a_word_has_a_minus(live: TestClient) -> None:
    for words, explained in (("dog,lion", False), ("dog - lion", True)):
        html = live.get(f"/{GPT2}/seeds", params={"words": words}).text
        assert "without listing any of the words" in html
        assert ("before its weight" in html) == explained


def test_seeds_through_every_head(live: TestClient) -> None:
    assert live.get(format_address(SEEDS, "json")).json()["heads"] == []
    view = live.get(format_address(SEEDS, "json") + "&heads=1").json()
    assert {(head["layer"], head["head"]) for head in view["heads"]} == {
        (layer, h) for layer in range(3) for h in range(4)
    }
    assert all(head["writes"] and head["seeks"] for head in view["heads"])
    found = rows(live, format_address(SEEDS, "csv") + "&heads=1")
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
