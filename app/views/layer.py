"""A layer's page: its neurons as a table, sorted, filtered by a token, page by page."""

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import repeat
from typing import Annotated, Any, Literal, NotRequired

import numpy as np
from pydantic import Field
from typing_extensions import TypedDict

from lexiscope.app.views.checks import count_pages, finite, page_slice
from lexiscope.app.views.difference import is_unchanged, layer_changes, minus_of, vector_changes
from lexiscope.app.views.hubs import LOOKED_AT, first_kept
from lexiscope.app.views.similarity import Shuffled, shuffled
from lexiscope.app.views.token_search import token_search
from lexiscope.app.views.tokens import Token, ViewOfModel, token_of, tokens_of
from lexiscope.app.views.vectors import NOT_STORED, UNCHANGED
from lexiscope.precompute.errors import NotFound
from lexiscope.precompute.index.index import Index
from lexiscope.precompute.index.not_stored import check_kinds, check_lens
from lexiscope.precompute.index.shard_reader import NOTABLE, Shard
from lexiscope.precompute.index.stored import position
from lexiscope.precompute.index.tensor_file import Array, Floats
from lexiscope.precompute.shape import ENDS

SORTS = ("neuron", "norm", "coherence", "similarity")  # a number sorts the largest first; "-" before it reverses
DIFFERENCE_SORTS = (*SORTS, "change")
FIRST = 5  # tokens of a list in a row
CHANGED = {"ff_value": "change", "ff_key": "change_key"}  # kinds of which a row says how much they changed

LAYER_CHANGE: Any = Field(
    exclude_if=lambda value: value is None,
    description="Only of a difference: by kind, |Δ| / |base| of all its vectors together; null where the base is 0",
)
ROW_CHANGE: Any = Field(
    description="Only of a difference: |Δ| / |base|, 0 where it did not change and has no list; null where the base is "
    "0, or the kind is not stored"
)
SHARE_15: Any = Field(description="The share of all neurons of the layer whose larger similarity is at least 0.15")
TOKEN_ID = re.compile(r"#?(\d{1,9})", re.ASCII)


class NeuronRow(TypedDict):
    neuron: int
    key: Annotated[list[Token] | None, NOT_STORED]
    value: Annotated[list[Token] | None, NOT_STORED]
    value_bottom: Annotated[list[Token] | None, NOT_STORED]
    norm: Annotated[float | None, NOT_STORED]  # of the value
    coherence: float | None  # of the value's top list
    similarity: Annotated[float | None, NOT_STORED]  # of the key's top with the value's top
    similarity_bottom: Annotated[float | None, NOT_STORED]  # and with its bottom
    change: Annotated[NotRequired[float | None], ROW_CHANGE]  # of the value
    change_key: Annotated[NotRequired[float | None], ROW_CHANGE]


@dataclass(frozen=True, slots=True, kw_only=True)
class LayerView(ViewOfModel):
    layer: int
    lens: str
    sort: str
    token: Token | None  # only neurons whose key or value lists it
    page: int
    pages: int
    total: int
    share_15: Annotated[float | None, SHARE_15]
    shuffled: Annotated[Shuffled | None, NOT_STORED]
    change: Annotated[dict[str, float | None] | None, LAYER_CHANGE] = None
    unchanged: Annotated[Literal[True] | None, UNCHANGED] = None
    rows: list[NeuronRow]


def layer_view(
    index: Index,
    layer: int,
    lens: str = "dot",
    sort: str = "neuron",
    token: int | None = None,
    page: int = 1,
    size: int | None = 50,
    hubs: frozenset[int] = frozenset(),
) -> LayerView:
    """A `size` of None: all neurons on one page. Hubs that are given are skipped among first tokens."""
    neurons, shard = ordered_neurons(index, layer, lens, sort, token), index.shard(layer)
    difference, kinds = index.stored.difference, index.stored.weight_kinds
    return LayerView(
        model=index.manifest.model,
        build=index.manifest.build,
        minus=minus_of(index),
        layer=layer,
        lens=lens,
        sort=sort,
        token=None if token is None else token_of(index.tokens, token),
        page=page,
        pages=count_pages(len(neurons), page, size),
        total=len(neurons),
        share_15=_share_of_notable(shard, lens) if index.stored.similarity else None,
        shuffled=shuffled(shard, "ff", lens) if index.stored.similarity else None,
        change=layer_changes(shard, kinds) if difference else None,
        unchanged=True if difference and is_unchanged(shard, kinds) else None,
        rows=_rows(index, shard, lens, neurons[page_slice(page, size)], hubs),
    )


def _share_of_notable(shard: Shard, lens: str) -> float:
    return float((shard.all_similarities("ff", lens).max(axis=1) >= NOTABLE).mean())


def ordered_neurons(index: Index, layer: int, lens: str, sort: str, token: int | None) -> Array:
    """The neurons of the table in its order; with a token, only those whose key or value lists it."""
    position("sort", sort.removeprefix("-"), DIFFERENCE_SORTS if index.stored.difference else SORTS)
    check_lens(index, lens)
    check_kinds(index, *_needed(index, sort))
    shard = index.shard(layer)
    chosen: Array = np.arange(index.shape.d_mlp) if token is None else _listing(index, shard, token, lens)
    return chosen[_order(shard, chosen, lens, sort, [kind for kind in CHANGED if kind in index.stored.kinds])]


def token_named(index: Index, text: str) -> int:
    """The token that a word stands for, with a space before it first, then without, then in another case."""
    word = text.strip()
    if number := TOKEN_ID.fullmatch(word):
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
    lists = [shard.inverted.listed(token, lens, end) for end in ENDS]
    return np.unique(np.concatenate([found.index[np.isin(found.kind, kinds)] for found in lists]))


def _order(shard: Shard, chosen: Array, lens: str, sort: str, kinds: Sequence[str]) -> Array:
    """What is undefined comes last in both directions, equals by their number; `kinds`: those whose change counts."""
    by, reverse = sort.removeprefix("-"), sort.startswith("-")
    if by == "neuron":
        return np.arange(len(chosen))[:: -1 if reverse else 1]
    readers: dict[str, Callable[[], Floats]] = {
        "norm": lambda: shard.all_norms("ff_value"),
        "coherence": lambda: shard.all_coherences("ff_value", lens),
        "similarity": lambda: shard.all_similarities("ff", lens).max(axis=1),  # the larger of both
        "change": lambda: np.fmax.reduce([vector_changes(shard, kind) for kind in kinds]),  # likewise
    }
    numbers = readers[by]()[chosen]
    return np.argsort(numbers if reverse else -numbers, kind="stable")


def _rows(index: Index, shard: Shard, lens: str, neurons: Array, hubs: frozenset[int]) -> list[NeuronRow]:
    keys, values = (
        first_kept(shard.first_ids(kind, neurons, lens, LOOKED_AT if hubs else FIRST).tolist(), hubs, FIRST)
        if kind in index.stored.kinds
        else repeat(None)
        for kind in ("ff_key", "ff_value")
    )
    bottoms = (
        first_kept(
            shard.first_ids("ff_value", neurons, lens, LOOKED_AT if hubs else FIRST, "bottom").tolist(), hubs, FIRST
        )
        if "ff_value" in index.stored.kinds
        else repeat(None)
    )
    norms, coherences = _value_columns(index, shard, lens, neurons)
    with_top, with_bottom = _similarities(index, shard, lens, neurons)
    columns = zip(neurons.tolist(), keys, values, bottoms, norms, coherences, with_top, with_bottom, strict=False)
    rows: list[NeuronRow] = [
        {
            "neuron": neuron,
            "key": None if key is None else tokens_of(index.tokens, key),
            "value": None if value is None else tokens_of(index.tokens, value),
            "value_bottom": None if bottom is None else tokens_of(index.tokens, bottom),
            "norm": norm,
            "coherence": None if coherence is None else finite(coherence),
            "similarity": similarity,
            "similarity_bottom": similarity_bottom,
        }
        for neuron, key, value, bottom, norm, coherence, similarity, similarity_bottom in columns
    ]
    if index.stored.difference:
        _add_changes(index, shard, rows, neurons)
    return rows


def _add_changes(index: Index, shard: Shard, rows: Sequence[NeuronRow], neurons: Array) -> None:
    """How much keys and values changed; what did not change lists nothing."""
    changes = {
        kind: vector_changes(shard, kind)[neurons].tolist() if kind in index.stored.kinds else [np.nan] * len(neurons)
        for kind in CHANGED
    }
    for row, of_value, of_key in zip(rows, changes["ff_value"], changes["ff_key"], strict=True):
        row["change"], row["change_key"] = finite(of_value), finite(of_key)
        if of_key == 0:
            row["key"] = []
        if of_value == 0:
            row["value"] = row["value_bottom"] = []
            row["coherence"] = None
        if 0 in (of_key, of_value):
            row["similarity"] = row["similarity_bottom"] = None


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


def _similarities(
    index: Index, shard: Shard, lens: str, neurons: Array
) -> tuple[Iterable[float | None], Iterable[float | None]]:
    """Of the tops of these neurons' keys with the tops and with the bottoms of their values."""
    if not index.stored.similarity:
        return repeat(None), repeat(None)
    similarities = shard.all_similarities("ff", lens)[neurons]
    for wrong in np.flatnonzero(~((similarities >= 0) & (similarities <= 1)).all(axis=1))[:1].tolist():
        shard.similarity(int(neurons[wrong]), lens)  # says what is wrong
    with_top, with_bottom = similarities.T.tolist()
    return with_top, with_bottom
