"""Words that visitors type into live pages: read as meant, written back in one way, refused with a reason."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lexiscope.precompute.errors import BadRequest
from lexiscope.precompute.live.wire.grammar import (
    Term,
    Word,
    parse_against,
    parse_groups,
    parse_pairs,
    parse_terms,
    parse_token,
    write_against,
    write_groups,
    write_pairs,
    write_terms,
    write_token,
)


@pytest.mark.parametrize(("typed", "meant", "written"), [
    ("horse,dog,lion", [("horse", 1), ("dog", 1), ("lion", 1)], "horse,dog,lion"),
    (" horse  dog, ,lion ", [("horse", 1), ("dog", 1), ("lion", 1)], "horse,dog,lion"),
    ("king - man + woman", [("king", 1), ("man", -1), ("woman", 1)], "king - man + woman"),
    ("king -man +woman", [("king", 1), ("man", -1), ("woman", 1)], "king - man + woman"),
    ("-man + king", [("man", -1), ("king", 1)], "-man + king"),
    ("king − man", [("king", 1), ("man", -1)], "king - man"),
    ("2*dog", [("dog", 2)], "2*dog"),
    ("2 * dog, .5×cat - 1.50·cow", [("dog", 2), ("cat", 0.5), ("cow", -1.5)], "2*dog + 0.5*cat - 1.5*cow"),
    ("a - -b", [("a", 1), ("b", 1)], "a,b"),
    ('"New York" well-known c++', [("New York", 1), ("well-known", 1), ("c++", 1)], '"New York",well-known,c++'),
    ('"+", "2*dog"', [("+", 1), ("2*dog", 1)], '"+","2*dog"'),
    ("дом,犬", [("дом", 1), ("犬", 1)], "дом,犬"), ("", [], ""),
])  # fmt: skip
def test_words_with_weights(typed: str, meant: list[tuple[str, float]], written: str) -> None:
    terms = parse_terms(typed)
    assert [(term.word, term.weight) for term in terms] == meant
    assert write_terms(terms) == written
    assert parse_terms(written) == terms


@pytest.mark.parametrize(("typed", "said"), [
    ("dog -", "missing at the end"), ("2*", "missing at the end"), ('dog, ""', "a word is missing"),
    ("a" * 101, "101 characters"), ("1e7*dog 9999999*cat", "too large"), ("0*dog", "nothing is left"),
    ("do\udcffg", "is no text"),
])  # fmt: skip
def test_words_that_say_nothing(typed: str, said: str) -> None:
    with pytest.raises(BadRequest, match=said):
        parse_terms(typed)


@pytest.mark.parametrize(("typed", "meant", "written"), [
    ("couch, dog  run,happy", [["couch"], ["dog"], ["run"], ["happy"]], "couch,dog,run,happy"),
    ("horse+lion, dog", [["horse", "lion"], ["dog"]], "horse+lion,dog"),
    ("horse + lion +zebra dog", [["horse", "lion", "zebra"], ["dog"]], "horse+lion+zebra,dog"),
    ("dog, dog, dog+dog", [["dog"], ["dog", "dog"]], "dog,dog+dog"),
    ('"New York"+"c++", well-known', [["New York", "c++"], ["well-known"]], '"New York"+"c++",well-known'),
    ('"#12" "-ing" "2*dog" #x C#', [["#12"], ["-ing"], ["2*dog"], ["#x"], ["C#"]], '"#12","-ing","2*dog",#x,C#'),
    ("дом+犬", [["дом", "犬"]], "дом+犬"), ("", [], ""),
])  # fmt: skip
def test_groups_of_words(typed: str, meant: list[list[str]], written: str) -> None:
    groups = parse_groups(typed)
    assert [[word.word for word in group] for group in groups] == meant
    assert all(word.token is None for group in groups for word in group)
    assert write_groups(groups) == written
    assert parse_groups(written) == groups


def test_tokens_by_their_ids() -> None:
    groups = parse_groups("#3290+dog, #007")
    assert [[word.token for word in group] for group in groups] == [[3290, None], [7]]
    assert write_groups(groups) == "#3290+dog,#7"


@pytest.mark.parametrize(("typed", "said"), [
    ("+dog", r"missing before \+"), ("dog++lion", r"missing before \+"), ("dog+", r"missing after \+"),
    ("king - man", "not subtracted"), ("2*dog", "only joined"), ('""', "a word is missing"), ("a" * 101, "101"),
])  # fmt: skip
def test_groups_that_say_nothing(typed: str, said: str) -> None:
    with pytest.raises(BadRequest, match=said):
        parse_groups(typed)


WORDS = st.text(st.characters(exclude_characters='"', exclude_categories=("Cs", "Cc")), min_size=1, max_size=20)
WEIGHTS = st.one_of(st.just(1.0), st.integers(-50, 50).filter(bool).map(lambda n: n / 4))


@given(st.lists(st.builds(Term, word=WORDS.filter(str.strip), weight=WEIGHTS), min_size=1))
def test_whatever_is_written_is_read_again(terms: list[Term]) -> None:
    assert parse_terms(write_terms(terms)) == tuple(terms)


GROUPS = st.lists(
    st.lists(st.builds(Word, word=WORDS.filter(str.strip)), min_size=1).map(tuple), min_size=1, unique=True
)


@given(GROUPS)
def test_whatever_groups_are_written_are_read_again(groups: list[tuple[Word, ...]]) -> None:
    assert parse_groups(write_groups(groups)) == tuple(groups)


def test_pairs() -> None:
    pairs = parse_pairs("France>Paris, Italy -> Rome\nUnited States → Washington;")
    assert [(p.source, p.target) for p in pairs] == [
        ("France", "Paris"), ("Italy", "Rome"), ("United States", "Washington"),
    ]  # fmt: skip
    assert write_pairs(pairs) == "France>Paris,Italy>Rome,United States>Washington"
    assert parse_pairs('"France" > "Paris", Italy>Rome, France>Paris, Italy>Rome') == pairs[:2]  # each once
    for wrong in ("France", "France>", ">Paris", "a>b>c", "#3290>Paris", "France>#5"):
        with pytest.raises(BadRequest):
            parse_pairs(wrong)


@pytest.mark.parametrize(("typed", "word", "token", "written"), [
    ("run", "run", None, "run"), (" run ", "run", None, "run"), ("1240", "#1240", 1240, "1240"),
    ("#7", "#7", 7, "7"), ('"7"', "7", None, '"7"'), ('"mean"', "mean", None, '"mean"'),
])  # fmt: skip
def test_one_token(typed: str, word: str, token: int | None, written: str) -> None:
    found = parse_token(typed)
    assert found == parse_against(typed) == Word(word=word, token=token)
    assert write_token(found) == write_against(parse_against(typed)) == written
    assert parse_token(written) == found


def test_what_a_logit_is_compared_with() -> None:
    assert [write_against(parse_against(typed)) for typed in ("", "mean", "none")] == ["mean", "mean", "none"]
    assert parse_token(" ") is None
