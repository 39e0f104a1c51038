"""Show the top of the page of a run, above all panels: the tokens of the text, what is changed in the run, and what the
model predicts."""

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Literal, get_args

from typing_extensions import TypedDict

from lexiscope.app.formats.table import Column, Table
from lexiscope.app.pages.prompt.panel import Record, listed
from lexiscope.precompute.live.wire import grammar
from lexiscope.precompute.live.wire.answers import Predicted

if TYPE_CHECKING:
    from lexiscope.app.pages.prompt.page import PromptView


ChangeKind = Literal["off", "set", "mean", "patch"]  # the arguments that change a run
CHANGES: tuple[ChangeKind, ...] = get_args(ChangeKind)


class Change(TypedDict):
    """A change of a run: of a neuron's coefficient, or of a head's mixed value."""

    kind: ChangeKind
    layer: int
    neuron: int | None
    head: int | None
    value: float | None  # None for a value of another run
    position: int | None  # None for a change at all positions


def change_of(kind: ChangeKind, change: grammar.AnyChange) -> Change:
    return {
        "kind": kind,
        "layer": change.layer,
        "neuron": change.neuron,
        "head": change.head,
        "value": None if isinstance(change, grammar.Replaced) else getattr(change, "value", 0.0),
        "position": change.position,
    }


def change_rows(changes: Iterable[Change]) -> Iterator[Record]:
    for change in changes:
        where: Record = {"layer": change["layer"], "head": change["head"], "neuron": change["neuron"]}
        where |= {"position": change["position"]}  # None stands for all positions
        where |= {"part": change["kind"]}
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
    for at, token in enumerate(view.from_["tokens"] if view.from_ else ()):
        yield {"panel": "tokens_from", "position": at, "token": token}


def rows(view: "PromptView") -> Iterator[Record]:
    here: Record = {"position": view.position}
    yield from listed({"panel": "prediction", **here}, view.prediction, csv_measure(view))
    yield from listed({"panel": "prediction_untouched", **here}, view.untouched, csv_measure(view))
    if view.from_:
        there: Record = {"panel": "prediction_from", "position": view.from_["position"]}
        yield from listed(there, view.from_["prediction"], csv_measure(view))


def tables(view: "PromptView") -> list[Table]:
    columns = (Column("token", "token", get=lambda entry: entry), Column(measure(view), "number"))
    lists: list[tuple[str, Predicted]] = [("prediction", view.prediction)]
    if view.untouched:
        lists.append(("prediction without the changes", view.untouched))
    if view.from_:
        lists.append(("prediction of the second text", view.from_["prediction"]))
    at = "" if view.position is None else f" at position {view.position}"
    return [Table(f"{view.model}, {what}{at}", columns, entries) for what, entries in lists]
