"""Read many lists at once, as one frame: the lists of all vectors of some kinds, or the token pairs of all heads, over
layers."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, TypeAlias

import numpy as np

from lexiscope.app.formats.table import Column, Table
from lexiscope.app.notebook import arguments, frames
from lexiscope.app.notebook.show import Shown
from lexiscope.app.notebook.source import Source
from lexiscope.precompute.errors import BadRequest
from lexiscope.precompute.export.columns import Columns, Named, pair_columns, vector_columns
from lexiscope.precompute.index.index import Index, ranges
from lexiscope.precompute.index.not_stored import check_kinds, check_lens
from lexiscope.precompute.live.wire.fields import Lens
from lexiscope.precompute.shape import ENDS, LENSES, MATRICES, PRESETS, SIDES

ListLens: TypeAlias = Lens | Literal["both"] | None

FIRST_ROWS = 10  # how many rows are displayed


@dataclass(frozen=True, eq=False, repr=False)
class Lists(Shown, frames.Framed):
    """Lists over layers, with a row per entry. They are read when a frame is asked for, and each time anew.

    The columns of frames are layer, kind (or matrix), head, index, lens, end, rank, token_id, token, score; frames of
    token pairs have preset, from_id, from, to_id, to instead. Ranks start at 1; `index` is the number of a neuron,
    subhead or direction. `names` are kinds of vectors, or one matrix of heads; `layers` are those that are read.
    """

    source: Source
    names: tuple[str, ...]
    layers: tuple[int, ...]
    lenses: tuple[str, ...]
    ends: tuple[str, ...]
    presets: tuple[str, ...]
    k: int | None

    def _columns(self) -> dict[str, frames.FrameColumn]:
        return self.source.read(
            lambda index: frames.stacked(
                [self._columns_of(index, layer, name) for layer in self.layers for name in self.names]
            )
        )

    def _columns_of(self, index: Index, layer: int, name: str) -> Columns:
        if name in MATRICES:
            columns = pair_columns(index, name, layer, self.lenses, self.presets, self.ends, self.k)
        else:
            columns = vector_columns(index, name, layer, self.lenses, self.ends, self.k)
        rows = len(np.asarray(columns["score"]))
        named = Named(np.full(rows, self.names.index(name), np.int8), self.names)
        first, *rest = columns.items()
        return dict([first, ("matrix" if name in MATRICES else "kind", named), *rest])

    def _title(self) -> str:
        entries = "all entries" if self.k is None else f"the first {self.k}"
        presets = f", preset {'/'.join(self.presets)}" if self.names[0] in MATRICES else ""
        return (
            f"{self.source.name}: {', '.join(self.names)} of layers {ranges(self.layers)}, lens "
            f"{'/'.join(self.lenses)}{presets}, {entries} of {' and '.join(self.ends)}"
        )

    def _tables(self) -> list[Table]:
        """Return a table of the first rows of the first layer, to be displayed."""
        few = replace(self, k=min(self.k or FIRST_ROWS, FIRST_ROWS))
        columns = self.source.read(lambda index: few._columns_of(index, self.layers[0], self.names[0]))
        rows = [
            {name: _value(column, at) for name, column in columns.items()}
            for at in range(min(FIRST_ROWS, len(np.asarray(columns["score"]))))
        ]
        kinds = {"token": "token", "from": "token", "to": "token", "score": "number"}
        shown = [name for name in columns if name not in ("token_id", "from_id", "to_id") and columns[name] is not None]
        declared = tuple(Column(name, kinds.get(name, "text")) for name in shown)  # type: ignore[arg-type]
        return [Table(f"{self._title()}; the first rows, to_pandas() has all", declared, rows)]


def _value(column: Any, at: int) -> Any:
    if isinstance(column, Named):
        text = column.names[column.numbers[at]]
        return {"id": int(column.numbers[at]), "token": text} if column.tokens else text
    return None if column is None else column[at].item()


def vector_lists(
    source: Source,
    prefix: str | tuple[str, ...],
    layers: int | Iterable[int] | None = None,
    *,
    kinds: Iterable[str] | None = None,
    lens: ListLens = None,
    end: str | None = None,
    k: int | None = None,
) -> Lists:
    """Return the lists of all kinds of vectors whose names begin with `prefix`: of the stored kinds, or of the named
    `kinds`, all of which must be stored."""
    index = source.read(lambda index: index)
    known = tuple(kind for kind in SIDES if kind.startswith(prefix))
    names = tuple(kind for kind in known if kind in index.stored.kinds) or known
    if kinds is not None:
        names = tuple(dict.fromkeys(arguments.texts("kinds", kinds)))
    if wrong := [name for name in names if name not in known]:
        raise BadRequest(f"kind {wrong[0]!r}: here there are {', '.join(known)}")
    for name in names:
        check_kinds(index, name)
    if not names:
        raise BadRequest(f"kinds = {names}: give kinds of vectors such as ff_key and ff_value; pairs() has vo and qk")
    return _lists(source, index, names, layers, lens, end, None, k, index.stored.k)


def pair_lists(
    source: Source,
    matrix: str,
    layers: int | Iterable[int] | None,
    lens: str | None,
    preset: str | None,
    end: str | None,
    k: int | None,
) -> Lists:
    index = source.read(lambda index: index)
    if matrix not in MATRICES:
        raise BadRequest(f"matrix = {matrix!r}: there are {' and '.join(MATRICES)}")
    check_kinds(index, matrix)
    return _lists(source, index, (matrix,), layers, lens, end, preset, k, index.stored.pairs)


def _lists(
    source: Source, index: Index, names: tuple[str, ...], layers: int | Iterable[int] | None, lens: str | None,
    end: str | None, preset: str | None, k: int | None, stored: int,
) -> Lists:  # fmt: skip
    chosen_lens = arguments.one_of("lens", lens, (*LENSES, "both")) or index.stored.lens
    if chosen_lens != "both":
        check_lens(index, chosen_lens)
    if k is not None and arguments.count("k", k) > stored:
        raise BadRequest(f"k = {k}: lists of {source.name} hold {stored} entries, so k goes from 1 to {stored}")
    return Lists(
        source=source,
        names=names,
        layers=_layers(index, arguments.layers(layers)),
        lenses=index.stored.lenses if chosen_lens == "both" else (chosen_lens,),
        ends=_one_or_all("end", end, ENDS),
        presets=_one_or_all("preset", preset, PRESETS),
        k=k,
    )


def _layers(index: Index, asked: tuple[int, ...] | None) -> tuple[int, ...]:
    """Return the layers to read: all that are ready unless some are named. A damaged one raises an error, because a
    frame must be complete."""
    for error in index.faults.values() if asked is None else ():
        raise type(error)(str(error))
    layers = index.layers if asked is None else asked
    if not layers:
        raise BadRequest(f"there are no layers to read: ready are {ranges(index.layers)}")
    for layer in layers:
        index.shard(layer)  # raises NotBuilt, NotFound or ShardDamaged
    return tuple(dict.fromkeys(layers))


def _one_or_all(what: str, asked: str | None, known: Sequence[str]) -> tuple[str, ...]:
    if asked is not None and asked not in known:
        raise BadRequest(f"{what} = {asked!r}: there are {', '.join(known)}")
    return tuple(known) if asked is None else (asked,)
