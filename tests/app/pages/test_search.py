"""Searches against all lists of a small index, and the ways to say what is sought."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tokenizers import Tokenizer

from lexiscope.app import urls
from lexiscope.app.library.library import Library
from lexiscope.app.lists.first_words import FIRST_WORDS
from lexiscope.app.pages.search import GROUPS, LONGEST_SEARCH, PAIRS_BESIDE
from lexiscope.precompute.errors import BadRequest, NotFound
from lexiscope.precompute.index.index import Index
from lexiscope.precompute.shape import ENDS, LENSES, MATRICES, PRESETS
from tests.support.lists import (
    READY,
    SHAPES,
    TEXTS,
    all_listings,
    all_pairs,
    first_readable,
    first_tokens,
    owner,
    token,
)
from tests.support.synthetic import D_VOCAB
from tests.support.tokenizers import tokenizer_json
from tests.support.views import search_view, suggest_view

LISTINGS = {name: list(all_listings(shape, READY[name])) for name, shape in SHAPES.items()}
FIRST_TOKENS = {name: first_tokens(shape, READY[name], FIRST_WORDS) for name, shape in SHAPES.items()}


def matches(name: str, words: list[list[int]], lens: str, kind: str | None) -> list[dict[str, Any]]:
    """Every list that holds a token of each word, with the best of each."""
    shape = SHAPES[name]
    lists: dict[tuple[str, int, int, str], dict[int, int]] = {}
    for e in LISTINGS[name]:
        if e.lens == lens and kind in (None, e.kind):
            lists.setdefault((e.kind, e.layer, e.number, e.end), {})[e.token] = e.rank
    found = []
    for (of_kind, layer, number, end), ranks in lists.items():
        best = [min(((ranks[t], t) for t in word if t in ranks), default=None) for word in words]
        if None not in best:
            order = (sum(rank for rank, _ in best), -layer, shape.kinds.index(of_kind), number, ENDS.index(end))  # type: ignore[misc]
            found.append((order, of_kind, layer, number, end, best))
    return [
        {
            "kind": of_kind, "layer": layer, "index": number, "end": end,
            "ranks": [rank for rank, _ in best],  # type: ignore[misc]
            "tokens": [token(t) for _, t in best],  # type: ignore[misc]
            "first": FIRST_TOKENS[name][of_kind, layer, number, lens, end],
        }
        | owner(shape, of_kind, number)
        for _, of_kind, layer, number, end, best in sorted(found, key=lambda entry: entry[0])
    ]  # fmt: skip


@given(
    name=st.sampled_from(sorted(SHAPES)),
    numbers=st.lists(st.integers(0, D_VOCAB - 1), min_size=1, max_size=3, unique=True),
    lens=st.sampled_from(LENSES),
    data=st.data(),
)
def test_matches_of_tokens(
    indexes: dict[str, Index], name: str, numbers: list[int], lens: str, data: st.DataObject
) -> None:
    kind = data.draw(st.none() | st.sampled_from(SHAPES[name].kinds))
    expected = matches(name, [[number] for number in numbers], lens, kind)
    _check_pages(indexes[name], " ".join(f"#{number}" for number in numbers), lens, kind, expected)


@given(
    name=st.sampled_from(sorted(SHAPES)),
    words=st.lists(st.sampled_from("abcdefghijklmnopqrstuvwxyz<0"), min_size=1, max_size=3, unique=True),
    lens=st.sampled_from(LENSES),
)
def test_matches_of_words(indexes: dict[str, Index], name: str, words: list[str], lens: str) -> None:
    """A letter stands for itself and its capital."""
    groups = [[t for t, text in enumerate(TEXTS) if text.strip().lower() == word] for word in words]
    _check_pages(indexes[name], ", ".join(words), lens, None, matches(name, groups, lens, None))


def _check_pages(index: Index, q: str, lens: str, kind: str | None, expected: list[dict[str, Any]]) -> None:
    shown: list[Any] = []
    pages = max(1, -(-len(expected) // 4))
    for page in range(1, pages + 1):
        view = search_view(index, q, lens, kind, page, size=4)
        assert (view.total, view.pages, view.page) == (len(expected), pages, page)
        shown += view.matches
    assert shown == expected
    with pytest.raises(NotFound, match="page"):
        search_view(index, q, lens, kind, pages + 1, size=4)


PAIRS = {name: list(all_pairs(shape, READY[name])) for name, shape in SHAPES.items()}


def pair_matches(name: str, words: list[list[int]], lens: str, matrices: tuple[str, ...]) -> list[dict[str, Any]]:
    """Every pair that holds the word, or both at different sides, in the list where its rank is best."""
    best: dict[tuple[Any, ...], tuple[Any, ...]] = {}
    for p in PAIRS[name]:
        if p.lens != lens or p.matrix not in matrices:
            continue
        first, second = p.pair
        a, b = words[0], words[-1]
        if len(words) == 1:
            holds = first in a or second in a
        else:
            holds = (first in a and second in b) or (second in a and first in b)
        if holds:
            place = (p.layer, p.matrix, p.head, p.end, p.pair)
            found = (p.rank, PRESETS.index(p.preset), p.score)
            best[place] = min(best.get(place, found), found)
    order = {
        (rank, -abs(score), -layer, MATRICES.index(matrix), head, ENDS.index(end), preset, pair): {
            "matrix": matrix, "layer": layer, "head": head, "preset": PRESETS[preset], "end": end, "rank": rank,
            "from": token(pair[0]), "to": token(pair[1]), "score": score,
            "first": first_readable(PAIRS[name], matrix, layer, head),
        }
        for (layer, matrix, head, end, pair), (rank, preset, score) in best.items()
    }  # fmt: skip
    return [order[place] for place in sorted(order)]


@given(
    name=st.sampled_from(sorted(SHAPES)),
    data=st.data(),
    lens=st.sampled_from(LENSES),
    kind=st.none() | st.sampled_from(MATRICES),
)
def test_pairs_of_one_word_or_two(
    indexes: dict[str, Index], name: str, data: st.DataObject, lens: str, kind: str | None
) -> None:
    listed = data.draw(st.sampled_from(PAIRS[name])).pair
    numbers = data.draw(
        st.sampled_from([(listed[0],), (listed[1],), listed, listed[::-1], (listed[0], 7)])
        | st.tuples(*[st.integers(0, D_VOCAB - 1)] * 2)
    )
    numbers = tuple(dict.fromkeys(numbers))
    q = " ".join(f"#{number}" for number in numbers)
    matrices = MATRICES if kind is None else (kind,)
    _check_pairs(indexes[name], q, lens, kind, pair_matches(name, [[n] for n in numbers], lens, matrices))


def _check_pairs(index: Index, q: str, lens: str, kind: str | None, expected: list[dict[str, Any]]) -> None:
    if kind is None:
        view = search_view(index, q, lens)
        assert (view.pairs_total, view.pairs) == (len(expected), expected[:PAIRS_BESIDE])
        if view.pages == 1:
            view = search_view(index, q, lens, size=max(1, view.total // 2))
        if view.pages > 1:
            assert search_view(index, q, lens, page=2, size=max(1, view.total // 2)).pairs == []
        return
    shown: list[Any] = []
    pages = max(1, -(-len(expected) // 4))
    for page in range(1, pages + 1):
        view = search_view(index, q, lens, kind, page, size=4)
        assert (view.pairs_total, view.pages, view.total, view.matches) == (len(expected), pages, 0, [])
        shown += view.pairs or ()
    assert shown == expected
    with pytest.raises(NotFound, match="page"):
        search_view(index, q, lens, kind, pages + 1, size=4)


def test_pairs_of_other_searches(index: Index) -> None:
    assert search_view(index, "a b c").pairs_total == 0
    assert search_view(index, "a b c", kind="vo").pages == 1
    assert search_view(index, "a", kind="ff_key").pairs_total == 0
    assert search_view(index, "a nonesuch").pairs_total == 0
    assert suggest_view(index, "a").pairs == []
    assert (
        search_view(index, " ".join(chr(33 + n) for n in range(100))).total == 0
    )  # as many words as there is room for


@pytest.mark.parametrize(("q", "words"), [
    ("dog", {"dog": [" dog", " Dog", "dog"]}), ("  DOG,dog ,Dog ", {"dog": [" dog", " Dog", "dog"]}),
    ("horse,decade", {"horse": [" horse"], "decade": [" decade"]}),
    ('"no such" horse', {"no such": [], "horse": [" horse"]}), ('" horse "', {"horse": [" horse"]}),
    ('"', {'"': ['"']}), ('"></', {'"></': ['"></']}), (",", {",": [","]}), ('" "', {" ": [" "]}),
    ('"\n"', {"\n": ["\n"]}), ("#7", {"#7": ["\x07"]}), ('"#7"', {"#7": []}), (f"#{D_VOCAB}", {f"#{D_VOCAB}": []}),
    ("#", {"#": ["#"]}), ("日本語", {"日本語": ["日本語"]}), ("\\xe2\\x80", {"\\xe2\\x80": ["\\xe2\\x80"]}), ("", {}),
    ("  \n ", {}),
])  # fmt: skip
def test_words(index: Index, q: str, words: dict[str, list[str]]) -> None:
    for view in (search_view(index, q), suggest_view(index, q)):
        assert {group.surface: [t["token"] for t in group.tokens] for group in view.words} == words
        assert view.q == q


def test_tokens_like_the_last_word(index: Index) -> None:
    view = search_view(index, "horse dec")
    assert [(group.surface, group.match) for group in view.tokens] == [("decade", "prefix"), ("decades", "prefix")]
    assert view.tokens == suggest_view(index, "horse dec").tokens
    shown = [(group.surface, group.match) for group in view.token_groups]
    assert shown == [("horse", "exact"), *((group.surface, group.match) for group in view.tokens)]
    assert [group.surface for group in search_view(index, "horse dog").token_groups].count("dog") == 1
    assert search_view(index, "dog").token_groups == search_view(index, "dog").tokens
    assert [(group.surface, group.match) for group in search_view(index, "OG").tokens] == [
        ("dog", "substring"),
        ("dogs", "substring"),
    ]
    assert [group.match for group in search_view(index, "o").tokens][:1] == ["exact"]
    assert all(len(search_view(index, letter).tokens) <= GROUPS for letter in "\\abcx ")


def test_pieces_of_words_that_are_no_tokens(index: Index, monkeypatch: pytest.MonkeyPatch) -> None:
    assert search_view(index, "horsing").pieces == []  # there is no tokenizer
    tokenizer = Tokenizer.from_str(tokenizer_json())
    monkeypatch.setattr(Library, "tokenizer", lambda *_: tokenizer)
    pieces = search_view(index, "horsing dog").pieces
    assert [piece["id"] for piece in pieces] == [i for i in tokenizer.encode(" horsing").ids if i < D_VOCAB]
    assert search_view(index, "dog").pieces == []


@given(st.text(max_size=LONGEST_SEARCH))
def test_any_text_has_an_answer(index: Index, q: str) -> None:
    try:
        view = search_view(index, q)
    except BadRequest:
        assert any("\ud800" <= character <= "\udfff" for character in q)
    else:
        assert view.q == q


@pytest.mark.parametrize(("q", "relation", "is_arrow"), [
    ("king queen", "king>queen", False),
    ("king, queen", "king>queen", False),
    ("king>queen", "king>queen", True),
    ("king -> queen", "king>queen", True),
    ("king→queen", "king>queen", True),
    ("New York > New Yorker", "New York>New Yorker", True),
    ('"New York" king', "New York>king", False),
    ("king", None, False),
    ("a > b > c", None, False),
    (f"{'a' * 101} > b", None, False),
    ("king >", None, False),
    ("<b>x", None, False),
])  # fmt: skip
def test_two_words_may_be_a_pair_for_heads(index: Index, q: str, relation: str | None, is_arrow: bool) -> None:
    view = search_view(index, q, "cosine", live=True)
    assert view.relation == relation
    address = urls.link("relation", "gpt2-like", pairs=relation, lens="cosine") if is_arrow else None
    assert view.jump == address
    assert search_view(index, q, "cosine").jump is None
    if is_arrow and relation:
        assert [group.surface for group in view.words] == list(
            dict.fromkeys(word.lower() for word in relation.replace(">", " ").split())
        )
