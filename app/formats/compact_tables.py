"""A small table of a page, for a paper or a message: one list of it, or two beside each other."""

from app.formats.parameter_tables import TOKEN_COLUMNS, pair_columns
from app.formats.table import Table, beside, ranked
from app.views.direction import SIDE_KINDS, DirectionView
from app.views.neuron import NeuronView
from app.views.pairs import PairsView
from app.views.subhead import SubheadView
from app.views.tokens import View
from app.views.vectors import Vector
from precompute.errors import NotFound
from precompute.index.index import Index

BESIDE = {"both": ("key", "value"), "qk": ("q", "k"), "vo": ("v", "o")}  # lists that belong beside each other
DIRECTIONS_BESIDE = {"vo": ("in", "out"), "qk": ("query", "key")}


def compact_tables(view: View, side: str) -> list[Table]:
    """`side` names a vector, whose top it is, or an entry of BESIDE; of a head's pairs, an end."""
    match view:
        case NeuronView():
            vectors = {"key": view.key, "up": view.up, "value": view.value}
            return [_of_vectors(f"{view.model}, layer {view.layer}, neuron {view.neuron}", vectors, side, view.lens)]
        case SubheadView():
            vectors = {"q": view.q, "k": view.k, "v": view.v, "o": view.o}
            what = f"{view.model}, layer {view.layer}, head {view.head}, subhead {view.subhead}"
            return [_of_vectors(what, vectors, side, view.lens)]
        case DirectionView():
            what = f"{view.model}, layer {view.layer}, head {view.head}, direction {view.direction}"
            return [_of_vectors(what, view.vectors, side, view.lens, DIRECTIONS_BESIDE)]
        case PairsView():
            what = f"{view.model}, layer {view.layer}, head {view.head}, {view.matrix}, {side}"
            pairs = view.top if side == "top" else view.bottom
            return [Table(f"{what} ({view.lens}, {view.preset})", pair_columns(view.matrix), ranked(pairs))]
    raise TypeError(f"{type(view).__name__} has no small table")


def sides_of_vectors(index: Index, prefix: str, *names: str) -> list[tuple[str, str]]:
    """What a page of these vectors offers: pairs that are stored, then each; and what people call it."""
    return _offered([name for name in names if f"{prefix}{name}" in index.stored.kinds], BESIDE)


def sides_of_directions(index: Index) -> list[tuple[str, str]]:
    return _offered([name for name, kind in SIDE_KINDS.items() if kind in index.stored.kinds], DIRECTIONS_BESIDE)


def _offered(stored: list[str], beside: dict[str, tuple[str, str]]) -> list[tuple[str, str]]:
    pairs = [(side, " and ".join(of)) for side, of in beside.items() if set(of) <= set(stored)]
    return pairs + [(name, name) for name in stored]


def _of_vectors(
    what: str, vectors: dict[str, Vector | None], side: str, lens: str, pairs: dict[str, tuple[str, str]] = BESIDE
) -> Table:
    names: tuple[str, ...] = pairs.get(side, (side,))
    lists = [vector for name in names if (vector := vectors[name])]
    if len(lists) < len(names):
        raise NotFound(f"side = {side}: this page has {', '.join(name for name, vector in vectors.items() if vector)}")
    title = f"{what}, top of {' and '.join(names)} ({lens})"
    if len(lists) == 1:
        return Table(title, TOKEN_COLUMNS, ranked(lists[0].top))
    columns, rows = beside(TOKEN_COLUMNS, lists[0].top, lists[1].top, names[0], names[1])
    return Table(title, columns, rows)
