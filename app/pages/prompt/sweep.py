"""Show the panel `sweep`: what switching heads or neurons off, one by one, changes, beside their direct effects."""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from lexiscope.app.formats.table import Column, Table
from lexiscope.app.lists.first_tokens import FirstLists
from lexiscope.app.lists.view import visible
from lexiscope.app.pages.prompt.attribution import add_words, name_of
from lexiscope.app.pages.prompt.panel import Panel, Record, numbers
from lexiscope.precompute.live.wire.answers import SWEEP_NAMED
from lexiscope.precompute.live.wire.asks import PromptArguments

if TYPE_CHECKING:
    from lexiscope.app.pages.prompt.page import PromptView


def add_lists(answer: dict[str, Any], lists: FirstLists, _: PromptArguments) -> None:
    if found := answer.get("sweep"):
        add_words(found["parts"][:SWEEP_NAMED], lists)


def rows(view: "PromptView") -> Iterator[Record]:
    """Yield the token's log probability, the correlation and the cut, then for each part its change, the largest first,
    and its direct effect."""
    found = view.sweep
    if not found:
        return
    here: Record = {"panel": "sweep", "position": view.position}
    yield {**here, "token": found["token"], "measure": measure(view), "value": found["log_p"]}
    for name in ("spearman", "cut"):
        yield {**here, "part": found["over"], "measure": name, "value": found[name]}
    for rank, part in enumerate(found["parts"], 1):
        where = {**here, "layer": part["layer"], "head": part["head"], "neuron": part["neuron"], "rank": rank}
        yield from numbers(where, part, ("change", "direct", "strength"))


def measure(view: "PromptView") -> str:
    return "cosine" if view.predicts == "nearest" else "log_p"


def tables(view: "PromptView") -> list[Table]:
    found = view.sweep
    if found is None:
        return []
    what = f"{measure(view)} of {visible(found['token']['token'])}, {found['log_p']:.3f}"
    correlation = "" if found["spearman"] is None else f"; Spearman of both {found['spearman']:.2f}"
    title = f"{view.model}, {what}, without each of {found['of']} {found['over']}{correlation}"
    return [Table(title, COLUMNS, found["parts"][:SWEEP_NAMED])]


COLUMNS = (
    Column("without", get=name_of), Column("change", "number"), Column("direct", "number", heading="direct effect"),
    Column("value", "words", heading="writes"), Column("pairs", "pairs", heading="maps"),
)  # fmt: skip

SWEEP = Panel(
    name="sweep", title="Sweep", working="switching heads or neurons off", rows=rows, tables=tables, has_lists=True,
    add_lists=add_lists,
)  # fmt: skip
