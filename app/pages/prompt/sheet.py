"""Show the panel `sheet`: every head at every position, and the strongest neurons of every layer."""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from lexiscope.app.formats.table import Column, Table
from lexiscope.app.lists.first_tokens import FirstLists
from lexiscope.app.pages.prompt.panel import Panel, Record, listed
from lexiscope.precompute.live.wire.asks import PromptArguments

if TYPE_CHECKING:
    from lexiscope.app.pages.prompt.page import PromptView

NEURON_TOKENS = 5
COLUMNS = (
    Column("layer", "number"), Column("head", "number"), Column("position", "number"),
    Column("looks_for", "words", heading="looks for"), Column("found_by", "words", heading="is found by"),
    Column("sends", "words"), Column("message", "number"), Column("moved", "number"),
)  # fmt: skip


def add_lists(answer: dict[str, Any], lists: FirstLists, _: PromptArguments) -> None:
    for neuron in (answer.get("sheet") or {}).get("neurons", ()):
        layer, number = neuron["layer"], neuron["neuron"]
        neuron["key"] = lists.tokens("ff_key", layer, number, NEURON_TOKENS)
        neuron["value"] = lists.tokens("ff_value", layer, number, NEURON_TOKENS, neuron["end"])


def rows(view: "PromptView") -> Iterator[Record]:
    for head in view.sheet["heads"] if view.sheet else ():
        where: Record = {
            "panel": "sheet", "layer": head["layer"], "head": head["head"], "position": head["position"]
        }  # fmt: skip
        yield from listed({**where, "part": "looks_for"}, head["looks_for"], "score")
        yield from listed({**where, "part": "found_by"}, head["found_by"], "score")
        yield from listed({**where, "part": "sends"}, head["sends"], "score")


def tables(view: "PromptView") -> list[Table]:
    return [] if view.sheet is None else [Table(f"{view.model}, the sheet", COLUMNS, view.sheet["heads"])]


SHEET = Panel(
    name="sheet", title="Sheet", working="reading every head", rows=rows, says_nothing_of=(), tables=tables,
    has_lists=True, add_lists=add_lists,
)  # fmt: skip
