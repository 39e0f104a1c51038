"""Asks the worker to read the vectors, or the pairs, of a stored page in another way.
The pages are in pages.py, what is made of the answers in views/readings.py."""

from dataclasses import replace
from typing import TypeVar

from app.routes.table import Call
from app.views.neuron import NeuronView
from app.views.pairs import PairsView, with_pairs_reading
from app.views.subhead import SUBHEAD_KINDS, SubheadView
from app.views.vectors import Reading as VectorsReading
from app.views.vectors import vector_reading
from app.wire import PairsReadingAsk, Reading, ReadingAsk

MOST, MOST_PAIRS = 100, 1000  # tokens, and pairs, that a worker lists
V = TypeVar("V", NeuronView, SubheadView)


async def read_again(call: Call, view: V, reading: Reading, k: int) -> V:
    """The view with the same vectors in another reading."""
    index, made = call.index, {}
    for name, (kind, row) in _vectors(call, view).items():
        ask = ReadingAsk.model_validate(
            {"kind": kind, "layer": view.layer, "index": row, "reading": reading, "lens": view.lens, "k": min(k, MOST)}
        )
        answer = await call.site.live.ask(call.model, ask, call.request)
        made[name] = vector_reading(index, kind, view.layer, row, view.lens, answer)
    return replace(view, reading=VectorsReading(name=reading, vectors=made))


async def read_pairs_again(call: Call, view: PairsView, reading: Reading, k: int) -> PairsView:
    """The view with the same head's pairs in another reading."""
    answer = await call.site.live.ask(call.model, pairs_ask(view, reading, k), call.request)
    return with_pairs_reading(call.index, view, reading, answer)


def pairs_ask(view: PairsView, reading: Reading, k: int) -> PairsReadingAsk:
    return PairsReadingAsk.model_validate(
        {
            "matrix": view.matrix, "layer": view.layer, "head": view.head, "reading": reading, "lens": view.lens,
            "preset": view.preset, "n": min(k, MOST_PAIRS),
        }
    )  # fmt: skip


def _vectors(call: Call, view: NeuronView | SubheadView) -> dict[str, tuple[str, int]]:
    """The kind and the row of each."""
    if isinstance(view, NeuronView):
        names = ("key", "up", "value") if view.up else ("key", "value")
        return {name: (f"ff_{name}", view.neuron) for name in names}
    return {name: (kind, call.index.shape.row(kind, view.head, view.subhead)) for name, kind in SUBHEAD_KINDS.items()}
