"""Pages of seed words and of pairs to heads, over HTTP with a real worker; tests/precompute/live has the ranking."""

import csv
from itertools import permutations

import pytest
from starlette.testclient import TestClient

from lexiscope.app.addresses import format_address
from tests.support.pages import parsed
from tests.support.site import GPT2, RELATION, SEEDS
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


def test_a_relation_stands_beside_its_baselines(live: TestClient) -> None:
    view = live.get(format_address(RELATION, "json") + "&matrix=qk").json()
    assert (view["matrix"], view["shuffled_with"]) == ("qk", "pairs")
    for head in view["heads"]:
        for end in ("", "_from_bottom"):
            rank, shuffled, itself = (head[f"{name}{end}"] for name in ("rank", "shuffled", "identity"))
            better = {"own": 2 * rank <= min(shuffled, itself), "copies": 2 * rank <= shuffled and 2 * rank > itself}
            assert better.get(head[f"verdict{end}"], 2 * rank > shuffled)
            assert 0 <= head[f"chance{end}"] <= len(view["heads"])
    chances = [head["chance"] for head in view["heads"]]
    assert chances == sorted(chances), "the best mean rank is the least likely"
    page = parsed(live.get(f"{RELATION}&matrix=qk").text)
    first = view["heads"][0]
    assert f"/{GPT2}/head/{first['layer']}/{first['head']}/qk" in page.links()
    assert RELATION in page.links(), "the way back to VO"
    (row, *_) = rows(live, format_address(RELATION, "csv") + "&matrix=qk")
    assert (row["matrix"], float(row["shuffled"]), float(row["identity"]), row["verdict"]) == (
        "qk", first["shuffled"], first["identity"], first["verdict"],
    )  # fmt: skip
    for format in ("md", "tex"):
        assert "shuffled with other pairs" in live.get(format_address(RELATION, format)).text
        assert "shuffled with random words" in live.get(f"/{GPT2}/relation.{format}?pairs=dog%3Elion").text
    assert "20 random words" in live.get(f"/{GPT2}/relation?pairs=dog%3Elion").text


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
        view = live.get(f"/{GPT2}/relation.json", params=asked).json()
        heads = view["heads"]
        html = live.get(f"/{GPT2}/relation", params=asked).text.partition('id="map"')[0]
        carrying, _, suppressing = html.partition('id="suppresses"')
        bound = view["clear_rank"]
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
