"""Choose the strongest matches of two models and show them as words on both sides, first those that a reader can judge.

The correlations |r| are largest for vectors about rare pieces of words and about frequencies. So, of the pairs with the
largest |r|, each vector once, those are chosen whose first tokens are words in both models, with some in common, and
from all layers of A. If there is no such pair, or if one of the models has no index in the data folder, the pairs with
the largest |r| are taken.
"""

from collections import Counter
from collections.abc import Iterator
from itertools import islice
from typing import Any

import numpy as np
from typing_extensions import TypedDict

from lexiscope.app.formats.table import Column, Table
from lexiscope.app.library.comparisons import weights_of
from lexiscope.app.lists.matches import MATCH_TOKENS, MatchedVector, WordsOf, agreeing_end
from lexiscope.app.lists.readable import FreshWords, readable
from lexiscope.precompute.index.comparison import Comparison, MatchedPair
from lexiscope.precompute.index.parameter_names import matched_name

# how many pairs of a kind of vectors are shown: beside other kinds, and alone
MATCHES_SHOWN, MATCHES_SHOWN_ALONE = 6, 24
MATCH_CANDIDATES = 600  # how many pairs with the largest |r| are searched
COMMON_WORD_TOKENS = 20  # how many first tokens are searched for common words
COMMON = 3  # how many words both lists must have in common
READABLE_TOKENS = 7  # how many first tokens must be words


class MatchedVectors(TypedDict):
    kind: str
    r: float
    a: MatchedVector
    b: MatchedVector


def strongest_matches(
    comparison: Comparison, kind: str, a: WordsOf, b: WordsOf, of_many: bool = True
) -> list[MatchedVectors]:
    """Choose the strongest matches of a kind of vectors; if they are shown beside those of other kinds (`of_many`),
    choose fewer."""
    count = MATCHES_SHOWN if of_many else MATCHES_SHOWN_ALONE
    pairs = list(islice(_distinct(comparison, kind), MATCH_CANDIDATES))
    chosen = list(islice(_readable(pairs, kind, a, b, -(-count // 3)), count)) or pairs[:count]
    return [_words(pair, kind, a, b) for pair in chosen]


def _distinct(comparison: Comparison, kind: str) -> Iterator[MatchedPair]:
    """Yield vectors of A and their best matches in B, largest |r| first, each vector once. In a comparison of a model
    with itself, a vector's match with itself is left out."""
    layers, indexes, r = comparison.all_matches("a", kind)  # (n, matches)
    count = comparison.a.kinds[kind]
    own = np.arange(len(r))
    size = np.abs(r)
    same = weights_of(comparison.a) == weights_of(comparison.b)
    if same:
        size = np.where(layers.astype(np.int64) * count + indexes == own[:, None], -1.0, size)
    best = size.argmax(axis=1)
    strengths = size[own, best]
    taken: set[tuple[str, int, int]] = set()
    for at in np.argsort(-strengths, kind="stable").tolist():
        layer, index = divmod(at, count)
        match = MatchedPair(layer, index, *(part[at, best[at]].item() for part in (layers, indexes, r)))
        pair = {("a", layer, index), ("a" if same else "b", match.b_layer, match.b_index)}
        if strengths[at] < 0 or not taken.isdisjoint(pair):
            continue
        taken |= pair
        yield match


def _readable(pairs: list[MatchedPair], kind: str, a: WordsOf, b: WordsOf, per_layer: int) -> Iterator[MatchedPair]:
    """Yield the pairs of vectors whose lists are words on both sides and have some in common; take only a few from each
    layer of A."""
    if a.index is None or b.index is None:
        return
    fresh = FreshWords(readable(a.index)), FreshWords(readable(b.index))
    of_layer: Counter[int] = Counter()
    for pair in pairs:
        if of_layer[pair.a_layer] == per_layer:
            continue
        ids_a = _first(a, kind, pair.a_layer, pair.a_index, "top")
        ids_b = _first(b, kind, pair.b_layer, pair.b_index, agreeing_end(pair.r))
        common = set(fresh[0].words.stems(ids_a)) & set(fresh[1].words.stems(ids_b))
        if len(common) < COMMON or not fresh[0].take_if_readable(ids_a[:READABLE_TOKENS]):
            continue
        if fresh[1].take_if_readable(ids_b[:READABLE_TOKENS]):
            of_layer[pair.a_layer] += 1
            yield pair


def _first(words: WordsOf, kind: str, layer: int, index: int, end: str) -> list[int]:
    return next(iter(words.ids(kind, layer, [index], end, COMMON_WORD_TOKENS)), [])


def _words(pair: MatchedPair, kind: str, a: WordsOf, b: WordsOf) -> MatchedVectors:
    (first,) = a.vectors(kind, [(pair.a_layer, pair.a_index, 0.0)])
    (second,) = b.vectors(kind, [(pair.b_layer, pair.b_index, pair.r)])
    return {"kind": kind, "r": pair.r, "a": first, "b": second}


def strongest_table(a: str, b: str, strongest: list[MatchedVectors]) -> Table:
    """Make a table of matching vectors with their first words. If their correlation r is negative, B's words are those
    at the bottom of its list."""

    def columns_of(side: str, model: str) -> tuple[Column, ...]:
        def vector(pair: MatchedVectors) -> MatchedVector:
            return pair["a"] if side == "a" else pair["b"]

        def words(pair: MatchedVectors) -> Any:
            return vector(pair)["bottom" if side == "b" and pair["r"] < 0 else "top"]

        return (
            Column(model, get=lambda pair: matched_name(vector(pair), pair["kind"]), audience="people"),
            Column(f"layer_{side}", get=lambda pair: vector(pair)["layer"], audience="programs"),
            Column(f"index_{side}", get=lambda pair: vector(pair)["index"], audience="programs"),
            Column(f"words_{side}", "tokens", get=words, heading="words", count=MATCH_TOKENS),
        )

    end = Column("end_b", get=lambda pair: "bottom" if pair["r"] < 0 else "top", heading="end")
    columns = (Column("kind"), *columns_of("a", a), Column("r", "number"), *columns_of("b", b), end)
    return Table(f"{a} vs {b}: strongest matches", columns, strongest)
