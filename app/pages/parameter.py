"""Show neurons, subheads and singular directions of heads: parameters whose vectors are read as words.

A neuron reads its key (and up, if neurons are gated) and writes its value. A subhead is one channel of a head, its
column of W_Q, W_K and W_V and its row of W_O. A direction is one singular direction of a head's two matrices: M = Σ_j
σ_j in_jᵀ out_j, so that VO's direction j reads `in` and writes `out`, σ_j times as long; QK's has a query and a key.
The directions of the two matrices are unrelated: they share a page only because they share a number.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated, Any, ClassVar

from pydantic import Field
from typing_extensions import TypedDict

from lexiscope.app.formats.png import Picture
from lexiscope.app.formats.table import Column, Table, both_ends, change_columns, constant
from lexiscope.app.lists.checks import VECTOR_ENTRIES, check_number, list_length
from lexiscope.app.lists.difference import check_can_run, size_text
from lexiscope.app.lists.kept_tokens import keep_vectors
from lexiscope.app.lists.labels import LABELS, LabelEntry, ShownLabel, labels_of, vector_entry
from lexiscope.app.lists.matches import Matches, matches_of, version_of_matches
from lexiscope.app.lists.notes import direction_note, neuron_note, subhead_note
from lexiscope.app.lists.similarity import Agreement, End, OfMatrices, Shuffled, agreement
from lexiscope.app.lists.vectors import (
    NEURON_KINDS,
    NOT_STORED,
    SHARE,
    SIDE_KINDS,
    SINGULAR,
    SUBHEAD_KINDS,
    Reading,
    Vector,
    VectorReading,
    shares,
    stored_rows,
    stored_vectors,
    vector_reading,
)
from lexiscope.app.lists.view import NOTE, OMIT_NONE, PAGE_ONLY, Token, ViewOfModel, of_index
from lexiscope.app.lists.worth import COSINES, Cosines, cosines_as_data, mismatched
from lexiscope.app.pages.page import Address, AnyReading, LensArguments, ModelSite, Page, entries_shown
from lexiscope.app.urls import PICTURE_FORMATS
from lexiscope.precompute.index.index import Index
from lexiscope.precompute.index.not_stored import check_lens
from lexiscope.precompute.index.tensor_file import Array
from lexiscope.precompute.live.wire.asks import ReadingAsk
from lexiscope.precompute.shape import FACTORS

MOST_TOKENS_READ_AGAIN = 100  # most tokens of a list that a worker may compute in another way
NEARLY = 0.01  # directions whose singular values differ by less than this share are easily mixed

AGREES: Any = Field(description="The end of the value that is more similar to the key's top; null where neither is")


class VectorArguments(LensArguments):
    k: Annotated[int | None, entries_shown(VECTOR_ENTRIES)] = None
    reading: AnyReading = None
    usual: ClassVar[Mapping[str, Any]] = {"lens": "dot", "k": VECTOR_ENTRIES}


class ParameterAt(Address):
    layer: Annotated[int, Field(ge=0, description="A layer, from 0", examples=[29])]

    def vectors(self, index: Index) -> dict[str, tuple[str, int]]:
        """Return the kind and row of each stored vector of the parameter, by its name on the page; raise NotFound or
        NotStored if there is none."""
        raise NotImplementedError


class NeuronAt(ParameterAt):
    pattern = "ff/{layer:number}/{neuron:number}"
    neuron: Annotated[int, Field(ge=0, description="A neuron of the layer, from 0", examples=[432])]

    def vectors(self, index: Index) -> dict[str, tuple[str, int]]:
        rows = stored_rows(index, NEURON_KINDS, self.neuron)
        index.shard(self.layer)
        check_number(index, "neuron", self.neuron, index.shape.d_mlp)
        return rows


class OfHeadAt(ParameterAt):
    head: Annotated[int, Field(ge=0, description="A head of the layer, from 0", examples=[2])]

    def rows(self, index: Index, kinds: Mapping[str, str], what: str, number: int) -> dict[str, tuple[str, int]]:
        """Return the kind of vector and the row of each vector of a subhead (channel) or a singular direction of the
        head."""
        rows = stored_rows(index, kinds, self.head, number)
        index.shard(self.layer)
        check_number(index, "head", self.head, index.shape.n_heads)
        check_number(index, what, number, index.shape.d_head)
        return rows


class SubheadAt(OfHeadAt):
    pattern = "head/{layer:number}/{head:number}/sub/{subhead:number}"
    subhead: Annotated[int, Field(ge=0, description="A subhead of the head, from 0", examples=[3])]

    def vectors(self, index: Index) -> dict[str, tuple[str, int]]:
        return self.rows(index, SUBHEAD_KINDS, "subhead", self.subhead)


class DirectionAt(OfHeadAt):
    pattern = "head/{layer:number}/{head:number}/svd/{direction:number}"
    direction: Annotated[int, Field(ge=0, description="A singular direction of the head, from 0", examples=[0])]

    def vectors(self, index: Index) -> dict[str, tuple[str, int]]:
        return self.rows(index, SIDE_KINDS, "direction", self.direction)


@dataclass(frozen=True, slots=True, kw_only=True)
class ParameterView(ViewOfModel):
    """What the pages of neurons, subheads and directions share: a table for each of the `vectors`, and the numbers in
    `place`, which identify the parameter."""

    layer: int
    lens: str
    reading: Annotated[Reading | None, OMIT_NONE] = None  # the lists computed in another way, if asked for
    matches: Annotated[Matches | None, OMIT_NONE] = None  # matching vectors in models that this one is compared with
    labels: Annotated[list[ShownLabel] | None, LABELS] = None
    note: Annotated[str, NOTE] = ""

    @property
    def vectors(self) -> Mapping[str, Vector | None]:
        """Return the vectors by their names on the page."""
        raise NotImplementedError

    @property
    def place(self) -> dict[str, int]:
        """Return the numbers that identify the parameter: {"layer": 10, "neuron": 2361}."""
        raise NotImplementedError

    def about(self) -> dict[str, Any]:
        return {"model": self.model, **self.place, "lens": self.lens}

    def singular(self) -> Mapping[str, tuple[float, float | None]]:
        """Return, for each vector of a singular direction, its singular value and that value's share of the matrix;
        return nothing for neurons and subheads."""
        return {}

    def tables(self) -> list[Table]:
        """Return tables of the stored lists and, if there are any, of the lists that a worker has computed in another
        way."""
        what = ", ".join(f"{name} {number}" for name, number in self.place.items())
        readings: list[tuple[str, str, Vector | VectorReading]] = [
            ("", name, vector) for name, vector in self.vectors.items() if vector
        ]
        if self.reading:
            readings += [(self.reading.name, *vector) for vector in self.reading.vectors.items()]
        singular = self.singular()
        tables: list[Table] = []
        for reading, name, lists in readings:
            how = f"{self.lens}, reading {reading}" if reading else self.lens
            numbers: list[Column] = []
            if isinstance(lists, Vector) and lists.base_norm is not None:
                numbers = change_columns(lists)
                how += f"; {size_text(lists.norm, lists.change)}"
                if lists.unchanged:
                    tables.append(Table("", (constant("vector", name), *numbers), [{}], "programs"))
            if name in singular:
                value, share = singular[name]
                numbers = [constant("singular", value), constant("share", share)]
                how += f"; singular value {value:.4g}" if value else "; no direction"
            which = [constant("reading", reading or "stored")] if self.reading else []
            which.append(constant("vector", name))
            title = f"{self.model}, {what}, {name} ({how})"
            tables += both_ends(title, which, lists.top, lists.bottom, numbers)
        return tables


@dataclass(frozen=True, slots=True, kw_only=True)
class NeuronView(ParameterView):
    neuron: int
    key: Annotated[Vector | None, NOT_STORED]
    value: Annotated[Vector | None, NOT_STORED]
    up: Annotated[Vector | None, OMIT_NONE] = None  # only if neurons are gated, and it is stored
    similarity: Annotated[float | None, NOT_STORED]  # the similarity of the key's top with the value's top
    similarity_bottom: Annotated[float | None, NOT_STORED]  # the similarity of the key's top with the value's bottom
    agrees: Annotated[End | None, AGREES]
    shared: Annotated[list[Token], Field(description="At the key's top and that end of the value, of all stored")]
    along: Annotated[list[Token], Field(description="Of these, at the top of up")]
    opposed: Annotated[list[Token], Field(description="Of these, at the bottom of up")]
    shuffled: Annotated[Shuffled | None, NOT_STORED]
    telling: Annotated[bool, PAGE_ONLY] = False  # True if the similarity is too large to come from chance
    cosines: Annotated[Cosines | None, COSINES] = None
    # by cosine, what 99 % of mismatched vectors of the layer stay under
    mismatched: Annotated[dict[str, float], PAGE_ONLY] = field(default_factory=dict)

    @property
    def vectors(self) -> Mapping[str, Vector | None]:
        return {"key": self.key, "up": self.up, "value": self.value}

    @property
    def place(self) -> dict[str, int]:
        return {"layer": self.layer, "neuron": self.neuron}

    def picture(self) -> Picture:
        lists = [
            (f"{name} {'writes' if name == 'value' else 'reads'}", [(token["token"],) for token in vector.top])
            for name, vector in self.vectors.items()
            if vector
        ]
        about = f"neuron {self.neuron} of layer {self.layer}, {self.model}, lens {self.lens}"
        return Picture(f"L{self.layer}N{self.neuron}", about, lists)

    def label_entries(self) -> list[LabelEntry]:
        return [vector_entry(f"ff/{self.layer}/{self.neuron}", self.lens, self.value or self.key or self.up)]


@dataclass(frozen=True, slots=True, kw_only=True)
class SubheadView(ParameterView):
    head: int
    subhead: int
    q: Annotated[Vector | None, NOT_STORED]
    k: Annotated[Vector | None, NOT_STORED]
    v: Annotated[Vector | None, NOT_STORED]
    o: Annotated[Vector | None, NOT_STORED]
    similarity: OfMatrices[Agreement]

    @property
    def vectors(self) -> Mapping[str, Vector | None]:
        return {"q": self.q, "k": self.k, "v": self.v, "o": self.o}

    @property
    def place(self) -> dict[str, int]:
        return {"layer": self.layer, "head": self.head, "subhead": self.subhead}

    def label_entries(self) -> list[LabelEntry]:
        path = f"sub/{self.layer}/{self.head}/{self.subhead}"
        return [vector_entry(path, self.lens, self.o or self.v or self.q or self.k)]


VoDirection = TypedDict(
    "VoDirection",
    {
        "singular": Annotated[float, SINGULAR],
        "share": Annotated[float | None, SHARE],
        "in": Annotated[Vector | None, NOT_STORED],
        "out": Annotated[Vector | None, NOT_STORED],
    },
)


class QkDirection(TypedDict):
    singular: Annotated[float, SINGULAR]
    share: Annotated[float | None, SHARE]
    query: Annotated[Vector | None, NOT_STORED]
    key: Annotated[Vector | None, NOT_STORED]


@dataclass(frozen=True, slots=True, kw_only=True)
class DirectionView(ParameterView):
    head: int
    direction: int
    vo: Annotated[VoDirection | None, NOT_STORED]
    qk: Annotated[QkDirection | None, NOT_STORED]
    # The other directions of each matrix whose singular values are nearly the same.
    near: Annotated[dict[str, list[int]], PAGE_ONLY] = field(default_factory=dict)

    @property
    def vectors(self) -> Mapping[str, Vector | None]:
        vo, qk = self.vo, self.qk
        return {
            "in": vo["in"] if vo else None,
            "out": vo["out"] if vo else None,
            "query": qk["query"] if qk else None,
            "key": qk["key"] if qk else None,
        }

    @property
    def place(self) -> dict[str, int]:
        return {"layer": self.layer, "head": self.head, "direction": self.direction}

    def singular(self) -> Mapping[str, tuple[float, float | None]]:
        sides = {"in": self.vo, "out": self.vo, "query": self.qk, "key": self.qk}
        return {name: (of["singular"], of["share"]) for name, of in sides.items() if of}

    def label_entries(self) -> list[LabelEntry]:
        path, written = f"{self.layer}/{self.head}/{self.direction}", {"vo_out": "out", "qk_key": "key"}
        vectors = {kind: self.vectors[side] for kind, side in written.items()}
        entries = [vector_entry(f"{kind}/{path}", self.lens, vector) for kind, vector in vectors.items() if vector]
        return entries or [LabelEntry(f"svd/{path}", self.lens)]


def neuron(site: ModelSite, at: NeuronAt, ask: VectorArguments) -> NeuronView:
    """A neuron: what it reads (`key`, and `up` where neurons are gated) and what it writes (`value`), as words."""
    index = site.index
    vectors = _vectors_of(site, at, ask)
    lists, all_ids = _lists(site, at, ask, vectors)
    shard = index.shard(at.layer)
    ids = dict(zip(lists, all_ids, strict=True))  # (E, K) each
    agreed = None
    if index.stored.similarity and not (lists["key"].unchanged or lists["value"].unchanged):
        similarity = shard.similarity(at.neuron, ask.lens)
        agreed = agreement(index, shard, "ff", similarity, ask.lens, ids["key"], ids["value"])
    shared = agreed.shared if agreed else []
    in_up = [set(end.tolist()) for end in ids["up"]] if shared and "up" in ids else [set(), set()]
    along, opposed = ([token for token in shared if token["id"] in end] for end in in_up)
    cosines = index.stats(at.layer, "ff.cosines", at.neuron)
    return NeuronView(
        **_common(site, at, ask, vectors),
        neuron=at.neuron,
        key=lists.get("key"),
        value=lists.get("value"),
        up=lists.get("up"),
        similarity=agreed.top if agreed else None,
        similarity_bottom=agreed.bottom if agreed else None,
        agrees=agreed.end if agreed else None,
        shared=shared,
        along=along,
        opposed=opposed,
        shuffled=agreed.shuffled if agreed else None,
        telling=agreed is not None and agreed.is_telling,
        cosines=None if cosines is None else cosines_as_data(index, cosines[None])[0],
        mismatched=mismatched(index, at.layer),
        labels=labels_of(index, site.library.labels.of(index).of_neuron(at.layer, at.neuron)),
        note=neuron_note(index.shape),
    )


def subhead(site: ModelSite, at: SubheadAt, ask: VectorArguments) -> SubheadView:
    """A subhead: its column of W_Q, W_K and W_V and its row of W_O, as words."""
    index = site.index
    vectors = _vectors_of(site, at, ask)
    lists, all_ids = _lists(site, at, ask, vectors)
    shard = index.shard(at.layer)
    ids = {SUBHEAD_KINDS[name]: of_vector for name, of_vector in zip(lists, all_ids, strict=True)}  # (E, K) each

    def agreed(matrix: str) -> Agreement | None:
        first, second = FACTORS[matrix]
        unchanged = [SUBHEAD_KINDS[name] for name, vector in lists.items() if vector.unchanged]
        if matrix not in index.stored.compared or first in unchanged or second in unchanged:
            return None
        of = shard.subhead_similarity(matrix, at.head, at.subhead, ask.lens)
        return agreement(index, shard, matrix, of, ask.lens, ids[first], ids[second])

    return SubheadView(
        **_common(site, at, ask, vectors),
        head=at.head,
        subhead=at.subhead,
        q=lists.get("q"),
        k=lists.get("k"),
        v=lists.get("v"),
        o=lists.get("o"),
        similarity={"vo": agreed("vo"), "qk": agreed("qk")},
        labels=labels_of(index, site.library.labels.of(index).of_subhead(at.layer, at.head, at.subhead)),
        note=subhead_note(index.shape, at.head, at.subhead),
    )


def direction(site: ModelSite, at: DirectionAt, ask: VectorArguments) -> DirectionView:
    """A singular direction of a head, as words: what VO reads and writes along it, and what QK matches, query and key.

    W_V W_O is the sum of σ_j in_jᵀ out_j, and W_Q W_Kᵀ of σ_j query_jᵀ key_j. Directions of the two matrices are
    unrelated: only their number is the same.
    """
    index = site.index
    stored = _vectors_of(site, at, ask)
    lists, _ = _lists(site, at, ask, stored)
    shard = index.shard(at.layer)
    values = {matrix: shard.heads.all_singular(matrix)[at.head] for matrix in index.stored.directions}

    def of_matrix(matrix: str, *sides: str) -> Any:
        if matrix not in values:
            return None
        share = shares(index, shard, matrix, at.head)[at.direction]
        vectors = {side: lists.get(side) for side in sides}
        return {"singular": float(values[matrix][at.direction]), "share": share, **vectors}

    return DirectionView(
        **_common(site, at, ask, stored),
        head=at.head,
        direction=at.direction,
        vo=of_matrix("vo", "in", "out"),
        qk=of_matrix("qk", "query", "key"),
        near={matrix: _near(of_head.tolist(), at.direction) for matrix, of_head in values.items()},
        labels=labels_of(index, site.library.labels.of(index).of_direction(at.layer, at.head, at.direction)),
        note=direction_note(index.shape),
    )


def readings(site: ModelSite, at: ParameterAt, ask: VectorArguments) -> list[ReadingAsk]:
    """Return the requests for a worker, if the vectors' lists are to be computed in another way; raise NotFound for the
    difference of two models."""
    if not ask.reading:
        return []
    length, vectors = _length(site, ask), _vectors_of(site, at, ask)
    check_can_run(site.index)
    common = {
        "layer": at.layer,
        "reading": ask.reading,
        "lens": ask.lens,
        "k": min(length, MOST_TOKENS_READ_AGAIN),
        "only": site.kept.packed(site.index),
    }
    return [ReadingAsk.model_validate({**common, "kind": kind, "index": row}) for kind, row in vectors.values()]


def _lists(
    site: ModelSite, at: ParameterAt, ask: VectorArguments, vectors: Mapping[str, tuple[str, int]]
) -> tuple[dict[str, Vector], Array]:
    """Return the lists of each vector by the vector's name, and all stored token ids (vectors, both ends of the list,
    entries)."""
    length, shard = _length(site, ask), site.index.shard(at.layer)
    lists, ids = stored_vectors(site.index, shard, [*vectors.values()], ask.lens, None if site.outside else length)
    if site.outside:
        lists = keep_vectors(lists, site.outside, length)
    return dict(zip(vectors, lists, strict=True)), ids


def _vectors_of(site: ModelSite, at: ParameterAt, ask: VectorArguments) -> Mapping[str, tuple[str, int]]:
    """Return the kind and the row of each vector by the vector's name. Of several mistakes in an address, a wrong
    length of lists is named first."""
    _length(site, ask)
    check_lens(site.index, ask.lens)
    return at.vectors(site.index)


def _length(site: ModelSite, ask: VectorArguments) -> int:
    return list_length(site.index, ask.k, VECTOR_ENTRIES, site.index.manifest.k)


def _common(
    site: ModelSite, at: ParameterAt, ask: VectorArguments, vectors: Mapping[str, tuple[str, int]]
) -> dict[str, Any]:
    """Return the fields that the pages of neurons, subheads and directions share, except labels and notes."""
    index, lens = site.index, ask.lens
    reading = None
    if ask.reading and site.answers:
        again = {
            name: vector_reading(index, kind, at.layer, row, lens, answer, site.outside)
            for (name, (kind, row)), answer in zip(vectors.items(), site.answers, strict=True)
        }
        reading = Reading(name=ask.reading, vectors=again)
    return {
        **of_index(index),
        "layer": at.layer,
        "lens": lens,
        "reading": reading,
        "matches": matches_of(site.library, index, at.layer, vectors, lens, site.hide_hubs),
    }


def _near(values: list[float], direction: int) -> list[int]:
    """Return the other directions whose singular values are nearly the same as that of this direction."""
    own = values[direction]
    return [at for at, value in enumerate(values) if at != direction and own and abs(value - own) <= NEARLY * own]


def _matches_version(site: ModelSite) -> str:
    return version_of_matches(site.library, site.index)


NEURON = Page(
    name="neuron", title="Neuron {neuron} of layer {layer}", at=NeuronAt, arguments=VectorArguments, view=NeuronView,
    make=neuron, asks=readings, version=_matches_version, formats=PICTURE_FORMATS,
    in_python="This is neuron L{layer}N{neuron}: model.neuron({layer}, {neuron})",
)  # fmt: skip
SUBHEAD = Page(
    name="subhead", title="Subhead {subhead} of head {head} of layer {layer}", at=SubheadAt, arguments=VectorArguments,
    view=SubheadView, make=subhead, asks=readings, version=_matches_version,
    in_python="This is subhead L{layer}H{head}.{subhead}: model.subhead({layer}, {head}, {subhead})",
)  # fmt: skip
DIRECTION = Page(
    name="direction", title="Direction {direction} of head {head} of layer {layer}", at=DirectionAt,
    arguments=VectorArguments, view=DirectionView, make=direction, asks=readings, version=_matches_version,
    in_python="This is direction L{layer}H{head}.svd{direction}: model.direction({layer}, {head}, {direction})",
)  # fmt: skip
