"""Finding tokens by text, against looking at every one of them."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lexiscope.app.lists.find_tokens import TokenSearch
from lexiscope.precompute.index.tokens import TokenTable
from tests.support.synthetic import raw_tokens

TABLE = TokenTable.of(raw_tokens())
SEARCH = TokenSearch(TABLE)
TEXTS = [TABLE.text(token) for token in range(len(TABLE))]


def surface(text: str) -> str:
    return text.strip().lower()


def like(text: str, limit: int, texts: list[str]) -> list[tuple[str, str]]:
    key = surface(text)
    surfaces = list(dict.fromkeys(surface(text) for text in texts if surface(text)))
    found = dict.fromkeys((other for other in surfaces if other == key), "exact")
    for kind, test in (("prefix", str.startswith), ("substring", str.__contains__)):
        found |= {other: kind for other in surfaces if test(other, key) and other not in found}
    return list(found.items())[:limit] if key else []


@given(st.sampled_from(TEXTS) | st.text(st.sampled_from("dogse c\\x9 <S\n"), max_size=4), st.integers(0, 12))
def test_like(text: str, limit: int) -> None:
    assert SEARCH.like(text, limit) == like(text, limit, TEXTS)


@given(st.sampled_from(TEXTS) | st.text(st.sampled_from("dogse c\\x9 <S\n"), max_size=4), st.integers(0, 12))
def test_suggested_is_what_is_like_it_in_another_order(text: str, limit: int) -> None:
    """Of the same three kinds, in the same order of kinds."""
    suggested, found = SEARCH.suggest(text, limit), SEARCH.like(text, 1000)
    assert set(suggested) <= set(found)
    assert len(suggested) == min(limit, len(found)) == len(set(suggested))
    assert [how for _, how in suggested] == [how for _, how in found][:limit]


@pytest.mark.parametrize(("typed", "suggested"), [
    # frequent words first, but a shorter one may be rarer; pieces (" partic", "param") and forms ("parts") come last
    ("par", ["par", "part", "park", "paris", "parent", "param", "parts", "partic"]),
    ("Par", ["par", "part", "park", "paris"]),
    ("arti", ["partic", "particular", "particularly"]),
    ("xyz", []),
])  # fmt: skip
def test_words_are_suggested_before_pieces(typed: str, suggested: list[str]) -> None:
    texts = [f"{number}" for number in range(50)] + ["par", " partic", " part", " particular", "param"]
    texts += [" parts", " parent", " park", " Paris", " particularly"]
    search = TokenSearch(TokenTable.of([text.encode() for text in texts]))
    assert [surface for surface, _ in search.suggest(typed, 20)][: len(suggested) or None] == suggested


def test_a_chain_of_thousands_of_forms() -> None:
    search = TokenSearch(TokenTable.of([b" cab" + b"s" * number for number in range(3000)]))
    assert search.suggest("ca", 2) == [("cab", "prefix"), ("cabs", "prefix")]


@given(
    st.lists(st.text(st.sampled_from("abAB \n\uffff"), max_size=3), max_size=12),
    st.text(st.sampled_from("abAB "), max_size=2),
)
def test_like_in_any_vocabulary(texts: list[str], text: str) -> None:
    table = TokenTable.of([text.encode() for text in texts])
    assert TokenSearch(table).like(text, 5) == like(text, 5, texts)


def test_the_marks_of_a_wordpiece_vocabulary_do_not_count() -> None:
    search = TokenSearch(TokenTable.of([b"[CLS]", b"ing", b"##ing", b"##er", b"reader", b"#"]))
    assert search.tokens("ing") == search.tokens("##ING") == (1, 2)
    assert search.tokens("##er") == search.tokens("er") == (3,)
    assert search.variants(1) == (2,)
    assert [search.is_piece(token) for token in range(6)] == [False, False, True, True, False, False]
    assert search.like("er", 5) == [("er", "exact"), ("reader", "substring")]
    assert search.tokens("#") == (5,)


@given(st.sampled_from(TEXTS))
def test_tokens_of_a_text(text: str) -> None:
    expected = [token for token, other in enumerate(TEXTS) if surface(other) == surface(text) and other]
    if not surface(text):
        expected = [token for token, other in enumerate(TEXTS) if other == text and other][:1]
    assert list(SEARCH.tokens(text)) == expected
