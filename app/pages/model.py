"""Show a model: what is worth reading first, and its layers and heads as maps; for a difference of two models, what
changed most."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from threading import Lock
from typing import Annotated, Any, Literal, NotRequired
from weakref import WeakKeyDictionary

import numpy as np
from pydantic import Field
from typing_extensions import TypedDict

from lexiscope.app.formats.table import CHANGE, MATRIX, SCORE, Column, Table, change_of
from lexiscope.app.html.numbers import percent
from lexiscope.app.library.checks import for_visitors
from lexiscope.app.library.library import architecture_name
from lexiscope.app.lists.checks import finite
from lexiscope.app.lists.difference import LAYER_CHANGE, head_changes, is_unchanged, layer_changes, vector_changes
from lexiscope.app.lists.kept_tokens import (
    ALL_TOKENS,
    KeptTokens,
    entries_to_read,
    first_tokens,
    hubs_of,
    without_pairs,
)
from lexiscope.app.lists.readable import INDISTINCT, FreshWords, readable
from lexiscope.app.lists.vectors import NOT_STORED, SUBHEAD_KINDS, UNCHANGED
from lexiscope.app.lists.view import OF_DIFFERENCE, Token, TokenPair, ViewOfModel, of_index, token_pairs, tokens_of
from lexiscope.app.lists.worth import ABOVE, CLASS_SHARES, class_shares, shares_above
from lexiscope.app.lists.worth_reading import (
    CARD_TOKENS,
    HEAD_LENS,
    HEAD_PRESET,
    NAMEABLE,
    HeadCard,
    NeuronCard,
    head_card,
    head_lens,
    largest_cards,
    worth_reading,
)
from lexiscope.app.pages.page import Address, AnyPreset, LensArguments, ModelSite, Page
from lexiscope.precompute.errors import BadRequest, IndexFault, NotFound
from lexiscope.precompute.index.index import Index
from lexiscope.precompute.index.layer.shard import Shard
from lexiscope.precompute.index.manifest import EmbeddingChange
from lexiscope.precompute.index.not_stored import check_lens
from lexiscope.precompute.index.origin import public_source
from lexiscope.precompute.index.tensor_file import Array, Floats
from lexiscope.precompute.shape import DIRECTION_KINDS, ENDS, MATRICES

NEURON_KINDS = ("ff_key", "ff_value")


class SubheadCard(TypedDict):
    layer: int
    head: int  # if heads share a vector, the first of them
    subhead: int
    kind: str
    change: float | None
    number: float  # coherence
    end: str
    tokens: list[Token]


@dataclass(frozen=True)
class ChangedMost:
    """The vectors and heads that changed most and that people can read; None if they are not stored."""

    neurons: tuple[NeuronCard, ...] | None  # the most readable by their keys, then the most readable by their values
    subheads: tuple[SubheadCard, ...] | None
    heads: tuple[HeadCard, ...] | None


@dataclass(frozen=True)
class _ChangedVector:
    """A vector that changed between two models, and whose list people can read."""

    kind: str
    layer: int
    row: int
    end: str
    change: float | None
    number: float
    tokens: list[Token]


def changed_most(
    index: Index, shards: Mapping[int, Shard], lens: str, left_out: frozenset[int] = frozenset()
) -> ChangedMost:
    """Choose the vectors and heads that changed most between two models and that people can read, and leave
    some tokens out of those shown."""
    stored = index.stored
    neurons = [_clearest(index, shards, (kind,), lens, left_out) for kind in NEURON_KINDS if kind in stored.kinds]
    kinds = [kind for kind in SUBHEAD_KINDS.values() if kind in stored.kinds]
    subheads = _clearest(index, shards, kinds, lens, left_out)
    return ChangedMost(
        neurons=tuple(_neuron(found) for of_kind in neurons for found in of_kind) if neurons else None,
        subheads=tuple(_subhead(index, found) for found in subheads) if stored.subheads else None,
        heads=_heads(index, shards) if stored.pairs else None,
    )


def _clearest(
    index: Index, shards: Mapping[int, Shard], kinds: Sequence[str], lens: str, left_out: frozenset[int]
) -> tuple[_ChangedVector, ...]:
    """Return the vectors with the largest |Δ| times coherence (similarity of the list's tokens). The |Δ| of each kind
    of vector is divided by its median, so that several kinds can be compared."""
    fresh = FreshWords(readable(index))
    changes = {(kind, layer): vector_changes(shard, kind) for kind in kinds for layer, shard in shards.items()}
    coherences = {
        (kind, layer, end): shard.all_coherences(kind, lens, end)
        for kind in kinds
        for layer, shard in shards.items()
        for end in ENDS
    }
    moved = {kind: _moved({layer: shard.all_norms(kind) for layer, shard in shards.items()}) for kind in kinds}
    numbers = {
        at: np.where((moved[at[0]][at[1]] > 0) & (coherence < INDISTINCT), moved[at[0]][at[1]] * coherence, np.nan)
        for at, coherence in coherences.items()
    }

    def card_of(at: tuple[str, int, str], row: int, _: float) -> _ChangedVector | None:
        kind, layer, end = at
        (ids,) = first_tokens(shards[layer], kind, np.array([row]), lens, CARD_TOKENS, left_out, end)
        if not fresh.take_if_all_words(ids):
            return None
        coherence, change = float(coherences[at][row]), finite(float(changes[kind, layer][row]))
        return _ChangedVector(kind, layer, row, end, change, coherence, tokens_of(index.tokens, ids))

    return largest_cards(card_of, numbers)


def _moved(norms: Mapping[int, Floats]) -> dict[int, Floats]:
    """Return by layer the |Δ| of each vector divided by the median |Δ| of all vectors that changed."""
    changed = np.concatenate([np.empty(0), *norms.values()])
    usual = np.median(changed[changed > 0]) if changed.any() else 1.0
    return {layer: of_layer / usual for layer, of_layer in norms.items()}


def _heads(index: Index, shards: Mapping[int, Shard]) -> tuple[HeadCard, ...]:
    """Return the heads with the largest |Δ| times readability (from 0 to 1, how well their pairs tell what they do), of
    those that are readable enough."""
    fresh, lens = FreshWords(readable(index)), head_lens(index)
    readabilities: dict[tuple[int, str], Array] = {}
    numbers: dict[tuple[int, str], Array] = {}
    for matrix in MATRICES:
        moved = _moved({layer: shard.heads.all_matrix_norms(matrix)[0] for layer, shard in shards.items()})
        for layer, shard in shards.items():
            of_heads = readabilities[layer, matrix] = shard.heads.all_readabilities(matrix, lens, HEAD_PRESET)
            wanted = (moved[layer] > 0) & (of_heads >= NAMEABLE)
            numbers[layer, matrix] = np.where(wanted, moved[layer] * of_heads, np.nan)

    def card(at: tuple[int, str], head: int, _: float) -> HeadCard | None:
        made = head_card(index, fresh, *at, head, float(readabilities[at][head]), lens)
        return made and {**made, "change": finite(float(head_changes(shards[at[0]], at[1])[head]))}

    return largest_cards(card, numbers)


def _neuron(vector: _ChangedVector) -> NeuronCard:
    return {
        "layer": vector.layer, "neuron": vector.row, "number": vector.number, "end": vector.end,
        "tokens": vector.tokens, "kind": vector.kind, "change": vector.change,
    }  # fmt: skip


def _subhead(index: Index, vector: _ChangedVector) -> SubheadCard:
    head, subhead = index.shape.head_and_subhead(vector.kind, vector.row)
    return {
        "layer": vector.layer, "head": head, "subhead": subhead, "kind": vector.kind, "change": vector.change,
        "number": vector.number, "end": vector.end, "tokens": vector.tokens,
    }  # fmt: skip


READABLE_PAIRS = 3  # how many readable pairs a cell of the maps shows
COHERENCE_STEPS = 10  # number of steps in the histogram of coherences, from 0 to 1


class ModelAt(Address):
    pattern = ""


class ModelArguments(LensArguments):
    preset: AnyPreset = "all"
    head_map: Annotated[
        Literal["readability", "coherence", "change"],
        Field(
            alias="map",
            description="In the page for people: what colours the maps of heads; `change` is of differences only",
        ),
    ] = "readability"


@dataclass(frozen=True, slots=True, kw_only=True)
class Provenance:
    """The origin of the lists. A link shows the same lists as long as none of these fields changes."""

    name: str  # the public name of the model; "" if it is not known
    source: str
    revision: str
    origin: str  # the origin of the weights, as text for people
    weights_sha256: str
    build: str
    k: int
    pairs: Annotated[int, Field(description="Entries of a list of pairs; 0 where none are stored")]
    kinds: Annotated[tuple[str, ...], Field(description="The kinds of vectors that are stored")]
    lenses: Annotated[tuple[str, ...], Field(description="The lenses under which lists are stored")]


AGREEING: Any = Field(description="null where the index was built without it (`--kinds`), and of a difference")
CELL_CHANGE: Any = Field(description="Only of a difference: |Δ| / |base| of its matrix; null where the base is 0")

EMBEDDING_CHANGE: Any = Field(
    exclude_if=lambda value: value is None,
    description="Only of a difference: |Δ| / |base| of W_E, and of W_U where the base has one of its own. Lists are "
    "read through the base's. Missing where the index was built before this was recorded",
)


class HeadCell(TypedDict):
    head: int
    coherence: float | None
    first: TokenPair | None  # the best pair
    readability: float | None  # readability of the head's pairs of words, always under lens cosine
    readable: list[TokenPair]  # the first pairs of words
    change: Annotated[NotRequired[float | None], CELL_CHANGE]


@dataclass(frozen=True, slots=True, kw_only=True)
class LayerRow:
    layer: int
    ready: bool
    fault: str | None = None
    # How many values of the layer's neurons have a coherence in each of ten equal steps from 0 to 1.
    coherence: tuple[int, ...] = ()
    vo: tuple[HeadCell, ...] = ()  # empty if the layer is not ready, or the index stores no pairs (see provenance)
    qk: tuple[HeadCell, ...] = ()
    above: Annotated[dict[str, float] | None, ABOVE] = None
    classes: Annotated[dict[str, float] | None, CLASS_SHARES] = None
    change: Annotated[dict[str, float | None] | None, LAYER_CHANGE] = None
    unchanged: Annotated[Literal[True] | None, UNCHANGED] = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelView(ViewOfModel):
    lens: str
    preset: str  # the preset of the pairs in the maps
    architecture: str  # the model_type of the model's config.json
    architecture_name: str  # the name of the architecture for people
    causal: bool  # False for an encoder
    d_model: int
    d_head: int
    d_mlp: int
    d_vocab: int
    n_layers: int
    n_heads: int
    n_kv_heads: int
    provenance: Provenance
    rows: tuple[LayerRow, ...]  # the layers, top layer first
    # the neurons with the most coherent values; for a difference of two models, keys too
    neurons: Annotated[tuple[NeuronCard, ...] | None, NOT_STORED]
    # The neurons with the most similar keys and values; the tokens are the value's.
    agreeing: Annotated[tuple[NeuronCard, ...] | None, AGREEING]
    heads: Annotated[tuple[HeadCard, ...] | None, NOT_STORED]
    subheads: Annotated[tuple[SubheadCard, ...] | None, OF_DIFFERENCE] = None
    embedding_change: Annotated[EmbeddingChange | None, EMBEDDING_CHANGE] = None

    def hottest(self, number: Literal["readability", "coherence", "change"]) -> float:
        """Return the largest value of a number in the maps, which is shown in the darkest colour."""
        numbers = [cell.get(number) for row in self.rows for cell in (*row.vo, *row.qk)]
        return max((value for value in numbers if value), default=1.0)

    @property
    def largest_change(self) -> float:
        """Return the largest change, over all layers, of the vectors of one kind in a layer."""
        return max((value for row in self.rows for value in (row.change or {}).values() if value), default=1.0)

    def worth_tables(self) -> list[Table]:
        """Make tables of the shares by layer of vectors above chance, and of neurons by class."""
        title = f"{self.model}, vectors above the line of chance ({self.lens})"
        tables = _shares(title, self.rows, "above"), _shares(f"{self.model}, neurons by class", self.rows, "classes")
        return [table for table in tables if table.rows]

    def about(self) -> dict[str, Any]:
        return {"model": self.model, "lens": self.lens, "preset": self.preset}

    def tables(self) -> list[Table]:
        layer, head, matrix = Column("layer", "number"), Column("head", "number"), Column("matrix")

        def neurons(title: str, number: str, cards: Sequence[NeuronCard], *more: Column) -> Table:
            columns = (layer, Column("neuron", "number"), Column("number", "ratio", heading=number), *more)
            title = f"{self.model}, {title} ({self.lens})"
            return Table(title, (*columns, Column("tokens", "tokens")), cards, "people")

        head_lens = self.heads[0]["lens"] if self.heads else HEAD_LENS
        heads = (layer, head, matrix, Column("number", "ratio", heading="coherence"), Column("pairs", "pairs"))
        pair = (Column("from", "token"), Column("to", "token"), SCORE)
        cells = [
            {"layer": row.layer, "matrix": name, **cell, **(cell["first"] or {"from": None, "to": None, "score": None})}
            for row in self.rows
            for name, of_matrix in (("vo", row.vo), ("qk", row.qk))
            for cell in of_matrix
        ]
        if self.minus:
            return [*_change_tables(self, head_lens, cells), *self.worth_tables()]
        return [
            neurons("most coherent neurons", "coherence", self.neurons or ()),
            neurons("neurons whose key and value agree", "similarity", self.agreeing or (), Column("end")),
            Table(f"{self.model}, most coherent heads ({head_lens}, {HEAD_PRESET})", heads, self.heads or (), "people"),
            Table("", (layer, matrix, head, Column("coherence", "ratio"), *pair), cells, "programs"),
            *self.worth_tables(),
        ]


def _shares(title: str, rows: Sequence[LayerRow], field: Literal["above", "classes"]) -> Table:
    """Make a table with a row for each layer that has such shares, and a column for each of their names."""
    by_layer: list[dict[str, Any]] = [
        {"layer": row.layer, **{name: percent(share) for name, share in shares.items()}}
        for row in rows
        if (shares := getattr(row, field))
    ]
    return Table(title, tuple(Column(name, css="n") for name in by_layer[0]) if by_layer else (), by_layer, "people")


def _change_tables(view: ModelView, head_lens: str, cells: Sequence[dict[str, Any]]) -> list[Table]:
    """Make tables of what changed between two models: the vectors and heads that changed most and can be read, the
    change of each kind of vector in a layer and of the embedding, and in CSV also the change of each head."""
    layer, head = Column("layer", "number"), Column("head", "number")
    words = (
        Column("kind"), CHANGE, Column("number", "ratio", heading="coherence"), Column("end"),
        Column("tokens", "tokens"),
    )  # fmt: skip
    neurons = (layer, Column("neuron", "number"), *words)
    subheads = (layer, head, Column("subhead", "number"), *words)
    readability = Column("number", "ratio", heading="readability")
    heads = (layer, head, MATRIX, CHANGE, readability, Column("pairs", "pairs"))
    by_layer = [{"layer": row.layer, "change": row.change} for row in view.rows if row.change]
    by_kind = [
        {"layer": row.layer, "kind": kind, "change": change}
        for row in view.rows
        for kind, change in (row.change or {}).items()
    ]
    first_pair = (Column("from", "token"), Column("to", "token"), Column("score", "number"))
    most = f"{view.minus}: what changed most,"
    return [
        Table(f"{most} neurons ({view.lens})", neurons, view.neurons or (), "people"),
        Table(f"{most} subheads ({view.lens})", subheads, view.subheads or (), "people"),
        Table(f"{most} heads ({head_lens}, {HEAD_PRESET})", heads, view.heads or (), "people"),
        Table(
            f"{view.minus}: |Δ|/|base| by layer and kind",
            (layer, *(change_of(kind, kind) for kind in view.provenance.kinds if kind not in DIRECTION_KINDS)),
            by_layer,
            "people",
        ),
        Table(
            f"{view.minus}: |Δ|/|base| of the embedding, which lists leave out",
            (MATRIX, CHANGE),
            [{"matrix": name, "change": change} for name, change in (view.embedding_change or {}).items()],
            says_nothing_of=("lens", "preset"),
        ),
        Table("", (layer, MATRIX, head, Column("coherence", "ratio"), CHANGE, *first_pair), cells, "programs"),
        Table("", (layer, Column("kind"), CHANGE), by_kind, "programs", ("lens", "preset")),
    ]


_views: WeakKeyDictionary[Index, dict[tuple[str, str, bool, KeptTokens], ModelView]] = WeakKeyDictionary()
_views_lock = Lock()


def model(site: ModelSite, at: ModelAt, ask: ModelArguments) -> ModelView:  # noqa: ARG001
    """A model: what is worth reading first, and its layers and heads as maps."""
    if ask.head_map == "change" and not site.index.stored.difference:
        raise BadRequest(f"map = change: only differences have such a map, and {site.index.manifest.model} is a model")
    return read_model(site.index, ask.lens, ask.preset, site.hide_hubs, site.kept.of_pairs)


def read_model(
    index: Index, lens: str, preset: str = "all", without_hubs: bool = False, kept: KeptTokens = ALL_TOKENS
) -> ModelView:
    """Make the data of the model's page, and keep it as long as the index, because it takes reading all layers and most
    visits start here."""
    check_lens(index, lens)
    with _views_lock:
        views = _views.setdefault(index, {})
        key = lens, preset, without_hubs, kept
        if key not in views:
            left_out = kept.outside(index) | (hubs_of(index, lens) if without_hubs else frozenset())
            views[key] = _read_model(index, lens, preset, left_out)
        return views[key]


def _read_model(index: Index, lens: str, preset: str, left_out: frozenset[int]) -> ModelView:
    manifest, shape = index.manifest, index.shape
    rows: list[LayerRow] = []
    whole: dict[int, Shard] = {}
    for layer in reversed(range(shape.n_layers)):
        try:
            shard = index.shard(layer)
            rows.append(_row(index, shard, lens, preset, left_out))
            whole[layer] = shard
        except IndexFault as error:
            text = for_visitors(error, index.folder.parent)
            rows.append(LayerRow(layer=layer, ready=False, fault=text))
        except NotFound:
            rows.append(LayerRow(layer=layer, ready=False))
    if difference := index.stored.difference:
        most = changed_most(index, whole, lens, left_out)
        neurons, agreeing, heads = most.neurons, None, most.heads
    else:
        neurons, agreeing, heads = worth_reading(index, whole, lens, left_out)
    return ModelView(
        **of_index(index),
        lens=lens,
        preset=preset,
        architecture=shape.architecture,
        architecture_name=architecture_name(shape),
        causal=shape.causal,
        d_model=shape.d_model,
        d_head=shape.d_head,
        d_mlp=shape.d_mlp,
        d_vocab=shape.d_vocab,
        n_layers=shape.n_layers,
        n_heads=shape.n_heads,
        n_kv_heads=shape.n_kv_heads,
        provenance=provenance(index),
        rows=tuple(rows),
        neurons=neurons,
        agreeing=agreeing,
        heads=heads,
        subheads=most.subheads if difference else None,
        embedding_change=manifest.embedding_change,
    )


def provenance(index: Index) -> Provenance:
    manifest = index.manifest
    return Provenance(
        name=manifest.name,
        source=public_source(manifest.source, manifest.revision),
        revision=manifest.revision,
        origin=manifest.origin,
        weights_sha256=manifest.weights_sha256,
        build=manifest.build,
        k=manifest.k,
        pairs=manifest.pairs,
        kinds=manifest.stored.kinds,
        lenses=manifest.stored.lenses,
    )


def _row(index: Index, shard: Shard, lens: str, preset: str, left_out: frozenset[int]) -> LayerRow:
    coherence = shard.all_coherences("ff_value", lens) if "ff_value" in index.stored.kinds else np.empty(0)
    steps = np.clip(coherence[np.isfinite(coherence)] * COHERENCE_STEPS, 0, COHERENCE_STEPS - 1).astype(np.int64)
    stored, difference = index.stored, index.stored.difference
    cells = {matrix: _cells(index, shard, matrix, lens, preset, left_out) for matrix in stored.matrices}
    if difference:
        cells = {matrix: _with_changes(shard, matrix, cells.get(matrix, ())) for matrix in MATRICES}
    counts = tuple(np.bincount(steps, minlength=COHERENCE_STEPS).tolist()) if "ff_value" in index.stored.kinds else ()
    return LayerRow(
        layer=shard.layer,
        ready=True,
        coherence=counts,
        vo=cells.get("vo", ()),
        qk=cells.get("qk", ()),
        above=shares_above(index, shard.layer, lens),
        classes=class_shares(index, shard.layer),
        change=layer_changes(shard, stored.weight_kinds) if difference else None,
        unchanged=True if difference and is_unchanged(shard, stored.weight_kinds) else None,
    )


def _with_changes(shard: Shard, matrix: str, cells: Sequence[HeadCell]) -> tuple[HeadCell, ...]:
    """Return the cells of a map of heads with how much each head changed between two models, which is known even if
    token pairs are not stored."""
    changes = head_changes(shard, matrix).tolist()
    of_heads: Sequence[HeadCell] = cells or [
        {"head": head, "coherence": None, "first": None, "readability": None, "readable": []}
        for head in range(len(changes))
    ]
    return tuple(
        {**cell, "change": finite(change)} if change else {**cell, "first": None, "readable": [], "change": 0.0}
        for cell, change in zip(of_heads, changes, strict=True)
    )


def _cells(
    index: Index, shard: Shard, matrix: str, lens: str, preset: str, left_out: frozenset[int]
) -> tuple[HeadCell, ...]:
    """Make a cell of the map for each head. Only the first few pairs of a head are read, because there may be a
    thousand heads; some more are read if tokens are to be left out."""
    words = head_lens(index), HEAD_PRESET
    listed = _first_pairs(index, shard, matrix, lens, preset, entries_to_read(left_out, 2))
    readable = _first_pairs(index, shard, matrix, *words, READABLE_PAIRS)
    coherences = shard.heads.all_pair_coherences(matrix, lens, preset).tolist()
    readabilities = shard.heads.all_readabilities(matrix, *words).tolist()
    return tuple(
        {
            "head": head,
            "coherence": finite(coherences[head]),
            "first": next(without_pairs(listed[head], left_out), None),
            "readability": finite(readabilities[head]),
            "readable": readable[head],
        }
        for head in range(index.shape.n_heads)
    )


def _first_pairs(index: Index, shard: Shard, matrix: str, lens: str, preset: str, count: int) -> list[list[TokenPair]]:
    """Return the first token pairs of every head."""
    ids, scores, counts = (array.tolist() for array in shard.heads.first_pairs(matrix, lens, preset, count))
    return [
        token_pairs(index.tokens, of_head[:number], their_scores[:number])
        for of_head, their_scores, number in zip(ids, scores, counts, strict=True)
    ]


MODEL = Page(
    name="model", title="Layers and heads", at=ModelAt, arguments=ModelArguments, view=ModelView, make=model,
)  # fmt: skip
