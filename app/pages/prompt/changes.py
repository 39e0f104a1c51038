"""Describe what is changed in a run: neurons whose coefficient is set, and heads that are switched off."""

from collections.abc import Iterable, Iterator

from typing_extensions import TypedDict

from lexiscope.app.pages.prompt.panel import Record
from lexiscope.precompute.live.wire import grammar


class Change(TypedDict):
    """A change of a run: a neuron's coefficient that is set, or a head that is switched off."""

    layer: int
    neuron: int | None
    head: int | None
    value: float
    position: int | None  # None: at all positions


def change_of(change: grammar.Change) -> Change:
    if isinstance(change, grammar.HeadOff):
        number: tuple[int | None, int | None, float] = (None, change.head, 0.0)
    else:
        number = (change.neuron, None, change.value)
    neuron, head, value = number
    return {"layer": change.layer, "neuron": neuron, "head": head, "value": value, "position": change.position}


def rows(changes: Iterable[Change]) -> Iterator[Record]:
    for change in changes:
        where: Record = {"layer": change["layer"], "head": change["head"], "neuron": change["neuron"]}
        where |= {"position": change["position"]}  # None: at all positions
        yield {"panel": "changes", **where, "measure": "coefficient", "value": change["value"]}
