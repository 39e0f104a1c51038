"""Pages of pairs to heads, over HTTP with a real worker; tests/precompute/live has the ranks."""

from itertools import permutations

import pytest
from starlette.testclient import TestClient

from lexiscope.app.urls import format_address
from tests.support.pages import parsed
from tests.support.site import GPT2, RELATION
from tests.support.tables import rows


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
    words = ("dog", "lion", "horse", "Paris")
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
