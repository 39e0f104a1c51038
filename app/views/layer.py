"""A layer's page: its neurons as a table, sorted, filtered by a token, page by page.
One neuron's own page is in parameters.py."""

import re

import numpy as np

from app.views.column_rows import ColumnRows
from app.views.page_types import LayerView, NeuronRow
from app.views.parameters import token_view
from app.views.parts import cut, finite, place_of, token_views
from app.views.token_search import token_search
from precompute.errors import NotFound
from precompute.index.index import Index
from precompute.index.shard_reader import Array, Shard
from precompute.shape import ENDS, LENSES

SORTS = ("neuron", "norm", "coherence", "similarity")  # a number sorts the largest first; "-" before it reverses
FIRST = 5  # tokens of a list in a row

_ID = re.compile(r"#?(\d{1,9})", re.ASCII)


def layer_view(
    index: Index,
    layer: int,
    lens: str = "dot",
    sort: str = "neuron",
    token: int | None = None,
    page: int = 1,
    size: int | None = 50,
) -> LayerView:
    """A `size` of None: all neurons on one page, whose rows are made as they are read."""
    place_of("lens", lens, LENSES)
    place_of("sort", sort.removeprefix("-"), SORTS)
    shard = index.shard(layer)
    chosen = np.arange(index.shape.d_mlp) if token is None else _listing(index, shard, token, lens)
    pages, window = cut(len(chosen), page, size)
    rows = _rows(index, shard, lens, chosen[_order(shard, chosen, lens, sort)][window])
    return LayerView.of(
        model=index.manifest.model,
        layer=layer,
        lens=lens,
        sort=sort,
        token=None if token is None else token_view(index.tokens, token),
        page=page,
        pages=pages,
        total=len(chosen),
        rows=rows if size is None else tuple(rows),
    )


def token_named(index: Index, text: str) -> int:
    """The token that a word stands for, with a space before it first, then without, then in another case."""
    word = text.strip()
    if number := _ID.fullmatch(word):
        index.tokens.raw(token := int(number[1]))
        return token
    found = token_search(index.tokens).tokens(word or text)
    for wanted in (f" {word}", word):
        for token in found:
            if index.tokens.text(token) == wanted:
                return token
    if not found:
        raise NotFound(
            f"token {text[:100]!r} is none of {index.manifest.model}: give a word that is, or an id as #2767"
        )
    return found[0]


def _listing(index: Index, shard: Shard, token: int, lens: str) -> Array:
    """The neurons whose key or value lists a token, at whichever end."""
    index.tokens.raw(token)
    kinds = [index.shape.kinds.index(kind) for kind in ("ff_key", "ff_value")]
    lists = [shard.listed(token, lens, end) for end in ENDS]
    return np.unique(np.concatenate([found.index[np.isin(found.kind, kinds)] for found in lists]))


def _order(shard: Shard, chosen: Array, lens: str, sort: str) -> Array:
    """What is undefined comes last in both directions, equals by their number."""
    by, reverse = sort.removeprefix("-"), sort.startswith("-")
    if by == "neuron":
        return np.arange(len(chosen))[:: -1 if reverse else 1]
    numbers = {
        "norm": lambda: shard.all_norms("ff_value"),
        "coherence": lambda: shard.all_coherences("ff_value", lens),
        "similarity": lambda: shard.all_similarities(lens),
    }[by]()[chosen]
    return np.argsort(numbers if reverse else -numbers, kind="stable")


def _rows(index: Index, shard: Shard, lens: str, neurons: Array) -> ColumnRows[NeuronRow]:
    keys, values = (shard.first_ids(kind, neurons, lens, FIRST) for kind in ("ff_key", "ff_value"))
    norms, similarities = shard.all_norms("ff_value")[neurons], shard.all_similarities(lens)[neurons]
    for wrong in np.flatnonzero(~(np.isfinite(norms) & (norms >= 0)))[:1].tolist():
        shard.vector("ff_value", int(neurons[wrong]), lens)  # says what is wrong
    for wrong in np.flatnonzero(~((similarities >= 0) & (similarities <= 1)))[:1].tolist():
        shard.similarity(int(neurons[wrong]), lens)  # says what is wrong
    coherences = shard.all_coherences("ff_value", lens)[neurons]

    def row(
        neuron: int, key: list[int], value: list[int], norm: float, coherence: float, similarity: float
    ) -> NeuronRow:
        return {
            "neuron": neuron,
            "key": token_views(index.tokens, key),
            "value": token_views(index.tokens, value),
            "norm": norm,
            "coherence": finite(coherence),
            "similarity": similarity,
        }

    return ColumnRows(row, neurons, keys, values, norms, coherences, similarities)
