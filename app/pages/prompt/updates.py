"""Show the panel `updates`: what attention, FF and heads added to the stream at the position, as words."""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from lexiscope.app.formats.table import Column, Table
from lexiscope.app.lists.first_tokens import FirstLists
from lexiscope.app.pages.prompt.panel import Panel, Record, cut_spare, listed, numbers, token_at
from lexiscope.precompute.live.wire.asks import PromptArguments

if TYPE_CHECKING:
    from lexiscope.app.pages.prompt.page import PromptView

COLUMNS = (
    Column("layer", "number"), Column("of"), Column("head", "number"), Column("share", "number", heading="of stream"),
    Column("cosine", "number"), Column("top", "words", heading="adds"), Column("bottom", "words", heading="takes away"),
    Column("after", "token", get=lambda row: row["after"] if row["changes"] else None, heading="then leads"),
    Column("changed", "number"),
)  # fmt: skip


def without_spare(answer: dict[str, Any], lists: FirstLists, ask: PromptArguments) -> None:
    for row in answer.get("updates") or ():
        row["top"], row["bottom"] = (cut_spare(row[end], lists, ask.k) for end in ("top", "bottom"))


def rows(view: "PromptView") -> Iterator[Record]:
    for row in view.updates or ():
        where: Record = {"panel": "updates", "layer": row["layer"], "part": row["of"], "head": row["head"]}
        where |= {"position": row["position"]}
        yield from numbers(where, row, ("norm", "share", "cosine", "changed"))
        if row["changes"]:
            yield {**where, "token": row["after"], "measure": "changes", "value": 1}
        for end, tokens in (("top", row["top"]), ("bottom", row["bottom"])):
            yield from listed({**where, "end": end}, tokens, "score")


def tables(view: "PromptView") -> list[Table]:
    """Make a table of all updates, from the last layer down."""
    if view.updates is None:
        return []
    title = f"{view.model}, what was added at {token_at(view, view.position)}, position {view.position} ({view.lens})"
    return [Table(title, COLUMNS, view.updates[::-1], "people")]


UPDATES = Panel(
    name="updates", title="Updates", working="reading what was added", rows=rows, says_nothing_of=("convention",),
    tables=tables, has_text=True, has_lists=True, add_lists=without_spare,
)  # fmt: skip
