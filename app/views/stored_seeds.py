"""Seed words from the index alone: the vectors whose stored lists hold them, by the scores that stand there.

Under `cosine` a listed score over the vector's length is the word's cosine with it, as the weights would give; under
`dot` it is the word's own score, of which the weights' ranking takes off that of the mean token, the same for every
word. A word that a vector lists at neither end counts as 0 there, and vectors that list none are not found. A word of
several pieces is the mean of their scores."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from tokenizers import Tokenizer

from lexiscope.app.views.difference import minus_of
from lexiscope.app.views.first_tokens import FirstLists
from lexiscope.app.views.seeds import FIRST, SeedListing, SeedsView, SeedWord
from lexiscope.app.views.tokens import tokens_of
from lexiscope.app.views.vector_place import in_head
from lexiscope.precompute.errors import BadRequest
from lexiscope.precompute.index.index import Index
from lexiscope.precompute.index.lookup import look_up_token
from lexiscope.precompute.index.not_stored import check_kinds, check_lens
from lexiscope.precompute.live.seed_words import Seed, find_seed
from lexiscope.precompute.live.wire.grammar import parse_terms, write_terms

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class _Scores:
    """Of the vectors of one kind that list a word: where they are, and their scores with every word."""

    kind: str
    layer: NDArray[Any]  # (n,)
    index: NDArray[Any]  # (n,)
    scores: Floats  # (n, words)


def stored_seeds_view(
    index: Index, tokenizer: Tokenizer, words: str, kinds: Sequence[str], lens: str, k: int
) -> tuple[SeedsView, tuple[int, ...]]:
    """The view of a page of seeds, and the layers that could not be looked at: not built, or damaged."""
    check_lens(index, lens)
    for kind in kinds:
        check_kinds(index, kind)
    seeds = [find_seed(tokenizer, term.word, term.weight) for term in parse_terms(words)]
    if not seeds:
        raise BadRequest("there are no words: give some such as horse, dog, lion")
    weights = np.array([seed.weight for seed in seeds])
    missing: tuple[int, ...] = ()
    ranked: list[tuple[float, str, int, int, tuple[float, ...]]] = []
    for kind in kinds:
        found, missing = _scores(index, seeds, kind, lens)
        means = found.scores @ weights / np.abs(weights).sum()
        for at in np.lexsort((found.index, found.layer, -means))[:k].tolist():
            scores = tuple(found.scores[at].tolist())
            ranked.append((float(means[at]), kind, int(found.layer[at]), int(found.index[at]), scores))
    ranked.sort(key=lambda each: (-each[0], *each[1:4]))
    lists = FirstLists.of(index, lens)
    view = SeedsView(
        model=index.manifest.model, build=index.manifest.build, minus=minus_of(index),
        words=write_terms(parse_terms(words)), kind=",".join(kinds), lens=lens,
        seeds=[SeedWord(word=s.word, weight=s.weight, tokens=tokens_of(index.tokens, s.tokens)) for s in seeds],
        nearest=[], nearest_hubs=[],
        results=[_listing(lists, *each) for each in ranked[:k]],
        heads=[],
    )  # fmt: skip
    return view, missing


def _scores(index: Index, seeds: Sequence[Seed], kind: str, lens: str) -> tuple[_Scores, tuple[int, ...]]:
    n_vectors = index.shape.count(kind)
    scores = np.zeros((len(seeds), index.shape.n_layers * n_vectors))  # (words, layers * vectors)
    listed = np.zeros(scores.shape[1], bool)
    missing: tuple[int, ...] = ()
    for word, seed in enumerate(seeds):
        for token in seed.tokens:
            found = look_up_token(index, token, lens, "all", [kind], matrices=())
            missing = tuple(sorted({*missing, *found.missing}))
            of_token = np.zeros(scores.shape[1])
            for of_end in found.vectors.values():
                places = of_end.layer.astype(np.int64) * n_vectors + of_end.index
                of_token[places] = of_end.score  # of a small vocabulary, both ends may hold it, with the same score
                listed[places] = True
            scores[word] += of_token / len(seed.tokens)
    places = np.flatnonzero(listed)
    layer, number = np.divmod(places, n_vectors)
    of_listed = scores[:, places].T
    if lens == "cosine":
        of_listed /= _lengths(index, kind, layer, number)[:, None]
    return _Scores(kind, layer, number, of_listed), missing


def _lengths(index: Index, kind: str, layer: NDArray[Any], number: NDArray[Any]) -> Floats:
    """(n,): |v| of vectors that are in lists; one of length 0 is in none."""
    lengths = np.empty(len(layer))
    for each in np.unique(layer).tolist():
        here = layer == each
        lengths[here] = index.shard(each).all_norms(kind)[number[here]]
    return lengths


def _listing(lists: FirstLists, score: float, kind: str, layer: int, row: int, scores: Iterable[float]) -> SeedListing:
    return {
        "kind": kind,
        "layer": layer,
        "index": row,
        **in_head(lists.index.shape, kind, row),
        "score": score,
        "scores": list(scores),
        "top": lists.tokens(kind, layer, row, FIRST),
        "computed": False,
    }
