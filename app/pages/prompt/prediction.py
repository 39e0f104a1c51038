"""Show the top of the page of a run, above all panels: the tokens of the text, what is changed in the run, and what the
model predicts."""

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from typing_extensions import TypedDict

from lexiscope.app.formats.table import Column, Table
from lexiscope.app.pages.prompt.panel import Record, listed
from lexiscope.precompute.live.wire import grammar
from lexiscope.precompute.live.wire.answers import Predicted

if TYPE_CHECKING:
    from lexiscope.app.pages.prompt.page import PromptView


class Change(TypedDict):
    """A change of a run: a neuron's coefficient that is set, or a head that is switched off."""

    layer: int
    neuron: int | None
    head: int | None
    value: float
    position: int | None  # None for a change at all positions


def change_of(change: grammar.Change) -> Change:
    if isinstance(change, grammar.HeadOff):
        number: tuple[int | None, int | None, float] = (None, change.head, 0.0)
    else:
        number = (change.neuron, None, change.value)
    neuron, head, value = number
    return {"layer": change.layer, "neuron": neuron, "head": head, "value": value, "position": change.position}


def change_rows(changes: Iterable[Change]) -> Iterator[Record]:
    for change in changes:
        where: Record = {"layer": change["layer"], "head": change["head"], "neuron": change["neuron"]}
        where |= {"position": change["position"]}  # None stands for all positions
        yield {"panel": "changes", **where, "measure": "coefficient", "value": change["value"]}


def measure(view: "PromptView") -> str:
    """Return the name in JSON of the numbers beside predicted tokens."""
    return "score" if view.predicts == "nearest" else "p"


def csv_measure(view: "PromptView") -> str:
    """Return the name in CSV of the numbers beside predicted tokens."""
    return "cosine" if view.predicts == "nearest" else "p"


def token_rows(view: "PromptView") -> Iterator[Record]:
    for at, token in enumerate(view.tokens):
        yield {"panel": "tokens", "position": at, "token": token}


def rows(view: "PromptView") -> Iterator[Record]:
    here: Record = {"position": view.position}
    yield from listed({"panel": "prediction", **here}, view.prediction, csv_measure(view))
    yield from listed({"panel": "prediction_untouched", **here}, view.untouched, csv_measure(view))


def tables(view: "PromptView") -> list[Table]:
    columns = (Column("token", "token", get=lambda entry: entry), Column(measure(view), "number"))
    lists: list[tuple[str, Predicted]] = [("prediction", view.prediction)]
    if view.untouched:
        lists.append(("prediction without the changes", view.untouched))
    at = "" if view.position is None else f" at position {view.position}"
    return [Table(f"{view.model}, {what}{at}", columns, entries) for what, entries in lists]
