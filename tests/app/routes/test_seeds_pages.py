"""Pages of seed words and of pairs to heads, over HTTP with a real worker; tests/precompute/live has the ranking."""

import csv
from itertools import permutations

import pytest
from starlette.testclient import TestClient

from app.addresses import format_address
from app.html.numbers import clear_rank
from tests.support.pages import parsed
from tests.support.site import GPT2, RELATION, SEEDS
from tests.support.tables import rows


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


@pytest.mark.parametrize(
    ("page", "asked"), [("seeds", "words=dog"), ("relation", "pairs=dog%3Elion"), ("heads", "words=dog")]
)
def test_csv_of_a_page_that_was_asked_nothing_is_a_table_without_rows(live: TestClient, page: str, asked: str) -> None:
    (empty,) = csv.reader(live.get(f"/{GPT2}/{page}.csv").text.splitlines())
    full = rows(live, f"/{GPT2}/{page}.csv?{asked}")[0].keys()
    assert {"layer", "head", "rank", "score", "model"} <= set(empty) <= full


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


def test_relation_as_data(live: TestClient) -> None:
    view = live.get(format_address(RELATION, "json")).json()
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
    assert live.get(format_address(RELATION, "json") + "&lens=cosine").json()["heads"] != view["heads"]


def test_exports_of_a_relation_say_that_the_first_piece_is_ranked(live: TestClient) -> None:
    path = f"/{GPT2}/relation?pairs=dog%3Ehorsing,lion%3Ehorse"
    pieces, whole = live.get(format_address(path, "json")).json()["pairs"]
    assert (len(pieces["target"]["tokens"]) > 1, len(whole["target"]["tokens"])) == (True, 1)
    assert (pieces["ranked"], whole["ranked"]) == (pieces["target"]["tokens"][0], whole["target"]["tokens"][0])
    for row in rows(live, format_address(path, "csv")):
        assert (row["ranked_1"], row["ranked_1_id"]) == (pieces["ranked"]["token"], str(pieces["ranked"]["id"]))
        assert (row["pieces_1"], row["pieces_2"]) == (str(len(pieces["target"]["tokens"])), "1")
        assert row["lens"] == "dot"
    for format in ("md", "tex"):
        assert (
            f"of horsing, {len(pieces['target']['tokens'])} pieces, the first:"
            in live.get(format_address(path, format)).text
        )
        assert "pieces" not in live.get(format_address(f"/{GPT2}/relation?pairs=lion%3Ehorse", format)).text


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
