"""Show a head's token pairs: which token W_V W_O maps to which, or which query looks for which key."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, Literal

from pydantic import Field

from lexiscope.app.formats.pair_tables import pair_tables
from lexiscope.app.formats.png import Picture
from lexiscope.app.formats.table import Table, change_columns, constant
from lexiscope.app.lists.checks import PAIR_ENTRIES, list_length
from lexiscope.app.lists.difference import check_can_run, size_text
from lexiscope.app.lists.kept_tokens import first_kept_pairs
from lexiscope.app.lists.labels import LABELS, LabelEntry, ShownLabel, labels_of, pairs_entry
from lexiscope.app.lists.notes import pairs_note
from lexiscope.app.lists.pair_lists import PAIR_NAMES, Hidden, drawn_pairs, pair_ids, stored_pairs
from lexiscope.app.lists.vectors import CHANGE, UNCHANGED, Coherence
from lexiscope.app.lists.view import (
    HUBS_HIDDEN,
    NOTE,
    OF_DIFFERENCE,
    OMIT_NONE,
    PAGE_ONLY,
    TokenPair,
    ViewOfModel,
    of_index,
)
from lexiscope.app.pages.page import Address, AnyPreset, AnyReading, LensArguments, ModelSite, Page, entries_shown
from lexiscope.app.urls import PICTURE_FORMATS
from lexiscope.precompute.errors import BadRequest
from lexiscope.precompute.live.wire.answers import PairsReadingAnswer, put_words
from lexiscope.precompute.live.wire.asks import PairsReadingAsk, Side

MOST_PAIRS_READ_AGAIN = 1000  # most pairs that a worker may compute in another way


class PairsAt(Address):
    pattern = "head/{layer:number}/{head:number}/{matrix:matrix}"
    layer: Annotated[int, Field(ge=0, description="A layer, from 0", examples=[29])]
    head: Annotated[int, Field(ge=0, description="A head of the layer, from 0", examples=[2])]
    matrix: Annotated[Literal["vo", "qk"], Field(description="W_V W_O, or W_Q W_Kᵀ", examples=["vo"])]


class PairsArguments(LensArguments):
    preset: AnyPreset = "all"
    k: Annotated[int | None, entries_shown(PAIR_ENTRIES)] = None
    group: Annotated[
        Literal["from"] | None, Field(description="In the page for people: pairs grouped by first token")
    ] = None
    reading: AnyReading = None
    side: Annotated[
        Side,
        Field(description="Of `reading=first`: which tokens of the pairs are taken so, the `source`, the `target`"),
    ] = "both"
    usual: ClassVar[Mapping[str, Any]] = {"lens": "dot", "k": PAIR_ENTRIES}


@dataclass(frozen=True, slots=True, kw_only=True)
class PairsReading:
    """A head's token pairs computed in another way than the stored ones."""

    name: str  # how the pairs were computed: norm, first, ...
    side: Annotated[Side | None, OMIT_NONE]  # of `first`: which tokens were taken so
    top: list[TokenPair]
    bottom: list[TokenPair]
    overlap: float  # Jaccard similarity of this top list and the stored one of the same length, preset and lens
    kept: Annotated[frozenset[tuple[int, int]], PAGE_ONLY] = frozenset()  # pairs that are also in the stored list
    # the numbers of hidden hubs at the top and at the bottom
    hubs_hidden_by_end: Annotated[tuple[int, int] | None, HUBS_HIDDEN] = None


@dataclass(frozen=True, slots=True, kw_only=True)
class PairsView(ViewOfModel):
    layer: int
    head: int
    matrix: str
    lens: str
    preset: str
    top: list[TokenPair]
    bottom: list[TokenPair]
    reading: Annotated[PairsReading | None, OMIT_NONE] = None  # the pairs computed in another way, if asked for
    coherence: Coherence
    hidden: Hidden
    norm: Annotated[float | None, OF_DIFFERENCE] = None  # Frobenius norm of the head's matrix
    base_norm: Annotated[float | None, OF_DIFFERENCE] = None
    change: Annotated[float | None, CHANGE] = None
    unchanged: Annotated[Literal[True] | None, UNCHANGED] = None
    labels: Annotated[list[ShownLabel] | None, LABELS] = None
    note: Annotated[str, NOTE] = ""
    # the numbers of hidden hubs at the top and at the bottom
    hubs_hidden_by_end: Annotated[tuple[int, int] | None, HUBS_HIDDEN] = None

    @property
    def columns(self) -> tuple[str, str]:
        return PAIR_NAMES[self.matrix]

    def picture(self) -> Picture:
        about = f"token pairs of head {self.head} of layer {self.layer}, {self.model}, {self.lens}, {self.preset}"
        return Picture(
            f"Head {self.layer}.{self.head} {self.matrix.upper()}", about, [drawn_pairs(self.matrix, self.top)]
        )

    def label_entries(self) -> list[LabelEntry]:
        return [pairs_entry(f"{self.matrix}/{self.layer}/{self.head}", self.lens, self.preset, self.top)]

    def about(self) -> dict[str, Any]:
        of_head = {"layer": self.layer, "head": self.head}
        return {"model": self.model, **of_head, "lens": self.lens, "preset": self.preset}

    def tables(self) -> list[Table]:
        """Return tables of the stored pairs and, if there are any, of the pairs that a worker has computed in another
        way."""
        readings: list[tuple[str, PairsView | PairsReading]] = [("", self)]
        if self.reading:
            side = self.reading.side if self.reading.side != "both" else None
            readings.append((f"{self.reading.name} of the {side}" if side else self.reading.name, self.reading))
        tables = []
        head = f"{self.model}, layer {self.layer}, head {self.head}"
        for name, lists in readings:
            how = f"{self.lens}, {self.preset}" + (f", reading {name}" if name else "")
            columns = [constant("reading", name or "stored")] if self.reading else []
            if self.norm is not None:
                how += f"; {size_text(self.norm, self.change)}"
                columns += change_columns(self)
            tables += pair_tables(head, self.matrix, how, lists.top, lists.bottom, columns)
        if self.unchanged:
            tables.append(Table("", (constant("matrix", self.matrix), *change_columns(self)), [{}], "programs"))
        return tables


def pairs(site: ModelSite, at: PairsAt, ask: PairsArguments) -> PairsView:
    """A head's token pairs: with `vo`, from what it reads to what it writes; with `qk`, from a query to the key it
    looks for."""
    index = site.index
    stored = stored_pairs(
        index, at.matrix, at.layer, at.head, ask.lens, ask.preset, _length(site, ask), site.outside_pairs
    )
    change = stored.change
    reading = _reading(site, at, ask, site.answers[0]) if ask.reading and site.answers else None
    return PairsView(
        **of_index(index),
        layer=at.layer,
        head=at.head,
        matrix=at.matrix,
        lens=ask.lens,
        preset=ask.preset,
        top=stored.top,
        bottom=stored.bottom,
        reading=reading,
        coherence=stored.coherence,
        hidden=stored.hidden,
        norm=change and change["norm"],
        base_norm=change and change["base_norm"],
        change=change and change["change"],
        unchanged=True if stored.unchanged else None,
        labels=labels_of(index, site.library.labels.of(index).of_head(at.layer, at.head, at.matrix)),
        note=pairs_note(index.shape, at.matrix, at.head),
    )


def readings(site: ModelSite, at: PairsAt, ask: PairsArguments) -> list[PairsReadingAsk]:
    """Return the request for a worker, if the pairs are to be computed in another way; raise NotFound for the
    difference of two models."""
    if not ask.reading and site.format == "events":
        raise BadRequest("there is nothing to wait for: give a reading, such as reading=norm")
    if not ask.reading:
        return []
    length = _length(site, ask)
    stored_pairs(site.index, at.matrix, at.layer, at.head, ask.lens, ask.preset, 1)  # raises NotFound or NotStored
    check_can_run(site.index)
    asked = {**dict(at), "reading": ask.reading, "side": ask.side, "lens": ask.lens, "preset": ask.preset}
    only, n = site.kept.of_pairs.packed(site.index), min(length, MOST_PAIRS_READ_AGAIN)
    return [PairsReadingAsk.model_validate({**asked, "n": n, "only": only})]


def _length(site: ModelSite, ask: PairsArguments) -> int:
    return list_length(site.index, ask.k, PAIR_ENTRIES, site.index.manifest.pairs)


def _reading(site: ModelSite, at: PairsAt, ask: PairsArguments, answer: PairsReadingAnswer) -> PairsReading:
    """Make a head's pairs from a worker's answer, which computed them in another way, and compare them with as many
    stored ones."""
    heads, place = site.index.shard(at.layer).heads, (at.matrix, at.head, ask.lens, ask.preset)
    put_words(answer, site.index.tokens.texts)
    top, bottom = answer["top"], answer["bottom"]
    stored_top, stored_bottom = (
        {*first_kept_pairs(heads.pairs(*place, end).ids.tolist(), site.outside_pairs, len(pairs))}
        for end, pairs in (("top", top), ("bottom", bottom))
    )
    either = pair_ids(top) | stored_top
    return PairsReading(
        name=ask.reading or "",
        side=ask.side if ask.reading == "first" else None,
        top=top,
        bottom=bottom,
        overlap=len(pair_ids(top) & stored_top) / len(either) if either else 1.0,
        kept=frozenset((pair_ids(top) & stored_top) | (pair_ids(bottom) & stored_bottom)),
    )


PAIRS = Page(
    name="pairs", title="{MATRIX} of head {head} of layer {layer}", at=PairsAt, arguments=PairsArguments,
    view=PairsView, make=pairs, asks=readings, has_events=True, formats=PICTURE_FORMATS,
    stages={"vocabulary": "preparing the tokens", "pairs": "searching all pairs"},
    in_python="These are pairs of head L{layer}H{head}: model.head({layer}, {head}).{matrix}()",
)  # fmt: skip
