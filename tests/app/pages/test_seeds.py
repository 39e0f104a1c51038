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
    assert "over the length of the vector" in html
    assert {row["lens"] for row in rows(live, format_address(SEEDS, "csv") + "&lens=cosine")} == {"cosine"}


def test_signs_of_scores_are_explained_where_a_word_has_a_minus(live: TestClient) -> None:
    for words, explained in (("dog,lion", False), ("dog - lion", True)):
        html = live.get(f"/{GPT2}/seeds", params={"words": words}).text
        assert ("a word with a minus sign" in html) == explained


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


def test_seeds_by_fit_as_data(live: TestClient) -> None:
    path = f"/{GPT2}/seeds.json?words=dog,lion,horse&k=60&rank=fit"
    view, bare = live.get(path).json(), live.get(f"/{GPT2}/seeds.json?words=dog,lion,horse&k=60").json()
    assert (view["rank"], view["widen"], view["kind"]) == ("fit", 1, "ff_key,ff_value")
    assert (bare["rank"], bare["kind"], bare["chance"]) == ("score", "ff_value", None)
    assert view["chance"] > 0
    fits = [result["fit"] for result in view["results"]]
    assert fits == sorted(fits, reverse=True)
    assert {result["kind"] for result in view["results"]} == {"ff_key", "ff_value"}
    assert live.get(f"{path}&widen=0").json()["results"] != view["results"]
    assert any(result["near"] for result in view["results"])
    for result in view["results"]:
        assert -1 <= result["cosine"] <= 1
        assert result["bias"] in (True, False)
        if result["layer"]:  # layer 0 is not built
            stored = live.get(f"/{GPT2}/ff/{result['layer']}/{result['index']}.json?k=30").json()
            listed = {token["id"] for token in stored[result["kind"].removeprefix("ff_")]["top"]}
            assert {token["id"] for token in result["near"]} <= listed
    found = rows(live, path.replace(".json", ".csv"))
    assert [float(row["fit"]) for row in found] == fits
    assert {"cosine", "bias", "near_1", "near_1_id", "score_3"} <= found[0].keys()


@pytest.mark.parametrize(("asked", "said"), [("rank=best", "score"), ("widen=2", "0"), ("rank=fit&kind=w_x", "w_x")])
def test_a_wrong_rank_is_refused(live: TestClient, asked: str, said: str) -> None:
    answer = live.get(f"/{GPT2}/seeds?words=dog&{asked}")
    assert answer.status_code in (400, 422)
    assert said in answer.text


def test_the_page_by_fit(live: TestClient) -> None:
    """Rows of high bias are folded and counted; a line says what random words reach; the form asks for the fit."""
    asked = f"{SEEDS}&k=60&rank=fit"
    view, html = live.get(format_address(asked, "json")).json(), live.get(asked).text
    folded = [result for result in view["results"] if result["bias"]]
    shown = [result for result in view["results"] if not result["bias"]]
    assert html.count('<tr class="line">') == 1
    before = html.split('<tr class="line">')[0]
    assert before.count('<th scope="row"') == sum(result["fit"] > view["chance"] for result in shown)
    assert f"with 2 random words as frequent, the best of all vectors stays below {view['chance']:.3f} in" in html
    assert "through a single word" in html  # of several words
    assert "with 1 random word as frequent," in live.get(f"/{GPT2}/seeds?words=dog&rank=fit").text
    assert html.count('<th scope="row"') == len(view["results"])
    assert (f"{len(folded)} more, whose lists" in html) == bool(folded)
    assert '<input type="hidden" name="rank" value="fit">' in html
    assert "what heads ask for <code>w_q</code>" in html
    assert 'id="vectors"' in html
    plain = live.get(SEEDS).text
    assert '<tr class="line">' not in plain
    assert '<input type="hidden" name="rank" value="fit">' in plain


def test_hidden_hubs_leave_no_empty_rows(live: TestClient, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = f"{SEEDS}&k=60&rank=fit"
    first = live.get(format_address(asked, "json")).json()["results"][0]
    emptied = {token["id"] for token in first["top"]}
    monkeypatch.setattr("lexiscope.app.pages.page.hubs_of", lambda *_: frozenset(range(10**4)) if emptied else ())
    html = live.get(f"{asked}&hubs=hide").text
    assert html.count("all of its stored tokens are left out") == html.count('<th scope="row"') == 60
    assert "<details open><summary>60 more, whose lists" in html
