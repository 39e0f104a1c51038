"""Rank vectors by seed words with the index alone, where the weights are not here: find the vectors whose stored lists
hold the words, by their listed scores.

Under the lens `cosine` a listed score divided by the vector's length is the word's cosine with the vector, the same
number as from the weights. Under `dot` it is the word's own score; a ranking by the weights subtracts the score of the
mean token, which is the same for every word. A word that a vector lists at neither end counts as 0 there, and vectors
that list none of the words are not found. The score of a word of several pieces is the mean of their scores.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from tokenizers import Tokenizer

from lexiscope.app.lists.first_tokens import FirstLists
from lexiscope.app.lists.view import of_index, tokens_of
from lexiscope.app.pages.seeds import SeedsView, listings
from lexiscope.precompute.errors import BadRequest
from lexiscope.precompute.index.index import Index
from lexiscope.precompute.index.lookup import look_up_token
from lexiscope.precompute.index.not_stored import check_kinds, check_lens
from lexiscope.precompute.live.seed_words import Seed, find_seed
from lexiscope.precompute.live.wire.answers import SeedResult, TermUsed
from lexiscope.precompute.live.wire.grammar import parse_terms, write_terms

Floats = NDArray[np.float64]


def stored_seeds_view(
    index: Index, tokenizer: Tokenizer, words: str, kinds: Sequence[str], lens: str, k: int
) -> tuple[SeedsView, tuple[int, ...]]:
    """Return the data of the page that ranks vectors by seed words, and the layers that could not be read because they
    are not built or damaged."""
    check_lens(index, lens)
    for kind in kinds:
        check_kinds(index, kind)
    terms = parse_terms(words)
    seeds = [find_seed(tokenizer, term.word, term.weight) for term in terms]
    if not seeds:
        raise BadRequest("there are no words: give some such as horse, dog, lion")
    weights = np.array([seed.weight for seed in seeds])
    missing: tuple[int, ...] = ()
    ranked: list[SeedResult] = []
    for kind in kinds:
        layers, numbers, scores, missing = _scores(index, seeds, kind, lens)
        means = scores @ weights / np.abs(weights).sum()
        ranked += [
            {
                "kind": kind, "layer": int(layers[at]), "index": int(numbers[at]), "score": float(means[at]),
                "scores": scores[at].tolist(), "fit": None, "cosine": None,
            }
            for at in np.lexsort((numbers, layers, -means))[:k].tolist()
        ]  # fmt: skip
    ranked.sort(key=lambda result: (-result["score"], result["kind"], result["layer"], result["index"]))
    lists = FirstLists.of(index, lens)
    used: list[TermUsed] = [
        {"word": seed.word, "weight": seed.weight, "tokens": tokens_of(index.tokens, seed.tokens)} for seed in seeds
    ]
    view = SeedsView(
        **of_index(index), words=write_terms(terms), kind=",".join(kinds), lens=lens, seeds=used,
        nearest=[], nearest_hubs=[], results=listings(lists, ranked[:k], {}), heads=[], rank="listed",
    )  # fmt: skip
    return view, missing


def _scores(index: Index, seeds: Sequence[Seed], kind: str, lens: str) -> tuple[Any, Any, Floats, tuple[int, ...]]:
    """Return the vectors of one kind that list at least one of the words: their layers and numbers (n,), and their
    scores with every word (n, words); and the layers that could not be read."""
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
                of_token[places] = of_end.score  # in a small vocabulary, both ends may hold it, with equal scores
                listed[places] = True
            scores[word] += of_token / len(seed.tokens)
    places = np.flatnonzero(listed)
    layer, number = np.divmod(places, n_vectors)
    of_listed = scores[:, places].T
    if lens == "cosine":
        of_listed /= _lengths(index, kind, layer, number)[:, None]
    return layer, number, of_listed, missing


def _lengths(index: Index, kind: str, layer: NDArray[Any], number: NDArray[Any]) -> Floats:
    """Return the lengths |v| of these vectors, (n,). They are in lists, so no length is 0."""
    lengths = np.empty(len(layer))
    for each in np.unique(layer).tolist():
        here = layer == each
        lengths[here] = index.shard(each).all_norms(kind)[number[here]]
    return lengths
