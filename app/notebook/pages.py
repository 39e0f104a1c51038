"""Pages of the site as Python objects: each holds the data of its page as `view`, displays itself as the page's tables,
and becomes a frame with the columns of the page's CSV."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Generic, TypeVar

import orjson

from lexiscope.app.formats.csv_format import table_rows
from lexiscope.app.formats.json_format import json_bytes
from lexiscope.app.formats.table import Table
from lexiscope.app.formats.tables import about
from lexiscope.app.lists.vectors import Vector
from lexiscope.app.lists.view import Token as TokenDict
from lexiscope.app.lists.view import TokenPair, ViewOfModel, visible
from lexiscope.app.notebook import frames
from lexiscope.app.notebook.arguments import AskedLens, at
from lexiscope.app.notebook.show import Shown, view_text
from lexiscope.app.notebook.source import Source
from lexiscope.app.pages.head import HeadView
from lexiscope.app.pages.pairs import PAIRS, PairsAt, PairsView
from lexiscope.app.pages.parameter import (
    DIRECTION,
    SUBHEAD,
    DirectionAt,
    DirectionView,
    NeuronView,
    SubheadAt,
    SubheadView,
)
from lexiscope.precompute.live.wire.fields import Matrix
from lexiscope.precompute.shape import Preset

V = TypeVar("V", bound=ViewOfModel)
FEW_WORDS = 4  # how many words are in the line that describes an object


@dataclass(frozen=True, repr=False)
class Page(Shown, frames.Framed, Generic[V]):
    """A page of the site as an object. `view` is all of its data, typed; frames have the columns of the page's CSV."""

    view: V

    def json(self) -> dict[str, Any]:
        """Return the content of the page's `.json` as plain data."""
        fields: dict[str, Any] = orjson.loads(json_bytes(self.view))
        return fields

    def _columns(self) -> frames.FrameColumns:
        return frames.rows_as_columns(*table_rows(self._listed(), about(self.view)))

    def _listed(self) -> Sequence[Table]:
        """Return the tables that frames are made from."""
        return self.view.tables()

    def _tables(self) -> Sequence[Table]:
        return self.view.tables()

    def __str__(self) -> str:
        return view_text(self.view, self._notes())


class _OfVectors(Page[V]):
    """A page whose data has a note for people, which is displayed below the tables."""

    def _notes(self) -> Sequence[str]:
        note: str = getattr(self.view, "note", "")
        return (note,) if note else ()

    def __str__(self) -> str:
        return view_text(self.view)  # the text of the view already has the note


class Neuron(_OfVectors[NeuronView]):
    """A neuron: what it reads (`key`, and `up` where neurons are gated) and what it writes (`value`)."""

    @property
    def key(self) -> Vector | None:
        """Return what the neuron reads; None if the index was built without keys."""
        return self.view.key

    @property
    def up(self) -> Vector | None:
        """Return the second input of a gated neuron; None for other neurons."""
        return self.view.up

    @property
    def value(self) -> Vector | None:
        """Return what the neuron writes; None if the index was built without values."""
        return self.view.value

    def _title(self) -> str:
        return f"neuron L{self.view.layer}N{self.view.neuron} of {self.view.model}, lens {self.view.lens}" + _first(
            self.value or self.key
        )


class Subhead(_OfVectors[SubheadView]):
    """One channel of a head: its column of W_Q, W_K and W_V (`q`, `k`, `v`) and its row of W_O (`o`), in `view`."""

    def _title(self) -> str:
        where = f"L{self.view.layer}H{self.view.head}.{self.view.subhead}"
        return f"subhead {where} of {self.view.model}, lens {self.view.lens}" + _first(self.view.o or self.view.v)


class Direction(_OfVectors[DirectionView]):
    """A singular direction of a head's matrices: what VO reads and writes along it, and what QK matches, in `view`."""

    @property
    def vectors(self) -> Mapping[str, Vector | None]:
        """Return the vectors by name: `in` and `out` of VO, `query` and `key` of QK."""
        return self.view.vectors

    def _title(self) -> str:
        where = f"L{self.view.layer}H{self.view.head}.svd{self.view.direction}"
        return f"direction {where} of {self.view.model}, lens {self.view.lens}" + _first(self.vectors["out"])


class Pairs(_OfVectors[PairsView]):
    """The token pairs of a head: for VO, from a token that it reads to one that it writes; for QK, from a query to a
    key."""

    @property
    def top(self) -> list[TokenPair]:
        """Return the pairs with the largest scores: dicts with `from`, `to` and `score`."""
        return self.view.top

    @property
    def bottom(self) -> list[TokenPair]:
        """Return the pairs with the most negative scores: dicts with `from`, `to` and `score`."""
        return self.view.bottom

    def _title(self) -> str:
        view = self.view
        first = ", ".join(_pair(pair) for pair in view.top[:FEW_WORDS])
        where = f"{view.matrix.upper()} pairs of L{view.layer}H{view.head} of {view.model}"
        return f"{where}, lens {view.lens}, preset {view.preset}" + (f": {first}" if first else "")


@dataclass(frozen=True, repr=False)
class Head(Page[HeadView]):
    """A head with its first token pairs; methods return all of its pairs, its subheads (channels) and its singular
    directions."""

    source: Source

    def vo(
        self, *, lens: AskedLens = None, preset: Preset | None = None, k: int | None = None, hide_hubs: bool = False
    ) -> Pairs:
        """Return the pairs of W_V W_O: what the head reads, and what it then writes. `lens` (the score) and `preset`
        (which pairs are listed) are by default those of this object."""
        return self._pairs("vo", lens, preset, k, hide_hubs)

    def qk(
        self, *, lens: AskedLens = None, preset: Preset | None = None, k: int | None = None, hide_hubs: bool = False
    ) -> Pairs:
        """Return the pairs of W_Q W_Kᵀ: a query, and the key that it looks for. `lens` (the score) and `preset` (which
        pairs are listed) are by default those of this object."""
        return self._pairs("qk", lens, preset, k, hide_hubs)

    def subhead(self, j: int, *, lens: AskedLens = None, k: int | None = None, hide_hubs: bool = False) -> Subhead:
        """Return subhead j of the head, which is one of its d_head channels."""
        place = SubheadAt(layer=self.view.layer, head=self.view.head, subhead=at("j", j))
        return Subhead(self.source.get(SUBHEAD, place, hide_hubs, lens=self._lens(lens), k=k))

    def direction(self, j: int, *, lens: AskedLens = None, k: int | None = None, hide_hubs: bool = False) -> Direction:
        """Return singular direction j of the head."""
        place = DirectionAt(layer=self.view.layer, head=self.view.head, direction=at("j", j))
        return Direction(self.source.get(DIRECTION, place, hide_hubs, lens=self._lens(lens), k=k))

    def _pairs(self, matrix: Matrix, lens: AskedLens, preset: Preset | None, k: int | None, hide_hubs: bool) -> Pairs:
        place = PairsAt(layer=self.view.layer, head=self.view.head, matrix=matrix)
        chosen = self.view.preset if preset is None else preset
        return Pairs(self.source.get(PAIRS, place, hide_hubs, lens=self._lens(lens), preset=chosen, k=k))

    def _lens(self, asked: AskedLens) -> str:
        """Return the given lens (dot or cosine), else the one with which the head was opened."""
        return self.view.lens if asked is None else asked

    def _tables(self) -> Sequence[Table]:
        """Return the tables of the head's token pairs. Its many subheads (channels) and singular directions have
        objects of their own."""
        glance = replace(self.view, subheads=None, directions=None).tables()
        return [table for table in glance if table.audience != "programs" and [*table.rows]]

    def _notes(self) -> Sequence[str]:
        return (self.view.note,) if self.view.note else ()

    __str__ = Shown.__str__

    def _title(self) -> str:
        return f"head L{self.view.layer}H{self.view.head} of {self.view.model}, lens {self.view.lens}"


def _first(vector: Vector | None) -> str:
    tokens: Sequence[TokenDict] = vector.top[:FEW_WORDS] if vector else ()
    return ": " + " ".join(visible(token["token"]) for token in tokens) if tokens else ""


def _pair(pair: TokenPair) -> str:
    return f"{visible(pair['from']['token'])} → {visible(pair['to']['token'])}"
