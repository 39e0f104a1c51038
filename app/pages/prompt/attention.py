"""Show the panel `attention`: which positions every head attends to."""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from lexiscope.app.formats.table import Column, Table
from lexiscope.app.pages.prompt.panel import Panel, Record, token_at

if TYPE_CHECKING:
    from lexiscope.app.pages.prompt.page import PromptView

SHOWN_HEADS = 25  # how many heads are shown: those with the largest attention to one position

COLUMNS = (
    Column("layer", "number"), Column("head", "number"), Column("to", "number", heading="position"),
    Column("token", "token", heading="looks at"), Column("weight", "number"),
)  # fmt: skip


def rows(view: "PromptView") -> Iterator[Record]:
    for head in view.attention or ():
        where = {"panel": "attention", "layer": head["layer"], "head": head["head"]}
        for at, row in enumerate(head["weights"]):
            for to, weight in enumerate(row):
                yield {**where, "position": at, "to_position": to, "measure": "weight", "value": weight}
    whole = {head["layer"] for head in view.attention or ()}  # of a long text, only the chosen layer
    for layer, number, weights in _looks(view):
        where = {"panel": "attention", "layer": layer, "head": number, "position": view.position, "measure": "weight"}
        for to, weight in enumerate(weights) if layer not in whole else ():
            yield {**where, "to_position": to, "value": weight}


def _looks(view: "PromptView") -> Iterator[tuple[int, int, list[float]]]:
    """Yield layer, head, and the attention weights from the chosen position, of every head."""
    for layer, heads in enumerate(view.looks or ()):
        for head, weights in enumerate(heads):
            yield layer, head, weights


def tables(view: "PromptView") -> list[Table]:
    """Make a table of the position that each head attends to most, from the chosen position. The first token is left
    out, because most heads attend to it when they find nothing to look for."""
    if view.looks is None:
        return []
    heads: list[dict[str, Any]] = []
    for layer, head, weights in _looks(view):
        to = max(range(min(1, len(weights) - 1), len(weights)), key=weights.__getitem__)
        heads.append({"layer": layer, "head": head, "to": to, "token": view.tokens[to], "weight": weights[to]})
    heads.sort(key=lambda row: -row["weight"])
    some = f"; {SHOWN_HEADS} of {len(heads)} heads" if len(heads) > SHOWN_HEADS else ""
    where = f"from {token_at(view, view.position)}, position {view.position}"
    title = f"{view.model}, where heads look {where} (not at the first token{some})"
    return [Table(title, COLUMNS, heads[:SHOWN_HEADS])]


ATTENTION = Panel(name="attention", title="Attention", rows=rows, tables=tables)
