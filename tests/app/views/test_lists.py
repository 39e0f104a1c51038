"""Lists in columns: the same entries and the same JSON, byte for byte, as if every entry were an object of its own."""

import gc
import weakref
from typing import Any

import numpy as np
import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import TypeAdapter

from app.views.lists import Block, PairList, PairView, ScoredList, ScoredView
from app.views.vocabulary import Vocabulary, vocabulary_of
from precompute.index.tokens import TokenTable

TEXTS = [
    " dog",
    "",
    '"}],',
    "\\",
    "\n\x00",
    "<script>",
    "ü",
    "\u2028",
    "\ud7ff",
    "𝄞",
    ",",
    "%d%s",
    "-" * 50,
    "\x01" * 9,
]
SCORES = st.floats(allow_nan=False, allow_infinity=False, width=32)
IDS = st.integers(0, len(TEXTS) - 1)


def both(rows: list[tuple[int, int, float]]) -> list[tuple[Any, list[Any]]]:
    """Columns, and the entries they stand for."""
    vocabulary = Vocabulary(TEXTS)
    firsts, scores = [row[0] for row in rows], [row[2] for row in rows]
    scored = [{"id": a, "token": TEXTS[a], "score": score} for a, _, score in rows]
    pairs = [
        {"from": {"id": a, "token": TEXTS[a]}, "to": {"id": b, "token": TEXTS[b]}, "score": score}
        for a, b, score in rows
    ]
    ids = np.array([row[:2] for row in rows], np.intp).reshape(-1, 2)
    return [(ScoredList.of(vocabulary, firsts, scores), scored), (PairList.of(vocabulary, ids, scores), pairs)]


@given(st.lists(st.tuples(IDS, IDS, SCORES), max_size=6))
def test_json_is_that_of_the_entries(rows: list[tuple[int, int, float]]) -> None:
    for columns, entries in both(rows):
        assert columns.json() == orjson.dumps(entries)
        assert columns.json() == orjson.dumps(tuple(columns))  # what is made once is not spoilt by being used


@given(st.lists(st.lists(st.tuples(IDS, IDS, SCORES), max_size=3), max_size=4))
def test_lists_that_lie_together_are_the_lists_that_they_are_alone(lists: list[list[tuple[int, int, float]]]) -> None:
    rows = [row for rows in lists for row in rows]
    ids = np.array([row[:2] for row in rows], np.intp).reshape(-1, 2)
    vocabulary, scores, lengths = Vocabulary(TEXTS), [row[2] for row in rows], [len(rows) for rows in lists]
    tokens, pairs = (Block(vocabulary, each, scores, lengths) for each in (ids[:, 0], ids))
    for at, alone in enumerate(map(both, lists)):
        together: list[Any] = [ScoredList(tokens, at), PairList(pairs, at)]
        for found, (expected, _) in zip(together, alone, strict=True):
            assert (found.json(), len(found), list(found)) == (expected.json(), len(expected), list(expected))
            assert found.scores == expected.scores


@pytest.mark.parametrize("n", [0, 1, 3])
def test_a_list_is_a_sequence_of_its_entries(n: int) -> None:
    rows = [(0, 1, 2.5), (2, 2, 0.0), (3, 0, -1.25)][:n]
    for columns, entries in both(rows):
        assert len(columns) == n
        assert list(columns) == entries
        assert columns[:2] == tuple(entries[:2])
        assert columns == tuple(entries)
        assert columns != tuple(entries * 2 + [None])
        if n:
            assert (columns[0], columns[-1]) == (entries[0], entries[-1])
            assert entries[0] in columns
        with pytest.raises(IndexError):
            columns[n]


@pytest.mark.parametrize(("columns", "entry"), [(ScoredList, ScoredView), (PairList, PairView)])
def test_the_schema_is_that_of_a_list_of_entries(columns: type, entry: type) -> None:
    assert TypeAdapter(columns).json_schema() == TypeAdapter(tuple[entry, ...]).json_schema()  # type: ignore[valid-type]


def test_a_vocabulary_is_kept_as_long_as_its_table() -> None:
    tokens = TokenTable.of([b" dog", b"<i>"])
    assert vocabulary_of(tokens) is vocabulary_of(tokens)
    assert vocabulary_of(tokens).markup.column([1, 0, 1]) == [
        "<bdi>&lt;i&gt;</bdi>", "<bdi><i>␣</i>dog</bdi>", "<bdi>&lt;i&gt;</bdi>",
    ]  # fmt: skip
    kept = weakref.ref(vocabulary_of(tokens))
    del tokens
    gc.collect()
    assert kept() is None
