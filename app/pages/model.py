"""A model's page: what is worth reading in it, and maps of its layers, heads and neurons by how well they read."""

from collections.abc import Sequence
from dataclasses import dataclass
from threading import Lock
from typing import Annotated, Any, Literal, NotRequired
from weakref import WeakKeyDictionary

import numpy as np
from pydantic import Field
from typing_extensions import TypedDict

from lexiscope.app.formats.table import CHANGE, MATRIX, SCORE, Column, Table
from lexiscope.app.library.checks import for_visitors
from lexiscope.app.library.library import architecture_name
from lexiscope.app.pages.page import Address, AnyPreset, LensArguments, ModelSite, Page
from lexiscope.app.views.changed_most import SubheadCard, changed_most
from lexiscope.app.views.checks import finite
from lexiscope.app.views.difference import LAYER_CHANGE, head_changes, is_unchanged, layer_changes, minus_of
from lexiscope.app.views.hubs import LOOKED_AT, hubs_of, without_hub_pairs
from lexiscope.app.views.tokens import OF_DIFFERENCE, TokenPair, ViewOfModel, token_pairs
from lexiscope.app.views.vectors import NOT_STORED, UNCHANGED
from lexiscope.app.views.worth_reading import HEAD_LENS, HEAD_PRESET, HeadCard, NeuronCard, head_lens, worth_reading
from lexiscope.precompute.errors import BadRequest, IndexFault, NotFound
from lexiscope.precompute.index.index import Index
from lexiscope.precompute.index.manifest_entries import EmbeddingChange
from lexiscope.precompute.index.not_stored import check_lens
from lexiscope.precompute.index.origin import public_source
from lexiscope.precompute.index.shard_reader import Shard
from lexiscope.precompute.shape import DIRECTION_KINDS, MATRICES

READABLE_PAIRS = 3  # of a cell of the maps
STEPS = 10  # of the histogram of coherences, from 0 to 1


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
    """Where the lists come from: a link shows the same lists as long as this is the same."""

    name: str  # what others call the model; "" if that is not known
    source: str
    revision: str
    origin: str  # the same for people
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
    readability: float | None  # of its pairs of words, lens cosine: whichever lens and preset the others are of
    readable: list[TokenPair]  # the first of these
    change: Annotated[NotRequired[float | None], CELL_CHANGE]


@dataclass(frozen=True, slots=True, kw_only=True)
class LayerRow:
    layer: int
    ready: bool
    fault: str | None = None
    coherence: tuple[int, ...] = ()  # of its neurons' values: how many in each of ten equal steps from 0 to 1
    vo: tuple[HeadCell, ...] = ()  # empty unless ready; all are where the index does not store them (provenance)
    qk: tuple[HeadCell, ...] = ()
    change: Annotated[dict[str, float | None] | None, LAYER_CHANGE] = None
    unchanged: Annotated[Literal[True] | None, UNCHANGED] = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelView(ViewOfModel):
    lens: str
    preset: str  # of the pairs in the maps
    architecture: str  # the model_type of its config.json
    architecture_name: str  # what people call it
    causal: bool  # False: an encoder
    d_model: int
    d_head: int
    d_mlp: int
    d_vocab: int
    n_layers: int
    n_heads: int
    n_kv_heads: int
    provenance: Provenance
    rows: tuple[LayerRow, ...]  # top layer first
    neurons: Annotated[tuple[NeuronCard, ...] | None, NOT_STORED]  # most coherent values; of a difference keys, too
    agreeing: Annotated[tuple[NeuronCard, ...] | None, AGREEING]  # key and value most alike; tokens of the value
    heads: Annotated[tuple[HeadCard, ...] | None, NOT_STORED]
    subheads: Annotated[tuple[SubheadCard, ...] | None, OF_DIFFERENCE] = None
    embedding_change: Annotated[EmbeddingChange | None, EMBEDDING_CHANGE] = None

    def hottest(self, number: Literal["readability", "coherence", "change"]) -> float:
        """The largest number in the maps: what their darkest cells stand for."""
        numbers = [cell.get(number) for row in self.rows for cell in (*row.vo, *row.qk)]
        return max((value for value in numbers if value), default=1.0)

    @property
    def largest_change(self) -> float:
        """The largest change of the vectors of a kind in a layer."""
        return max((value for row in self.rows for value in (row.change or {}).values() if value), default=1.0)

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
            return _change_tables(self, head_lens, cells)
        return [
            neurons("most coherent neurons", "coherence", self.neurons or ()),
            neurons("neurons whose key and value agree", "similarity", self.agreeing or (), Column("end")),
            Table(f"{self.model}, most coherent heads ({head_lens}, {HEAD_PRESET})", heads, self.heads or (), "people"),
            Table("", (layer, matrix, head, Column("coherence", "ratio"), *pair), cells, "programs"),
        ]


def _change_tables(view: ModelView, head_lens: str, cells: Sequence[dict[str, Any]]) -> list[Table]:
    """What changed most and can be read, how much each kind of a layer and the embedding changed, and, for programs,
    each head."""
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
            (layer, *(_entry("change", kind, kind) for kind in view.provenance.kinds if kind not in DIRECTION_KINDS)),
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


def _entry(field: str, key: str, name: str) -> Column:
    return Column(name, "number", get=lambda row: row[field][key])


_views: WeakKeyDictionary[Index, dict[tuple[str, str, bool], ModelView]] = WeakKeyDictionary()
_views_lock = Lock()


def model(site: ModelSite, at: ModelAt, ask: ModelArguments) -> ModelView:  # noqa: ARG001
    """A model: what is worth reading first, and its layers and heads as maps."""
    if ask.head_map == "change" and not site.index.stored.difference:
        raise BadRequest(f"map = change: only differences have such a map, and {site.index.manifest.model} is a model")
    return read_model(site.index, ask.lens, ask.preset, site.hide_hubs)


def read_model(index: Index, lens: str, preset: str = "all", without_hubs: bool = False) -> ModelView:
    """The view is kept as long as the index is: it looks at all layers, and everybody starts here."""
    check_lens(index, lens)
    with _views_lock:
        views = _views.setdefault(index, {})
        if (lens, preset, without_hubs) not in views:
            views[lens, preset, without_hubs] = _read_model(index, lens, preset, without_hubs)
        return views[lens, preset, without_hubs]


def _read_model(index: Index, lens: str, preset: str, without_hubs: bool) -> ModelView:
    manifest, shape = index.manifest, index.shape
    hubs = hubs_of(index, lens) if without_hubs else frozenset()
    rows: list[LayerRow] = []
    whole: dict[int, Shard] = {}
    for layer in reversed(range(shape.n_layers)):
        try:
            shard = index.shard(layer)
            rows.append(_row(index, shard, lens, preset, hubs))
            whole[layer] = shard
        except IndexFault as fault:
            fault_text = for_visitors(fault, index.folder.parent)
            rows.append(LayerRow(layer=layer, ready=False, fault=fault_text))
        except NotFound:
            rows.append(LayerRow(layer=layer, ready=False))
    if difference := index.stored.difference:
        most = changed_most(index, whole, lens, hubs)
        neurons, agreeing, heads = most.neurons, None, most.heads
    else:
        neurons, agreeing, heads = worth_reading(index, whole, lens, hubs)
    return ModelView(
        model=manifest.model,
        build=manifest.build,
        minus=minus_of(index),
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


def _row(index: Index, shard: Shard, lens: str, preset: str, hubs: frozenset[int]) -> LayerRow:
    coherence = shard.all_coherences("ff_value", lens) if "ff_value" in index.stored.kinds else np.empty(0)
    steps = np.clip(coherence[np.isfinite(coherence)] * STEPS, 0, STEPS - 1).astype(np.int64)
    stored, difference = index.stored, index.stored.difference
    cells = {matrix: _cells(index, shard, matrix, lens, preset, hubs) for matrix in stored.matrices}
    if difference:
        cells = {matrix: _with_changes(shard, matrix, cells.get(matrix, ())) for matrix in MATRICES}
    counts = tuple(np.bincount(steps, minlength=STEPS).tolist()) if "ff_value" in index.stored.kinds else ()
    return LayerRow(
        layer=shard.layer,
        ready=True,
        coherence=counts,
        vo=cells.get("vo", ()),
        qk=cells.get("qk", ()),
        change=layer_changes(shard, stored.weight_kinds) if difference else None,
        unchanged=True if difference and is_unchanged(shard, stored.weight_kinds) else None,
    )


def _with_changes(shard: Shard, matrix: str, cells: Sequence[HeadCell]) -> tuple[HeadCell, ...]:
    """Cells that say how much a head changed, which is known without its pairs, too."""
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
    index: Index, shard: Shard, matrix: str, lens: str, preset: str, hubs: frozenset[int]
) -> tuple[HeadCell, ...]:
    """A cell of each head. Only its first few pairs are read: there may be a thousand heads; more, to skip hubs."""
    words = head_lens(index), HEAD_PRESET
    listed = _first_pairs(index, shard, matrix, lens, preset, LOOKED_AT if hubs else 2)
    readable = _first_pairs(index, shard, matrix, *words, READABLE_PAIRS)
    coherences = shard.heads.all_pair_coherences(matrix, lens, preset).tolist()
    readabilities = shard.heads.all_readabilities(matrix, *words).tolist()
    return tuple(
        {
            "head": head,
            "coherence": finite(coherences[head]),
            "first": next(without_hub_pairs(listed[head], hubs), None),
            "readability": finite(readabilities[head]),
            "readable": readable[head],
        }
        for head in range(index.shape.n_heads)
    )


def _first_pairs(index: Index, shard: Shard, matrix: str, lens: str, preset: str, count: int) -> list[list[TokenPair]]:
    """The first pairs of every head."""
    ids, scores, counts = (array.tolist() for array in shard.heads.first_pairs(matrix, lens, preset, count))
    return [
        token_pairs(index.tokens, of_head[:number], their_scores[:number])
        for of_head, their_scores, number in zip(ids, scores, counts, strict=True)
    ]


MODEL = Page(
    name="model", title="Layers and heads", at=ModelAt, arguments=ModelArguments, view=ModelView, make=model,
)  # fmt: skip
