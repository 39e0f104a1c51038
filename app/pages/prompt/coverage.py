"""Show the panel `coverage`, the paper's R_k: how many of the stream's first tokens are also in the lists of active
vectors."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

from lexiscope.app.formats.table import Column, Table
from lexiscope.app.pages.prompt.panel import Panel, Record, token_at

if TYPE_CHECKING:
    from lexiscope.app.pages.prompt.page import PromptView

COLUMNS = (
    Column("layer", "number"), Column("kind"), Column("covered", "ratio"), Column("shuffled", "ratio"),
    Column("shuffled_sd", "ratio", heading="its deviation"), Column("as_covered", "number", heading="as covered"),
    Column("others", "number", heading="of others"),
)  # fmt: skip


def rows(view: "PromptView") -> Iterator[Record]:
    for covered in view.coverage or ():
        place = {"layer": covered["layer"], "part": covered["kind"], "position": view.position}
        where: Record = {"panel": "coverage", **place}
        yield {**where, "measure": "covered", "value": covered["covered"]}
        if covered["shuffled"] is None:
            continue
        yield {**where, "measure": "shuffled", "value": covered["shuffled"]}
        if covered["shuffled_sd"] is not None:
            yield {**where, "measure": "shuffled_sd", "value": covered["shuffled_sd"]}
        yield {**where, "measure": "others", "value": covered["others"]}
        yield {**where, "measure": "as_covered", "value": covered["as_covered"]}


def tables(view: "PromptView") -> list[Table]:
    if view.coverage is None:
        return []
    return [Table(f"{view.model}, R_k at {token_at(view, view.position)}", COLUMNS, view.coverage)]


COVERAGE = Panel(
    name="coverage", title="Coverage", working="comparing lists", rows=rows, says_nothing_of=("convention",),
    tables=tables,
)  # fmt: skip
