"""Show the vectors of one kind over all layers: as a table to sort and filter, and as a fair sample, of which the
reader ticks what reads well. Numbers of all vectors are arrays; tokens are read only of those that are shown."""

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from math import sqrt
from typing import Annotated, Any, ClassVar, Literal, Self

import numpy as np
from pydantic import Field

from lexiscope.app.formats.table import Audience, Column, Table
from lexiscope.app.lists.checks import count_pages, finite, page_slice
from lexiscope.app.lists.kept_tokens import first_tokens
from lexiscope.app.lists.labels import LabelEntry
from lexiscope.app.lists.view import PAGE_ONLY, InHead, Token, ViewOfModel, in_head, of_index, tokens_of
from lexiscope.app.lists.worth import CHANCE, above_chance
from lexiscope.app.pages.page import Address, LensArguments, ModelSite, Page, PageNumber, VectorKind
from lexiscope.app.urls import link, vector
from lexiscope.precompute.errors import BadRequest
from lexiscope.precompute.index.index import Index
from lexiscope.precompute.index.layer.lists import Chance
from lexiscope.precompute.index.not_stored import check_kinds, check_lens
from lexiscope.precompute.index.parameter_names import vector_name
from lexiscope.precompute.index.tensor_file import Array
from lexiscope.precompute.live.wire.fields import split, typed
from lexiscope.precompute.live.wire.grammar import Layers
from lexiscope.precompute.shape import COMPARED, DIRECTION_KINDS

VECTOR = np.dtype("i8,i8,f4,f4,f4,f4")
VECTOR.names = ("layer", "index", "z", "similarity", "coherence", "norm")
ROW_TOKENS, SAMPLE_TOKENS = 8, 20  # how many tokens of a list a row shows
ROWS_AT_ONCE = 1000  # whose tokens are read together for a CSV
MOST_SAMPLED = 200
DEVIATIONS_95 = 1.959964  # of a normal distribution to either side: 95 % are within


class OfKindArguments(LensArguments):
    kind: Annotated[
        VectorKind, Field(description="The kind of vectors; if it is not given, `ff_value` or the first that is stored")
    ] = None  # type: ignore[assignment]  # only before with_lens sets it
    min_similarity: Annotated[
        float | None,
        Field(ge=0, le=1, description="Only of neurons or subheads whose two lists are at least so similar"),
    ] = None
    usual: ClassVar[Mapping[str, Any]] = {"lens": "dot", "kind": "ff_value", "layers": "all"}

    def with_lens(self, index: Index) -> Self:
        """Return the arguments with a lens and a kind."""
        usual = next((kind for kind in ("ff_value", *index.stored.kinds) if kind in index.stored.kinds), "ff_value")
        return super().with_lens(index).model_copy(update={"kind": self.kind or usual})


class VectorRow(InHead):
    layer: int
    index: int
    z: float | None
    similarity: Annotated[float | None, Field(description="The larger of both ends; null of kinds without a partner")]
    coherence: float | None
    norm: float | None
    top: list[Token]


@dataclass(frozen=True, slots=True, kw_only=True)
class OfKindView(ViewOfModel):
    kind: str
    lens: str
    min_similarity: float | None
    total: Annotated[int, Field(description="How many vectors there are of which these are")]
    chance: Annotated[Chance | None, CHANCE]
    missing: Annotated[list[int], Field(description="Layers that are not built, or cannot be read")]
    rows: list[VectorRow]

    def about(self) -> dict[str, Any]:
        return {"model": self.model, "kind": self.kind, "lens": self.lens}

    def table(
        self, title: str, rows: Iterable[VectorRow], n_tokens: int, *first: Column, numbers: Audience = "everybody"
    ) -> Table:
        """Make a table whose numbers are for some audience only."""
        columns = (
            Column("name", "address", vector_name, "where", link=lambda row: vector(self.model, row, lens=self.lens)),
            Column("layer", audience="programs"),
            Column("index", audience="programs"),
            Column("top", "tokens", count=n_tokens, page_heading="first tokens", css="many"),
            Column("z", "number", format=".1f", tip="z", sort="z", audience=numbers),
            Column("similarity", "number", tip="similarity", sort="similarity", audience=numbers),
            Column("coherence", "ratio", tip="coherence", sort="coherence", audience=numbers),
            Column("norm", "number", format=".3g", tip="norm", sort="norm", audience=numbers),
        )
        return Table(f"{self.model}, {self.kind} {title} ({self.lens})", (*first, *columns), rows)


def _read(site: ModelSite, ask: OfKindArguments, layers: tuple[int, ...] | None = None) -> tuple[Array, dict[str, Any]]:
    """Return the vectors to choose from (n,) as VECTOR, NaN for numbers that are not stored, and the fields of their
    view. Left out are those without a list: unchanged between two models, or directions that a head does not have."""
    index, kind, lens = site.index, ask.kind, ask.lens
    check_lens(index, lens)
    check_kinds(index, kind)
    compared = next((name for name in index.stored.compared if kind in COMPARED[name]), None)
    if ask.min_similarity is not None and not compared:
        raise BadRequest(f"min_similarity: lists of {kind} are compared with no others in this index")
    of_pairs = index.shape.rows(kind)  # the vector of each neuron or subhead; grouped heads share some
    wanted = range(index.shape.n_layers) if layers is None else layers
    shards = [shard for shard in index.usable_shards() if shard.layer in wanted]
    found: Array = np.zeros((len(shards), index.shape.count(kind)), VECTOR)
    found["z"] = found["similarity"] = np.nan
    for row, shard in zip(found, shards, strict=True):
        row["layer"], row["index"] = shard.layer, np.arange(len(row))
        row["norm"], row["coherence"] = shard.all_norms(kind), shard.all_coherences(kind, lens)
        if (z := index.all_z(shard.layer, kind, lens)) is not None:
            row["z"] = z[:, 0]
        if compared:
            row["similarity"] = 0
            np.maximum.at(row["similarity"], of_pairs, shard.all_similarities(compared, lens).max(axis=1))
    found = found.reshape(-1)
    if index.stored.difference or kind in DIRECTION_KINDS:
        found = found[found["norm"] > 0]
    if ask.min_similarity is not None:
        found = found[found["similarity"] >= np.float32(ask.min_similarity)]
    built = {shard.layer for shard in shards}
    return found, {
        **of_index(index), "kind": kind, "lens": lens, "min_similarity": ask.min_similarity,
        "chance": index.chance(kind, lens), "missing": [layer for layer in wanted if layer not in built],
    }  # fmt: skip


def _rows(site: ModelSite, ask: OfKindArguments, found: Array, n_tokens: int) -> Iterator[VectorRow]:
    index, tops = site.index, dict[int, list[int]]()
    for layer in np.unique(found["layer"]).tolist():
        at = np.flatnonzero(found["layer"] == layer)
        shard, left_out = index.shard(layer), site.left_out(ask.lens)
        tops |= zip(
            at.tolist(), first_tokens(shard, ask.kind, found["index"][at], ask.lens, n_tokens, left_out), strict=True
        )
    for number, (layer, row, *numbers) in enumerate(found.tolist()):
        z, similarity, coherence, norm = map(finite, numbers)
        yield {
            "layer": layer, "index": row, **in_head(index.shape, ask.kind, row), "z": z, "similarity": similarity,
            "coherence": coherence, "norm": norm, "top": tokens_of(index.tokens, tops[number]),
        }  # fmt: skip


class VectorsAt(Address):
    pattern = "vectors"


class VectorsArguments(OfKindArguments):
    sort: Annotated[Literal["z", "norm", "coherence", "similarity"], Field(description="By what, largest first")] = "z"
    above: Annotated[
        Literal["chance"] | None, Field(description="Only those whose z 99 % of random vectors stay under")
    ] = None
    page: PageNumber = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class VectorsView(OfKindView):
    sort: str
    above: str | None
    page: int
    pages: int
    every: Annotated[Iterable[VectorRow] | None, PAGE_ONLY]  # the rows of a CSV, read while it is written

    def tables(self) -> list[Table]:
        title = f"of all layers by {self.sort}, page {self.page} of {self.pages}"
        return [self.table(title, self.rows if self.every is None else self.every, ROW_TOKENS)]


def vectors(site: ModelSite, at: VectorsAt, ask: VectorsArguments) -> VectorsView:  # noqa: ARG001
    """All vectors of one kind, over all layers, by one of their numbers."""
    found, common = _read(site, ask)
    if ask.above:
        found = found[above_chance(site.index, ask.kind, ask.lens, found["z"])]
        without = [at for at in site.index.layers if site.index.all_z(at, ask.kind, ask.lens) is None]
        common["missing"] = sorted({*common["missing"], *without})
    found = found[np.argsort(-found[ask.sort], kind="stable")]  # those without the number come last
    page, size = site.window(ask.page, site.settings.layer_rows)
    blocks = (found[start : start + ROWS_AT_ONCE] for start in range(0, len(found), ROWS_AT_ONCE))
    return VectorsView(
        **common,
        sort=ask.sort,
        above=ask.above,
        page=page,
        pages=count_pages(len(found), page, size),
        total=len(found),
        rows=[*_rows(site, ask, found[page_slice(page, size)], ROW_TOKENS)] if size else [],
        every=None if size else (row for block in blocks for row in _rows(site, ask, block, ROW_TOKENS)),
    )


def _parse_good(text: str) -> tuple[int, ...]:
    if not all(re.fullmatch("[0-9]{1,3}", number) for number in split(text)):
        raise BadRequest(f"good = {text[:100]!r}: write the numbers of rows, such as 1,3, or 0 where none reads well")
    return tuple(sorted({int(number) for number in split(text)}))


Good = Annotated[tuple[int, ...], *typed(_parse_good, lambda numbers: ",".join(map(str, numbers)), several=True)]


class SampleAt(Address):
    pattern = "sample"


class SampleArguments(OfKindArguments):
    layers: Annotated[Layers, Field(description="Layers to draw from: `9-11`, `0,2,5` or `all`")] = None
    n: Annotated[int, Field(ge=1, le=MOST_SAMPLED, description="How many are drawn")] = 20
    seed: Annotated[int, Field(ge=0, lt=1 << 32, description="Another seed is another draw")] = 1
    good: Annotated[Good | None, Field(description="The rows that read well, numbered from 1; 0: none does")] = None


@dataclass(frozen=True, slots=True, kw_only=True)
class SampleView(OfKindView):
    layers: str
    n: Annotated[int, Field(description="How many are drawn; all, if there are fewer than asked for")]
    seed: int
    good: Annotated[list[int] | None, Field(description="Numbers of the rows that read well; null: nobody has said")]
    share: Annotated[float | None, Field(description="Of those that read well")]
    interval: Annotated[tuple[float, float] | None, Field(description="95 % interval of the share (Wilson)")]

    def tables(self) -> list[Table]:
        rows: list[Any] = [
            {"number": number, "good": None if self.good is None else int(number in self.good), **row}
            for number, row in enumerate(self.rows, 1)
        ]
        first = Column("number", "number", page_heading="#"), Column("good", page_heading="reads well")
        # people judge lists before they see numbers
        numbers: Audience = "programs" if self.good is None else "everybody"
        return [self.table(self.drawn, rows, SAMPLE_TOKENS, *first, numbers=numbers)]

    @property
    def drawn(self) -> str:
        similar = f", similarity from {self.min_similarity:g}" if self.min_similarity is not None else ""
        layers = "all layers" if self.layers == "all" else f"layers {self.layers}"
        return f"of {layers}{similar}: {self.n} drawn from {self.total:,}, seed {self.seed}"

    @property
    def result(self) -> str:
        if self.share is None or self.interval is None:
            return ""
        low, high = self.interval
        return f"{len(self.good or ())} of {self.n} read well, {self.share:.0%}, 95% interval {low:.0%} to {high:.0%}"

    def label_entries(self) -> list[LabelEntry]:
        names = ("lens", "kind", "min_similarity", "layers", "n", "seed")
        draw = {name: getattr(self, name) for name in names}
        address = link("sample", self.model, **draw, good=",".join(map(str, self.good or [0])))
        return [LabelEntry("", self.lens, title=f"{self.kind}: {self.result}", text=f"{self.drawn}. {address}")]


def sample(site: ModelSite, at: SampleAt, ask: SampleArguments) -> SampleView:  # noqa: ARG001
    """Random vectors of one kind with their lists: the same seed is the same draw for everybody, as long as the same
    layers are built."""
    if ask.layers and ask.layers[-1] >= site.index.shape.n_layers:
        raise BadRequest(f"layers: {site.index.manifest.model} has layers 0 to {site.index.shape.n_layers - 1}")
    found, common = _read(site, ask, ask.layers)
    n = min(ask.n, len(found))
    if ask.good and ask.good[-1] > n:
        raise BadRequest(f"good = {ask.good[-1]}: {n} vectors are drawn, numbered from 1")
    # The raw numbers of a bit generator stay the same in every numpy, and a longer draw begins with a shorter one.
    order = np.argsort(np.random.PCG64(ask.seed).random_raw(len(found)), kind="stable")
    good = None if ask.good is None or not n else [number for number in ask.good if number]
    return SampleView(
        **common,
        layers=ask.query()["layers"],
        total=len(found),
        n=n,
        seed=ask.seed,
        good=good,
        share=None if good is None else len(good) / n,
        interval=None if good is None else wilson(len(good), n),
        rows=[*_rows(site, ask, found[order[:n]], SAMPLE_TOKENS)],
    )


def wilson(k: int, n: int) -> tuple[float, float]:
    """Return the 95 % interval of a share of which k among n were seen (Wilson 1927)."""
    z2 = DEVIATIONS_95**2
    middle, half = (k + z2 / 2) / (n + z2), sqrt(z2 * k * (n - k) / n + z2 * z2 / 4) / (n + z2)
    return max(0.0, middle - half), min(1.0, middle + half)


VECTORS = Page(
    name="vectors", title="Vectors of all layers", at=VectorsAt, arguments=VectorsArguments, view=VectorsView,
    make=vectors, is_slow=True,
)  # fmt: skip
SAMPLE = Page(
    name="sample", title="A fair sample of vectors", at=SampleAt, arguments=SampleArguments, view=SampleView,
    make=sample, is_slow=True,
)  # fmt: skip
