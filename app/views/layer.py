"""A layer's page: its neurons as a table, sorted, filtered by a token, page by page."""

import re
from dataclasses import dataclass

import numpy as np
from typing_extensions import TypedDict

from app.views.checks import count_pages, finite, page_slice
from app.views.token_search import token_search
from app.views.tokens import Token, View, token_of, tokens_of
from precompute.errors import NotFound
from precompute.index.index import Index
from precompute.index.shard_reader import Array, Shard, position
from precompute.shape import ENDS, LENSES

SORTS = ("neuron", "norm", "coherence", "similarity")  # a number sorts the largest first; "-" before it reverses
FIRST = 5  # tokens of a list in a row

_ID = re.compile(r"#?(\d{1,9})", re.ASCII)


class NeuronRow(TypedDict):
    neuron: int
    key: list[Token]
    value: list[Token]
    norm: float  # of the value
    coherence: float | None  # of the value's top list
    similarity: float


@dataclass(frozen=True, slots=True, kw_only=True)
class LayerView(View):
    model: str
    layer: int
    lens: str
    sort: str
    token: Token | None  # only neurons whose key or value lists it
    page: int
    pages: int
    total: int
    rows: list[NeuronRow]


def layer_view(
    index: Index,
    layer: int,
    lens: str = "dot",
    sort: str = "neuron",
    token: int | None = None,
    page: int = 1,
    size: int | None = 50,
) -> LayerView:
    """A `size` of None: all neurons on one page."""
    position("lens", lens, LENSES)
    position("sort", sort.removeprefix("-"), SORTS)
    shard = index.shard(layer)
    chosen = np.arange(index.shape.d_mlp) if token is None else _listing(index, shard, token, lens)
    order = _order(shard, chosen, lens, sort)
    return LayerView(
        model=index.manifest.model,
        layer=layer,
        lens=lens,
        sort=sort,
        token=None if token is None else token_of(index.tokens, token),
        page=page,
        pages=count_pages(len(chosen), page, size),
        total=len(chosen),
        rows=_rows(index, shard, lens, chosen[order][page_slice(page, size)]),
    )


def token_named(index: Index, text: str) -> int:
    """The token that a word stands for, with a space before it first, then without, then in another case."""
    word = text.strip()
    if number := _ID.fullmatch(word):
        index.tokens.raw(token := int(number[1]))
        return token
    candidates = token_search(index.tokens).tokens(word or text)
    for wanted in (f" {word}", word):
        for token in candidates:
            if index.tokens.text(token) == wanted:
                return token
    if not candidates:
        raise NotFound(
            f"token {text[:100]!r} is none of {index.manifest.model}: give a word that is, or an id as #2767"
        )
    return candidates[0]


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


def _rows(index: Index, shard: Shard, lens: str, neurons: Array) -> list[NeuronRow]:
    keys, values = (shard.first_ids(kind, neurons, lens, FIRST) for kind in ("ff_key", "ff_value"))
    norms, similarities = shard.all_norms("ff_value")[neurons], shard.all_similarities(lens)[neurons]
    for wrong in np.flatnonzero(~(np.isfinite(norms) & (norms >= 0)))[:1].tolist():
        shard.vector("ff_value", int(neurons[wrong]), lens)  # says what is wrong
    for wrong in np.flatnonzero(~((similarities >= 0) & (similarities <= 1)))[:1].tolist():
        shard.similarity(int(neurons[wrong]), lens)  # says what is wrong
    coherences = shard.all_coherences("ff_value", lens)[neurons]
    columns = (neurons, keys, values, norms, coherences, similarities)
    return [
        {
            "neuron": neuron,
            "key": tokens_of(index.tokens, key),
            "value": tokens_of(index.tokens, value),
            "norm": norm,
            "coherence": finite(coherence),
            "similarity": similarity,
        }
        for neuron, key, value, norm, coherence, similarity in zip(*(c.tolist() for c in columns), strict=True)
    ]
