"""Pages of words through heads and of pairs to heads, over HTTP with a real worker, and what they show first: clear
lists, and heads in which a word comes back. The lists are tested in tests/precompute/live."""

from collections.abc import Sequence
from itertools import permutations

import pytest
from starlette.testclient import TestClient

from lexiscope.app.html.links import first_layers
from lexiscope.app.lists.readable import INDISTINCT
from lexiscope.app.lists.worth_reading import CARDS
from lexiscope.app.pages.heads import Echo, ThroughHeadsView
from lexiscope.app.urls import format_address
from lexiscope.precompute.errors import NotFound
from lexiscope.precompute.index.index import Index
from lexiscope.precompute.live.wire.answers import HeadReading, ScoredToken, ThroughHeadsAnswer, WordUsed
from tests.app.lists.test_worth_reading import DULL, FORMS, LETTERS, WORDS, ids, opened, words
from tests.support.pages import parsed
from tests.support.site import GPT2, HEADS, RELATION
from tests.support.tables import rows
from tests.support.views import make_view


def test_as_data(live: TestClient) -> None:
    view = live.get(format_address(HEADS, "json")).json()
    assert {name: view[name] for name in ("model", "words", "layers", "head", "lens", "end")} == {
        "model": GPT2, "words": "dog,lion+horse", "layers": "0-2", "head": None, "lens": "dot", "end": "top",
    }  # fmt: skip
    assert [(group["word"], [part["word"] for part in group["parts"]]) for group in view["groups"]] == [
        ("dog", ["dog"]), ("lion+horse", ["lion", "horse"]),
    ]  # fmt: skip
    assert [(row["layer"], row["head"]) for row in view["heads"]] == [(x, y) for x in range(3) for y in range(4)]
    for row in view["heads"]:
        assert [cell["word"] for cell in row["words"]] == ["dog", "lion+horse"]
        for cell in row["words"]:
            for name in ("seeks", "writes"):
                scores = [token["score"] for token in cell[name]]
                assert scores == sorted(scores, reverse=True)
                assert len(scores) == 4
                own = [token["token"].strip().lower() in cell["word"].split("+") for token in cell[name]]
                assert cell[f"{name}_itself"] == (own.index(True) + 1 if any(own) else None)


def test_csv_has_every_token_with_its_score(live: TestClient) -> None:
    view, found = live.get(format_address(HEADS, "json")).json(), rows(live, format_address(HEADS, "csv"))
    assert len(found) == 12 * 2 * 2 * 4
    assert list(found[0]) == [
        "layer", "head", "word", "list", "rank", "token", "token_id", "score", "itself", "alike", "model",
        "lens", "end", "source", "build",
    ]  # fmt: skip
    expected = [
        (row["layer"], row["head"], cell["word"], name, rank, token["id"], token["score"])
        for row in view["heads"]
        for cell in row["words"]
        for name in ("seeks", "writes")
        for rank, token in enumerate(cell[name], 1)
    ]
    assert [
        (int(row["layer"]), int(row["head"]), row["word"], row["list"], int(row["rank"]), int(row["token_id"]),
         float(row["score"]))
        for row in found
    ] == expected  # fmt: skip


@pytest.mark.parametrize("words", ["dog", "dog,lion"])
def test_one_table_of_all_heads(live: TestClient, words: str) -> None:
    path = f"/{GPT2}/heads?words={words}&layers=0-2"
    page = parsed(live.get(path).text)
    assert {f"L{layer}H{head}" for layer in range(3) for head in range(4)} <= set(page.ids())
    links = page.links()
    assert f"/{GPT2}/head/1/2" in links
    assert f"/{GPT2}/head/0/2" not in links  # which is not built
    assert (f"/{GPT2}/head/1/2/qk" in links) == (words != "dog")
    for format in ("md", "tex"):
        text = live.get(format_address(path, format)).text
        assert [f"{word} through heads (dot)" in text for word in words.split(",")] == [True] * len(words.split(","))


def test_ends_and_lenses_differ(live: TestClient) -> None:
    views = [live.get(f"/{GPT2}/heads.json?words=dog{more}").json() for more in ("", "&end=bottom", "&lens=cosine")]
    lists = [[cell["seeks"] for row in view["heads"] for cell in row["words"]] for view in views]
    assert lists[0] != lists[1] != lists[2] != lists[0]
    assert all(token["score"] <= cell[0]["score"] for cell in lists[0] for token in cell)
    assert all(token["score"] >= cell[0]["score"] for cell in lists[1] for token in cell)


def test_a_token_by_its_id_is_the_word(live: TestClient) -> None:
    word = live.get(f"/{GPT2}/heads.json?words=dog&layers=1").json()
    (token,) = word["groups"][0]["parts"][0]["tokens"]
    named = live.get(f"/{GPT2}/heads.json?words=%23{token['id']}&layers=1&head=2").json()
    (row,) = named["heads"]
    assert {**row["words"][0], "word": "dog"} == word["heads"][2]["words"][0]


def test_the_head_page_has_a_form_for_its_head(live: TestClient) -> None:
    page = parsed(live.get(f"/{GPT2}/head/1/2?lens=cosine").text)
    assert page.all("form", action=f"/{GPT2}/heads")
    hidden = {field.attributes["name"]: field.attributes["value"] for field in page.all("input", type="hidden")}
    assert hidden.items() >= {"layers": "1", "head": "2", "lens": "cosine"}.items()


@pytest.mark.parametrize(("layers", "before", "after"), [
    ("0-1", None, "&layers=2"), ("1", "", "&layers=2"), ("1-2", "", None), ("0,2", None, None),
])  # fmt: skip
def test_neighbouring_layers(live: TestClient, layers: str, before: str | None, after: str | None) -> None:
    page = parsed(live.get(f"/{GPT2}/heads?words=dog&layers={layers}").text)
    for rel, expected in (("prev", before), ("next", after)):
        links = [link.attributes["href"] for link in page.all("a", rel=rel)]
        assert links == ([] if expected is None else [f"/{GPT2}/heads?words=dog{expected}"])


@pytest.fixture(scope="module")
def word_index(tmp_path_factory: pytest.TempPathFactory) -> Index:
    return opened(tmp_path_factory.mktemp("through") / "words")


def reading(head: int, seeks: Sequence[int], alike: float | None, writes: Sequence[int] = ()) -> HeadReading:
    seeks_, writes_ = (
        [ScoredToken(id=token, score=1.0) for token in tokens] for tokens in (seeks, writes or ids(*LETTERS[:6]))
    )
    return HeadReading(layer=1, head=head, seeks=seeks_, seeks_alike=alike, writes=writes_, writes_alike=0.7)


def view_of(
    index: Index, *readings: HeadReading, word: str = "x", tokens: tuple[int, ...] = (0, 1)
) -> ThroughHeadsView:
    answer = ThroughHeadsAnswer(
        groups=[[WordUsed(word=word, tokens=[{"id": token} for token in tokens])]], heads=[[*readings]]
    )
    view: ThroughHeadsView = make_view(index, "heads", {}, {"answers": [answer]}, words=word, layers="1")
    return view


def test_clear_lists_are_of_words_that_are_alike(word_index: Index) -> None:
    view = view_of(
        word_index,
        reading(0, words(0, 6), 0.3),
        reading(1, words(6, 6), 0.5),
        reading(2, words(6, 6), 0.4),  # the same again
        reading(3, ids(*FORMS), 0.6),  # one word
        reading(4, ids(*DULL[:6]), 0.6),  # not learned
        reading(5, words(12, 6), INDISTINCT),
        reading(6, words(18, 6), None),
        reading(7, words(24, 3) + ids(*LETTERS[:5]), 0.6),
    )
    assert [(clear.head, clear.is_sought, clear.alike) for clear in view.clearest] == [(1, True, 0.5), (0, True, 0.3)]
    many = [reading(head, words(6 * head, 6), 0.5) for head in range(12)]
    assert len(view_of(word_index, *many).clearest) == CARDS


@pytest.mark.parametrize(("word", "tokens", "rank"), [
    (" BALI", (0, 1), 3), ("x", (ids(WORDS[0])[0],), 3), ("x", (ids(WORDS[0])[0], 1), None), ("x+y", (0, 1), None),
])  # fmt: skip
def test_the_word_itself_whatever_its_case_and_space(
    word_index: Index, word: str, tokens: tuple[int, ...], rank: int | None
) -> None:
    """A piece of a word is not the word."""
    assert WORDS[0] == " bali"
    view = view_of(word_index, reading(2, [5, 6, *words(0, 2)], 0.1), word=word, tokens=tokens)
    assert view.heads[0]["words"][0]["seeks_itself"] == rank
    assert view.echoes[0].seeks == ([Echo(layer=1, head=2, rank=rank)] if rank else [])


def test_heads_that_echo_come_by_rank(word_index: Index) -> None:
    bali = words(0, 1)
    heads = [reading(0, [5, 6], 0.1), reading(1, [5, *bali], 0.1, bali), reading(2, [*bali, 5], 0.1)]
    view = view_of(word_index, *heads, word="bali")
    assert [(echo.head, echo.rank) for echo in view.echoes[0].seeks] == [(2, 1), (1, 2)]
    assert [(echo.head, echo.rank) for echo in view.echoes[0].writes] == [(1, 1)]


def test_layers(word_index: Index) -> None:
    assert first_layers(word_index) == "0-1"
    page = make_view(word_index, "heads", {}, layers="all")
    assert (page.layers, page.earlier, page.later) == ("all", None, None)
    with pytest.raises(NotFound, match="has layers 0 to 1"):
        make_view(word_index, "heads", {}, layers="0-2")


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
