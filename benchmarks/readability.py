"""How much of what a visitor sees first can be read, over all heads and neurons of the demo that are built.

A word counts if Debian's dictionary has it (package wamerican), a pair if it is of two different ones. ratings.json
holds how three readers rated heads, from their first 20 pairs and nothing else; the measure of the maps was chosen on
one half of these heads, and is compared with coherence on the other.
"""

import json
from collections.abc import Callable, Iterator, Sequence
from itertools import product
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from benchmarks.figures import Figure
from lexiscope.app.lists.view import TokenPair
from lexiscope.precompute.errors import NotFound
from lexiscope.precompute.index.index import Index
from lexiscope.precompute.shape import MATRICES
from tests.support.views import head_view, pairs_view

DICTIONARY = Path("/usr/share/dict/american-english")
RATINGS = Path(__file__).with_name("ratings.json")
PAIRS, TOKENS = 20, 10  # of each list: the first


def figures(folder: Path) -> Iterator[Figure]:
    index = Index.open(folder)
    if not DICTIONARY.exists():
        raise NotFound(f"{DICTIONARY} is not there: install Debian's package wamerican")
    words = {line.strip().lower() for line in DICTIONARY.read_text().splitlines()}
    yield from _pair_figures(index, words)
    yield from _token_figures(index, words)
    yield from _map_figures(index)


def _pair_figures(index: Index, words: set[str]) -> Iterator[Figure]:
    heads = list(product(index.layers, range(index.shape.n_heads)))
    for matrix in MATRICES:
        for what in ("the paper's list (dot, all)", "the list seen first"):
            counts = []
            for layer, head in heads:
                first = head_view(index, layer, head).readable
                lens, preset = (first.lens, first.preset) if first and what == "the list seen first" else ("dot", "all")
                pairs = pairs_view(index, matrix, layer, head, lens, preset, PAIRS).top
                counts.append(sum(_is_readable(pair, words) for pair in pairs))
            name = f"{matrix.upper()}, {what}: pairs of two words of {PAIRS}"
            yield Figure(name, float(np.mean(counts)), unit="")


def _is_readable(pair: TokenPair, words: set[str]) -> bool:
    source, target = (pair[side]["token"].strip().lower() for side in ("from", "to"))
    return source != target and source in words and target in words


def _token_figures(index: Index, words: set[str]) -> Iterator[Figure]:
    is_word = np.array([text.strip().lower() in words for text in index.tokens.texts])
    every = np.arange(index.shape.d_mlp)
    for lens in index.stored.lenses:
        shares = [
            is_word[index.shard(layer).first_ids("ff_value", every, lens, TOKENS)].mean() for layer in index.layers
        ]
        best = ", the lens that reads best" if lens == index.best_lens else ""
        yield Figure(
            f"values under {lens}{best}: words among the first {TOKENS}", float(np.mean(shares)) * 100, unit="%"
        )


def _map_figures(index: Index) -> Iterator[Figure]:
    content = json.loads(RATINGS.read_text())
    if content["weights_sha256"] != index.manifest.weights_sha256:
        return
    rated = [row for row in content["ratings"] if not row[3] and row[0] in index.layers]
    measures: dict[str, Callable[[int, str, int], float]] = {
        "coherence of the paper's list": lambda layer, matrix, head: float(
            index.shard(layer).heads.all_pair_coherences(matrix, "dot", "all")[head]
        ),
        "coherence": lambda layer, matrix, head: float(
            index.shard(layer).heads.all_pair_coherences(matrix, "cosine", "words")[head]
        ),
        "readability": lambda layer, matrix, head: float(
            index.shard(layer).heads.all_readabilities(matrix, "cosine", "words")[head]
        ),
    }
    for (name, measure), matrices in product(measures.items(), (MATRICES, *((matrix,) for matrix in MATRICES))):
        rows = [row for row in rated if row[2] in matrices]
        ratings = [float(np.mean(row[4])) for row in rows]
        numbers = [measure(layer, matrix, head) for layer, head, matrix, *_ in rows]
        of = ", ".join(matrix.upper() for matrix in matrices)
        yield Figure(f"ratings of {len(rows)} lists ({of}) and {name}: Spearman", _spearman(ratings, numbers), unit="")


def _spearman(a: Sequence[float], b: Sequence[float]) -> float:
    known = np.isfinite(a) & np.isfinite(b)
    return float(np.corrcoef(_ranks(np.asarray(a)[known]), _ranks(np.asarray(b)[known]))[0, 1])


def _ranks(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return ranks; equal values share the mean of their ranks."""
    _, group, counts = np.unique(values, return_inverse=True, return_counts=True)
    return np.asarray((np.cumsum(counts) - (counts - 1) / 2)[group])
