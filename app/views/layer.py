"""A layer's page: its neurons as a table, sorted, filtered by a token, page by page."""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import repeat
from typing import Annotated

import numpy as np
from typing_extensions import TypedDict

from app.views.checks import count_pages, finite, page_slice
from app.views.token_search import token_search
from app.views.tokens import Token, View, token_of, tokens_of
from app.views.vectors import NOT_STORED
from precompute.errors import NotFound
from precompute.index.index import Index
from precompute.index.not_stored import check_kinds, check_lens
from precompute.index.shard_reader import Array, Shard, position
from precompute.shape import ENDS

SORTS = ("neuron", "norm", "coherence", "similarity")  # a number sorts the largest first; "-" before it reverses
FIRST = 5  # tokens of a list in a row

_ID = re.compile(r"#?(\d{1,9})", re.ASCII)


class NeuronRow(TypedDict):
    neuron: int
    key: Annotated[list[Token] | None, NOT_STORED]
    value: Annotated[list[Token] | None, NOT_STORED]
    norm: Annotated[float | None, NOT_STORED]  # of the value
    coherence: float | None  # of the value's top list
    similarity: Annotated[float | None, NOT_STORED]


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
    position("sort", sort.removeprefix("-"), SORTS)
    check_lens(index, lens)
    check_kinds(index, *_needed(index, sort))
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


def _needed(index: Index, sort: str) -> tuple[str, ...]:
    """Of which kinds one must be stored for a table that is sorted so."""
    match sort.removeprefix("-"):
        case "norm" | "coherence":
            return ("ff_value",)
        case "similarity":
            return ("ff_key",) if "ff_value" in index.stored.kinds else ("ff_value",)
    return ("ff_key", "ff_value")


def _listing(index: Index, shard: Shard, token: int, lens: str) -> Array:
    """The neurons whose key or value lists a token, at whichever end."""
    index.tokens.raw(token)
    kinds = [at for at, kind in enumerate(index.stored.kinds) if kind in ("ff_key", "ff_value")]
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
    keys, values = (
        shard.first_ids(kind, neurons, lens, FIRST).tolist() if kind in index.stored.kinds else repeat(None)
        for kind in ("ff_key", "ff_value")
    )
    norms, coherences = _value_columns(index, shard, lens, neurons)
    similarities = _similarities(index, shard, lens, neurons)
    columns = zip(neurons.tolist(), keys, values, norms, coherences, similarities, strict=False)
    return [
        {
            "neuron": neuron,
            "key": None if key is None else tokens_of(index.tokens, key),
            "value": None if value is None else tokens_of(index.tokens, value),
            "norm": norm,
            "coherence": None if coherence is None else finite(coherence),
            "similarity": similarity,
        }
        for neuron, key, value, norm, coherence, similarity in columns
    ]


def _value_columns(
    index: Index, shard: Shard, lens: str, neurons: Array
) -> tuple[Iterable[float | None], Iterable[float | None]]:
    """Norms and coherences of the values of these neurons."""
    if "ff_value" not in index.stored.kinds:
        return repeat(None), repeat(None)
    norms = shard.all_norms("ff_value")[neurons]
    for wrong in np.flatnonzero(~(np.isfinite(norms) & (norms >= 0)))[:1].tolist():
        shard.vector("ff_value", int(neurons[wrong]), lens)  # says what is wrong
    return norms.tolist(), shard.all_coherences("ff_value", lens)[neurons].tolist()


def _similarities(index: Index, shard: Shard, lens: str, neurons: Array) -> Iterable[float | None]:
    if not index.stored.similarity:
        return repeat(None)
    similarities = shard.all_similarities(lens)[neurons]
    for wrong in np.flatnonzero(~((similarities >= 0) & (similarities <= 1)))[:1].tolist():
        shard.similarity(int(neurons[wrong]), lens)  # says what is wrong
    numbers: list[float] = similarities.tolist()
    return numbers
