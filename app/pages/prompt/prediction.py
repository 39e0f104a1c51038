"""Show what a run predicts, and the tokens it was made from, which the page has above all panels."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

from lexiscope.app.formats.table import Column, Table
from lexiscope.app.pages.prompt.panel import Record, listed
from lexiscope.precompute.live.wire.answers import Predicted

if TYPE_CHECKING:
    from lexiscope.app.pages.prompt.page import PromptView


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
