"""Show a layer: its neurons as a table, sorted, filtered by a token, page by page; and, as CSV, all their lists."""

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import repeat
from typing import Annotated, Any, Literal, NotRequired

import numpy as np
from pydantic import BeforeValidator, Field
from typing_extensions import TypedDict

from lexiscope.app.formats.table import Column, Table, csv_order
from lexiscope.app.lists.checks import count_pages, finite, list_length, page_slice
from lexiscope.app.lists.difference import LAYER_CHANGE, is_unchanged, layer_changes, vector_changes
from lexiscope.app.lists.find_tokens import token_named
from lexiscope.app.lists.kept_tokens import first_tokens
from lexiscope.app.lists.similarity import TELLING, Shuffled, shuffled
from lexiscope.app.lists.vectors import NOT_STORED, UNCHANGED
from lexiscope.app.lists.view import PAGE_ONLY, Token, ViewOfModel, of_index, token_of, tokens_of
from lexiscope.app.lists.worth import (
    CHANCE,
    COSINES,
    Class,
    Cosines,
    above_chance,
    cosines_as_data,
    known_z,
    mismatched,
    of_class,
)
from lexiscope.app.pages.page import Address, LensArguments, ModelSite, Moved, Page, PageNumber
from lexiscope.app.urls import link
from lexiscope.precompute.errors import BadRequest
from lexiscope.precompute.index.index import Index
from lexiscope.precompute.index.layer.lists import Chance
from lexiscope.precompute.index.layer.shard import NOTABLE, Shard
from lexiscope.precompute.index.lookup import look_up_in_layer
from lexiscope.precompute.index.not_stored import check_kinds, check_lens
from lexiscope.precompute.index.stored import Stored, position
from lexiscope.precompute.index.tensor_file import Array, Floats
from lexiscope.precompute.shape import ENDS

# numbers are sorted largest first; "-" before a name reverses the order
SORTS = ("neuron", "norm", "coherence", "similarity", "z")
DIFFERENCE_SORTS = (*SORTS, "change")
VECTORS = ("key", "up", "value")
NUMBER = re.compile(r"[0-9]{1,9}")
SIMILARITY_BINS = 20  # from 0 to 1
ROW_TOKENS = 5  # how many tokens of a list a row shows
# The field of a row that says how much a vector of this kind changed.
CHANGED = {"ff_value": "change", "ff_key": "change_key"}

ROW_CHANGE: Any = Field(
    description="Only of a difference: |Δ| / |base|, 0 where it did not change and has no list; null where the base is "
    "0, or the kind is not stored"
)
SHARE_15: Any = Field(description="The share of all neurons of the layer whose larger similarity is at least 0.15")


LAYER_COLUMNS = (
    Column("neuron", "number", tip="neuron", sort="neuron"),
    Column("key", "tokens", count=ROW_TOKENS, page_heading="key reads", tip="ff_key"),
    Column("value", "tokens", count=ROW_TOKENS, page_heading="value writes", tip="ff_value"),
    Column("value_bottom", "tokens", count=ROW_TOKENS, audience="programs"),
    Column("norm", "number", format=".2f", tip="norm", sort="norm"),
    Column("coherence", "ratio", tip="coherence", sort="coherence"),
    Column("similarity", "number", tip="similarity", sort="similarity"),
    Column("similarity_bottom", "number", heading="with bottom", tip="similarity"),
    Column("z", "number", format=".1f", tip="z", sort="z"),
    Column("class", get=lambda row: row["cosines"] and row["cosines"]["class"], tip="in-and-out"),
)
# The last columns, only of a difference.
CHANGE_COLUMNS = (
    Column("change", "change", page_heading="value changed", tip="change", sort="change"),
    Column("change_key", "change", heading="of the key", page_heading="key changed", tip="change"),
)


class LayerAt(Address):
    pattern = "layer/{layer:number}"
    layer: Annotated[int, Field(ge=0, description="A layer, from 0", examples=[29])]


class LayerArguments(LensArguments):
    sort: Annotated[
        Literal[
            "neuron", "-neuron", "norm", "-norm", "coherence", "-coherence", "similarity", "-similarity",
            "change", "-change", "z", "-z",
        ],
        Field(
            description="By what: numbers go from large to small, and `-` turns the order round. Only the neurons of a "
            "difference of two models have a `change`"
        ),
    ] = "neuron"  # fmt: skip
    token: Annotated[
        int | str | None,
        BeforeValidator(lambda value: int(value) if NUMBER.fullmatch(str(value)) else value),
        Field(
            description="Only neurons whose key or value lists this token id; with a word, or an id after #, the "
            "answer is the address with its id"
        ),
    ] = None
    above: Annotated[
        Literal["chance"] | None, Field(description="Only neurons whose value's z 99 % of random vectors stay under")
    ] = None
    of_class: Annotated[Class | None, Field(alias="class", description="Only neurons of this class")] = None
    min_similarity: Annotated[
        float | None, Field(ge=0, le=1, description="Only neurons whose larger similarity is at least this")
    ] = None
    max_similarity: Annotated[
        float | None, Field(ge=0, le=1, description="Only neurons whose larger similarity is less than this")
    ] = None
    page: PageNumber = 1
    k: Annotated[
        int | None,
        Field(
            ge=1,
            description="In `.csv`: all lists of the neurons, token by token, this many of each; all that is stored",
        ),
    ] = None
    ends: Annotated[
        Literal["top", "bottom", "both"] | None,
        Field(description="In `.csv`: all lists of the neurons, token by token, of these ends; of both"),
    ] = None
    of_csv = ("k", "ends")


class SimilarityBin(TypedDict):
    """Counts the neurons of the layer with a similarity (the larger of both ends) from `min_similarity` on and less
    than `max_similarity`, and those that have one by chance, with another neuron's value."""

    min_similarity: float
    max_similarity: float | None  # None: the last one also holds 1
    neurons: int
    shuffled: int


class NeuronRow(TypedDict):
    neuron: int
    key: Annotated[list[Token] | None, NOT_STORED]
    value: Annotated[list[Token] | None, NOT_STORED]
    value_bottom: Annotated[list[Token] | None, NOT_STORED]
    norm: Annotated[float | None, NOT_STORED]  # the norm of the value
    coherence: float | None  # the coherence of the value's top list
    similarity: Annotated[float | None, NOT_STORED]  # the similarity of the key's top with the value's top
    similarity_bottom: Annotated[float | None, NOT_STORED]  # the similarity of the key's top with the value's bottom
    z: Annotated[float | None, NOT_STORED]  # that of the first token of the value's top list
    cosines: Annotated[Cosines | None, COSINES]
    change: Annotated[NotRequired[float | None], ROW_CHANGE]  # the change of the value
    change_key: Annotated[NotRequired[float | None], ROW_CHANGE]


@dataclass(frozen=True, slots=True, kw_only=True)
class LayerView(ViewOfModel):
    layer: int
    lens: str
    sort: str
    token: Token | None  # if given, only neurons whose key or value lists it
    page: int
    pages: int
    total: int
    share_15: Annotated[float | None, SHARE_15]
    shuffled: Annotated[Shuffled | None, NOT_STORED]
    histogram: Annotated[list[SimilarityBin] | None, NOT_STORED]
    min_similarity: float | None = None
    max_similarity: float | None = None
    change: Annotated[dict[str, float | None] | None, LAYER_CHANGE] = None
    unchanged: Annotated[Literal[True] | None, UNCHANGED] = None
    chance: Annotated[Chance | None, CHANCE] = None  # of values
    # by cosine, what 99 % of mismatched vectors of the layer stay under
    mismatched: Annotated[dict[str, float], PAGE_ONLY] = field(default_factory=dict)
    rows: list[NeuronRow]

    def about(self) -> dict[str, Any]:
        return _about(self)

    def tables(self) -> list[Table]:
        title = f"{self.model}, layer {self.layer}, page {self.page} of {self.pages} ({self.lens})"
        if by_chance := self.shuffled:
            title += f"; shuffled, similarity is {by_chance['similarity']:.3f} and {by_chance['similarity_bottom']:.3f}"
        if self.unchanged:
            title += "; nothing in this layer changed"
        columns = (*LAYER_COLUMNS, *(CHANGE_COLUMNS if self.minus else ()))
        changes = [column.name for column in CHANGE_COLUMNS if self.minus]
        return [
            csv_order("neuron", "norm", "coherence", "similarity", "similarity_bottom", "z", "class", *changes),
            Table(title, tuple(_with_agreeing_ends(columns)), self.rows, "people"),
            Table("", columns, self.rows, "programs"),
        ]

    def neuron_table(self, stored: Stored) -> Table:
        """Make the table of the page, with those columns that the index has values for."""
        needed = {"key": "ff_key", "value": "ff_value", "norm": "ff_value", "coherence": "ff_value"}
        left_out = {name for name, kind in needed.items() if kind not in stored.kinds}
        left_out |= set() if stored.similarity else {"similarity", "similarity_bottom"}
        left_out |= set() if any(row["z"] is not None for row in self.rows) else {"z"}
        left_out |= set() if self.mismatched else {"class"}

        def link_to(row: NeuronRow) -> str:
            return link("neuron", self.model, self.layer, row["neuron"], lens=self.lens)

        neuron, *others = LAYER_COLUMNS
        if stored.difference:
            others = [replace(column, format=".3g") if column.name == "norm" else column for column in others]
            others += CHANGE_COLUMNS
        columns = (replace(neuron, kind="address", link=link_to), *others)
        return Table("", tuple(column for column in columns if column.name not in left_out), self.rows)

    @staticmethod
    def shows_bottom(row: NeuronRow) -> bool:
        """Return True if the bottom of the list of a neuron's value is shown, because the key's list is more similar to
        the bottom than to the top."""
        top, bottom = row["similarity"], row["similarity_bottom"]
        return top is not None and bottom is not None and bottom > top and bottom >= TELLING


@dataclass(frozen=True, slots=True, kw_only=True)
class LayerListsView(ViewOfModel):
    """All lists of a layer's neurons, token by token: the content of the layer's CSV if lists are asked for."""

    layer: int
    lens: str
    token: Token | None  # if given, only neurons whose key or value lists it
    neurons: tuple[int, ...]
    vectors: tuple[str, ...]  # names in VECTORS of those that are stored
    ends: tuple[str, ...]
    ids: Array  # (neurons, vectors, ends, k)
    scores: Array
    texts: Any  # texts by token id
    left_out: frozenset[int]  # tokens to leave out; the others keep their ranks

    def rows(self) -> Iterator[dict[str, Any]]:
        """Yield a row for each token of each list."""
        for neuron, of_neuron, scores_of_neuron in zip(self.neurons, self.ids, self.scores, strict=True):
            for vector, of_vector, scores_of_vector in zip(self.vectors, of_neuron, scores_of_neuron, strict=True):
                for end, ids, scores in zip(self.ends, of_vector.tolist(), scores_of_vector.tolist(), strict=True):
                    for rank, (token, score) in enumerate(zip(ids, scores, strict=True), 1):
                        if token in self.left_out:
                            continue
                        entry = {"id": token, "token": self.texts[token]}
                        yield {
                            "neuron": neuron, "vector": vector, "end": end, "rank": rank, "token": entry,
                            "score": score,
                        }  # fmt: skip

    def about(self) -> dict[str, Any]:
        return _about(self)

    def tables(self) -> list[Table]:
        columns = (
            Column("neuron"), Column("vector"), Column("end"), Column("rank"), Column("token", "token"),
            Column("score"),
        )  # fmt: skip
        return [Table("", columns, self.rows(), "programs")]


def _about(view: LayerView | LayerListsView) -> dict[str, Any]:
    only = {"listing": view.token["token"], "listing_id": view.token["id"]} if view.token else {}
    return {"model": view.model, "layer": view.layer, "lens": view.lens, **only}


def _with_agreeing_ends(columns: Sequence[Column]) -> Iterator[Column]:
    """Yield the columns for people: of the value's list only the end that is more similar to the key's list, and the
    name of that end."""
    shows_bottom = LayerView.shows_bottom
    for column in columns:
        if column.name == "value":
            yield replace(column, get=lambda row: row["value_bottom" if shows_bottom(row) else "value"])
            yield Column("end", get=lambda row: "bottom" if shows_bottom(row) else "top")
        else:
            yield column


def layer(site: ModelSite, at: LayerAt, ask: LayerArguments) -> LayerView | LayerListsView:
    """The neurons of a layer as a table: first tokens of key and value, norm, coherence, similarity.

    With `k` or `ends`, a CSV holds all lists of these neurons instead: a row for each token, with its score, as the CSV
    of each neuron has.
    """
    index, lens, token = site.index, ask.lens, ask.token
    lists = ask.k is not None or ask.ends is not None
    if lists and site.format != "csv":
        raise BadRequest("k and ends are for the CSV of a layer, which then holds all its lists: add .csv to the path")
    if isinstance(token, str):
        named = {**dict(ask), "token": token_named(index, token), "page": 1}
        raise Moved(link("layer", index.manifest.model, at.layer, **named))
    k = list_length(index, ask.k, index.manifest.k, index.manifest.k)
    neurons, shard = _ordered_neurons(index, at.layer, ask, token), index.shard(at.layer)
    if lists:
        return _lists(site, at, ask, neurons.tolist(), k)
    page, size = site.window(ask.page, site.settings.layer_rows)
    difference, kinds = index.stored.difference, index.stored.weight_kinds
    return LayerView(
        **of_index(index),
        layer=at.layer,
        lens=lens,
        sort=ask.sort,
        token=None if token is None else token_of(index.tokens, token),
        page=page,
        pages=count_pages(len(neurons), page, size),
        total=len(neurons),
        share_15=_share_of_notable(shard, lens) if index.stored.similarity else None,
        shuffled=shuffled(shard, "ff", lens) if index.stored.similarity else None,
        histogram=_histogram(shard, lens) if index.stored.similarity else None,
        min_similarity=ask.min_similarity,
        max_similarity=ask.max_similarity,
        change=layer_changes(shard, kinds) if difference else None,
        unchanged=True if difference and is_unchanged(shard, kinds) else None,
        chance=index.chance("ff_value", lens),
        mismatched=mismatched(index, at.layer),
        rows=_rows(index, shard, lens, neurons[page_slice(page, size)], site.left_out(lens)),
    )


def _histogram(shard: Shard, lens: str) -> list[SimilarityBin]:
    low = np.arange(SIMILARITY_BINS) / SIMILARITY_BINS
    neurons, by_chance = (
        np.bincount(np.searchsorted(low.astype(np.float32), of_all.max(axis=1), "right") - 1, minlength=len(low))
        for of_all in (shard.all_similarities("ff", lens), shard.all_shuffled("ff", lens))
    )
    ends = zip(low.tolist(), [*low[1:].tolist(), None], neurons.tolist(), by_chance.tolist(), strict=True)
    return [{"min_similarity": a, "max_similarity": b, "neurons": n, "shuffled": by} for a, b, n, by in ends]


def _share_of_notable(shard: Shard, lens: str) -> float:
    return float((shard.all_similarities("ff", lens).max(axis=1) >= NOTABLE).mean())


def _lists(site: ModelSite, at: LayerAt, ask: LayerArguments, neurons: list[int], k: int) -> LayerListsView:
    """Read the first k entries of each list of these neurons."""
    index, lens, token = site.index, ask.lens, ask.token
    vectors = tuple(name for name in VECTORS if f"ff_{name}" in index.stored.kinds)
    which = [(f"ff_{name}", neuron) for neuron in neurons for name in vectors]
    empty = np.empty((0, len(ENDS), index.manifest.k))
    ids, scores = index.shard(at.layer).vectors(which, lens) if which else (empty, empty)  # (neurons * vectors, E, K)
    chosen = (ask.ends,) if ask.ends in ENDS else ENDS
    of_ends = [ENDS.index(end) for end in chosen]
    shape = len(neurons), len(vectors), len(ENDS), ids.shape[-1]
    return LayerListsView(
        **of_index(index),
        layer=at.layer,
        lens=lens,
        token=token_of(index.tokens, token) if isinstance(token, int) else None,
        neurons=tuple(neurons),
        vectors=vectors,
        ends=tuple(chosen),
        ids=ids.reshape(shape)[:, :, of_ends, :k],
        scores=scores.reshape(shape)[:, :, of_ends, :k],
        texts=index.tokens.texts,
        left_out=site.left_out(lens),
    )


def _ordered_neurons(index: Index, layer: int, ask: LayerArguments, token: int | None) -> Array:
    """Return the neurons of the table in its order: with a token, only those whose key or value lists it."""
    lens, sort = ask.lens, ask.sort
    position("sort", sort.removeprefix("-"), DIFFERENCE_SORTS if index.stored.difference else SORTS)
    check_lens(index, lens)
    check_kinds(index, *_needed(index, sort))
    shard, kinds = index.shard(layer), [kind for kind in CHANGED if kind in index.stored.kinds]
    chosen: Array = np.arange(index.shape.d_mlp)
    if token is not None:  # only the neurons whose key or value lists it, at either end
        found = look_up_in_layer(index, layer, token, lens, kinds)
        chosen = np.unique(np.concatenate([listings.index for listings in found.values()]))
    if ask.above:
        check_kinds(index, "ff_value")
        chosen = chosen[above_chance(index, "ff_value", lens, known_z(index, layer, "ff_value", lens)[chosen])]
    if ask.of_class:
        chosen = chosen[of_class(index, layer, ask.of_class)[chosen]]
    low, high = ask.min_similarity, ask.max_similarity
    if low is not None or high is not None:
        check_kinds(index, *_needed(index, "similarity"))
        similarities = shard.all_similarities("ff", lens).max(axis=1)[chosen]
        below = similarities < np.float32(np.inf if high is None else high)
        chosen = chosen[(similarities >= np.float32(low or 0)) & below]
    return chosen[_order(index, shard, chosen, lens, sort, kinds)]


def _all_z(index: Index, layer: int, lens: str) -> Floats:
    """Return z of the first token of each neuron's value, (d_mlp,); NaN where it is not stored."""
    both = index.all_z(layer, "ff_value", lens)
    return np.full(index.shape.d_mlp, np.nan, np.float32) if both is None else both[:, 0]


def _needed(index: Index, sort: str) -> tuple[str, ...]:
    """Return the kinds of vectors of which at least one must be stored to sort the table by `sort`."""
    match sort.removeprefix("-"):
        case "norm" | "coherence" | "z":
            return ("ff_value",)
        case "similarity":
            return ("ff_key",) if "ff_value" in index.stored.kinds else ("ff_value",)
    return ("ff_key", "ff_value")


def _order(index: Index, shard: Shard, chosen: Array, lens: str, sort: str, kinds: Sequence[str]) -> Array:
    """Return the order of the chosen neurons. Undefined numbers come last in both directions, and neurons with equal
    numbers are in the order of their own. If sorted by change, a neuron counts by the vector of these `kinds` that
    changed most."""
    by, reverse = sort.removeprefix("-"), sort.startswith("-")
    if by == "neuron":
        return np.arange(len(chosen))[:: -1 if reverse else 1]
    readers: dict[str, Callable[[], Floats]] = {
        "norm": lambda: shard.all_norms("ff_value"),
        "coherence": lambda: shard.all_coherences("ff_value", lens),
        "similarity": lambda: shard.all_similarities("ff", lens).max(axis=1),  # the larger similarity of the two ends
        "z": lambda: known_z(index, shard.layer, "ff_value", lens),
        # the larger change of key and value
        "change": lambda: np.fmax.reduce([vector_changes(shard, kind) for kind in kinds]),
    }
    numbers = readers[by]()[chosen]
    return np.argsort(numbers if reverse else -numbers, kind="stable")


def _rows(index: Index, shard: Shard, lens: str, neurons: Array, hubs: frozenset[int]) -> list[NeuronRow]:
    keys, values, bottoms = (
        first_tokens(shard, kind, neurons, lens, ROW_TOKENS, hubs, end) if kind in index.stored.kinds else repeat(None)
        for kind, end in (("ff_key", "top"), ("ff_value", "top"), ("ff_value", "bottom"))
    )
    norms, coherences = _value_columns(index, shard, lens, neurons)
    with_top, with_bottom = _similarities(index, shard, lens, neurons)
    z, cosines = _all_z(index, shard.layer, lens)[neurons].tolist(), index.stats(shard.layer, "ff.cosines")
    classes = repeat(None) if cosines is None else cosines_as_data(index, cosines[neurons])
    columns = zip(
        neurons.tolist(), keys, values, bottoms, norms, coherences, with_top, with_bottom, z, classes, strict=False
    )
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
            "z": finite(z_of_value),
            "cosines": both,
        }
        for neuron, key, value, bottom, norm, coherence, similarity, similarity_bottom, z_of_value, both in columns
    ]
    if index.stored.difference:
        _add_changes(index, shard, rows, neurons)
    return rows


def _add_changes(index: Index, shard: Shard, rows: Sequence[NeuronRow], neurons: Array) -> None:
    """Add to the rows how much keys and values changed; a vector that did not change gets no tokens."""
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
    """Return, for the values (output vectors) of these neurons, their norms and coherences: how similar the first
    tokens of each list are."""
    if "ff_value" not in index.stored.kinds:
        return repeat(None), repeat(None)
    norms = shard.all_norms("ff_value")[neurons]
    for wrong in np.flatnonzero(~(np.isfinite(norms) & (norms >= 0)))[:1].tolist():
        shard.vector("ff_value", int(neurons[wrong]), lens)  # raises an error that says what is wrong
    return norms.tolist(), shard.all_coherences("ff_value", lens)[neurons].tolist()


def _similarities(
    index: Index, shard: Shard, lens: str, neurons: Array
) -> tuple[Iterable[float | None], Iterable[float | None]]:
    """Return the similarities of the tops of these neurons' key lists with the tops and with the bottoms of their value
    lists."""
    if not index.stored.similarity:
        return repeat(None), repeat(None)
    similarities = shard.all_similarities("ff", lens)[neurons]
    for wrong in np.flatnonzero(~((similarities >= 0) & (similarities <= 1)).all(axis=1))[:1].tolist():
        shard.similarity(int(neurons[wrong]), lens)  # raises an error that says what is wrong
    with_top, with_bottom = similarities.T.tolist()
    return with_top, with_bottom


LAYER: Page[LayerAt, LayerArguments, ViewOfModel] = Page(
    name="layer", title="Layer {layer}", at=LayerAt, arguments=LayerArguments, view=LayerView, make=layer,
    leads_to="The token is given as a word: goes to the address with its id",
    in_python="This is layer {layer}: model.neurons({layer}) has its lists",
)  # fmt: skip
