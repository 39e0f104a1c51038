"""Asks the worker to read the vectors of a stored page in another way.
The pages are in pages.py, what is made of the answers in views/readings.py."""

from typing import TypeVar

from app.routes.table import Call
from app.view_types import FFView, OtherReading, SubheadView
from app.views.readings import read_view
from app.wire import Reading, ReadingAsk

MOST = 100  # tokens that a worker lists
V = TypeVar("V", FFView, SubheadView)


async def read_again(call: Call, view: V, reading: Reading, k: int) -> V:
    """The view with the same vectors in another reading."""
    index, made = call.index, {}
    for name, (kind, row) in _vectors(call, view).items():
        ask = ReadingAsk(kind=kind, layer=view.layer, index=row, reading=reading, k=min(k, MOST))
        answer = await call.site.live.ask(call.model, ask, call.request)
        made[name] = read_view(index, kind, view.layer, row, answer)
    return type(view).of(**{**view.__dict__, "reading": OtherReading.of(name=reading, vectors=made)})


def _vectors(call: Call, view: FFView | SubheadView) -> dict[str, tuple[str, int]]:
    """The kind and the row of each."""
    if isinstance(view, FFView):
        names = ("key", "up", "value") if view.up else ("key", "value")
        return {name: (f"ff_{name}", view.neuron) for name in names}
    kinds = {"q": "w_q", "k": "w_k", "v": "w_v", "o": "w_o"}
    return {name: (kind, call.index.shape.row(kind, view.head, view.subhead)) for name, kind in kinds.items()}
