"""Show the panel `positions`: where heads would look by position alone, and what position adds to their scores."""

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from lexiscope.app.formats.table import Column, Table
from lexiscope.app.pages.prompt.panel import Panel, Record, numbers, token_at
from lexiscope.precompute.index.layout import LOOKS
from lexiscope.precompute.live.wire.answers import ChosenPositions, PositionsOfHead

if TYPE_CHECKING:
    from lexiscope.app.pages.prompt.page import PromptView

SHOWN_HEADS = 25  # how many heads are shown to people: the clearest
PARTS = {
    "position_position": "position · position", "position_content": "position · content",
    "content_position": "content · position", "content_content": "content · content", "biases": "biases",
}  # fmt: skip


def rows(view: "PromptView") -> Iterator[Record]:
    found = view.positions
    for head in found["heads"] if found else ():
        where = {"panel": "positions", "layer": head["layer"], "head": head["head"]}
        for part, shares in (("alone", head), ("attention", head["attention"])):
            yield from numbers({**where, "part": part}, shares, LOOKS)
        if head["parts"]:
            yield from numbers({**where, "part": "variance"}, head["parts"], PARTS)
    if found and (chosen := found["chosen"]):
        where = {"panel": "positions", "layer": chosen["layer"], "head": chosen["head"]}
        for at in chosen["distances"] or ():  # as of a query so far behind a key at position 0
            places = {"part": "by_distance", "position": at["distance"], "to_position": 0}
            yield from numbers({**where, **places}, at, ("score", "alone", "attention"))
        for key in chosen["keys"] or ():
            places = {"part": "by_key", "position": view.position, "to_position": key["position"]}
            yield from numbers({**where, **places}, key, ("score", "weight", *PARTS))


def _clearest(head: PositionsOfHead) -> dict[str, Any]:
    """Return a head with the largest of its shares, and the same share in the run."""
    best = max(LOOKS, key=lambda name: head[name] or 0.0)  # type: ignore[literal-required]
    share, in_run = head[best], head["attention"][best]  # type: ignore[literal-required]
    parts = head["parts"] or dict.fromkeys(PARTS)
    return {**head, **parts, "words": head["words"] or "spread", "share": share, "in_run": in_run}


def tables(view: "PromptView") -> list[Table]:
    """Make a table of the heads that position alone says most of, and one of the head that was asked about."""
    found = view.positions
    if found is None:
        return []
    heads = sorted(map(_clearest, found["heads"]), key=lambda head: -head["share"])
    some = f"; {SHOWN_HEADS} of {len(heads)}" if len(heads) > SHOWN_HEADS else ""
    columns = (*COLUMNS, *OF_SCORES) if found["by"] == "position" else COLUMNS
    title = f"{view.model}, where heads look by {found['by']} alone{some}"
    every = [Table(title, columns, heads[:SHOWN_HEADS])]
    return [*every, _chosen(view, found["chosen"])] if found["chosen"] else every


def _chosen(view: "PromptView", chosen: ChosenPositions) -> Table:
    where = f"{view.model}, L{chosen['layer']}H{chosen['head']}"
    if chosen["distances"] is not None:
        return Table(f"{where}, by distance", BY_DISTANCE, chosen["distances"])
    keys = centred(chosen["keys"] or (), view)
    return Table(f"{where}, parts of its scores from {token_at(view, view.position)}, less their means", BY_KEY, keys)


def centred(keys: Sequence[Any], view: "PromptView") -> list[dict[str, Any]]:
    """Return scores of keys, and their parts, less the mean over keys, which changes no attention."""
    means = {name: sum(key[name] for key in keys) / len(keys) for name in ("score", *PARTS)}
    return [
        {**key, "token": view.tokens[key["position"]], **{name: key[name] - mean for name, mean in means.items()}}
        for key in keys
    ]


COLUMNS = (
    Column("layer", "number"), Column("head", "number"), Column("words", heading="looks at"), Column("share", "ratio"),
    Column("in_run", "ratio", heading="in this run"),
)  # fmt: skip
OF_SCORES = tuple(Column(name, "ratio", heading=heading) for name, heading in PARTS.items())
BY_DISTANCE = (
    Column("distance", "number"), Column("score", "number"), Column("alone", "ratio", heading="by distance alone"),
    Column("attention", "ratio", heading="in this run"),
)  # fmt: skip
BY_KEY = (
    Column("position", "number"), Column("token", "token"),
    *(Column(name, "number", heading=heading) for name, heading in PARTS.items()),
    Column("score", "number"), Column("weight", "ratio"),
)  # fmt: skip

POSITIONS = Panel(name="positions", title="Positions", rows=rows, tables=tables)
