"""Show the panel `neurons`: the most active neurons at the position, the one that was asked about, and the most active
ones in the whole text."""

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from lexiscope.app.formats.table import Column, Table
from lexiscope.app.lists.first_tokens import FirstLists
from lexiscope.app.pages.prompt.panel import Panel, Record, listed, numbers, token_at
from lexiscope.precompute.live.wire.answers import ActiveNeuron, Token
from lexiscope.precompute.live.wire.asks import PromptArguments

if TYPE_CHECKING:
    from lexiscope.app.pages.prompt.page import PromptView

NEURON_TOKENS = 5  # how many tokens of a neuron's key and value are shown
TOKENS_OF_CHOSEN = 15  # how many tokens are shown of the neuron that was asked about

COLUMNS = (
    Column("layer", "number"), Column("neuron", "number"), Column("coefficient", "number"),
    Column("strength", "number"), Column("key", "words", heading="key reads"),
    Column("value", "words", heading="value writes"), Column("end"),
)  # fmt: skip


def add_lists(answer: dict[str, Any], lists: FirstLists, _: PromptArguments) -> None:
    """Put the words of its vectors beside each neuron."""
    for name in ("neurons", "activations", "strongest"):
        for neuron in answer.get(name) or ():
            _add_words(neuron, lists, NEURON_TOKENS)
    if chosen := answer.get("neuron"):
        _add_words(chosen, lists, TOKENS_OF_CHOSEN)

        def of_up(end: str) -> list[Token] | None:
            return lists.tokens("ff_up", chosen["layer"], chosen["neuron"], TOKENS_OF_CHOSEN, end)

        chosen["up"] = {"top": of_up("top"), "bottom": of_up("bottom")} if lists.index.shape.gated else None


def _add_words(neuron: ActiveNeuron, lists: FirstLists, n: int) -> None:
    layer, number = neuron["layer"], neuron["neuron"]
    neuron["key"] = lists.tokens("ff_key", layer, number, n)
    neuron["value"] = lists.tokens("ff_value", layer, number, n, neuron["end"])
    neuron["computed"] = lists.is_computed("ff_key", layer, number)


def rows(view: "PromptView") -> Iterator[Record]:
    here: Record = {"position": view.position}
    for rank, neuron in enumerate(view.neurons or (), 1):
        yield from _neuron({"panel": "neurons", **here}, neuron, rank)
    if chosen := view.neuron:
        where = {"panel": "neuron", "layer": chosen["layer"], "neuron": chosen["neuron"]}
        yield from _neuron({"panel": "neuron", **here}, chosen, chosen["rank"])
        if chosen["up"]:
            yield from listed({**where, **here, "part": "up", "end": "top"}, chosen["up"]["top"])
            yield from listed({**where, **here, "part": "up", "end": "bottom"}, chosen["up"]["bottom"])
        yield from _coefficients(where, chosen["coefficients"], view.position)
    for panel, neurons in (("activations", view.activations), ("strongest", view.strongest)):
        for rank, neuron in enumerate(neurons or (), 1):
            yield from _neuron({"panel": panel, "position": neuron["position"]}, neuron, rank)
            where = {"panel": panel, "layer": neuron["layer"], "neuron": neuron["neuron"]}
            yield from _coefficients(where, neuron["coefficients"], neuron["position"])


def _neuron(where: Record, neuron: ActiveNeuron, rank: int) -> Iterator[Record]:
    """Yield rows with a neuron's numbers and the first tokens of its stored lists."""
    where = {**where, "layer": neuron["layer"], "neuron": neuron["neuron"]}
    yield from numbers({**where, "rank": rank}, neuron, ("coefficient", "strength"))
    yield {**where, "rank": rank, "measure": "first_only", "value": int(neuron["first_only"])}
    yield from listed({**where, "part": "key", "end": "top"}, neuron["key"])
    yield from listed({**where, "part": "value", "end": neuron["end"]}, neuron["value"])


def _coefficients(where: Record, coefficients: Sequence[float], position: int | None) -> Iterator[Record]:
    """Yield a neuron's coefficients at all positions except `position`, which another row has."""
    for at, coefficient in enumerate(coefficients):
        if at != position:
            yield {**where, "position": at, "measure": "coefficient", "value": coefficient}


def tables(view: "PromptView") -> list[Table]:
    if view.neurons is None:
        return []
    title = f"{view.model}, most active neurons at {token_at(view, view.position)} ({view.lens})"
    return [Table(title, COLUMNS, view.neurons)]


NEURONS = Panel(
    name="neurons", title="Neurons", rows=rows, says_nothing_of=("convention",), tables=tables, has_lists=True,
    add_lists=add_lists,
)  # fmt: skip
