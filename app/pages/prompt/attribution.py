"""Show the panel `attribution`: what heads and neurons added to a token's logit, with their words beside them."""

from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

from lexiscope.app.formats.table import Column, Table
from lexiscope.app.lists.first_tokens import FirstLists
from lexiscope.app.lists.view import TokenPair, token_pairs, visible
from lexiscope.app.pages.prompt.panel import Panel, Record
from lexiscope.precompute.errors import IndexFault, NotFound
from lexiscope.precompute.index.index import Index
from lexiscope.precompute.live.wire.asks import PromptArguments

if TYPE_CHECKING:
    from lexiscope.app.pages.prompt.page import PromptView

VALUE_TOKENS = 5  # how many tokens of a neuron's value are shown
VO_PAIRS = 2  # how many pairs of a head's VO are shown


def add_lists(answer: dict[str, Any], lists: FirstLists, _: PromptArguments) -> None:
    if found := answer.get("attribution"):
        add_words((*found["raises"], *found["lowers"], *found["path"]), lists)


def add_words(parts: Iterable[dict[str, Any]], lists: FirstLists) -> None:
    """Put the words of its value beside each neuron, and the first pairs of its VO beside each head."""
    for part in parts:
        layer, head, neuron, end = part["layer"], part["head"], part["neuron"], part["end"] or "top"
        part["pairs"] = None if head is None else _pairs(lists.index, layer, head)
        part["value"] = None if neuron is None else lists.tokens("ff_value", layer, neuron, VALUE_TOKENS, end)
        part["computed"] = neuron is not None and lists.is_computed("ff_value", layer, neuron, end)


def _pairs(index: Index, layer: int, head: int) -> list[TokenPair] | None:
    """Return a head's first pairs of different words under the lens (dot or cosine) whose lists are the most readable;
    none while the layer is not built."""
    if "vo" not in index.stored.matrices:
        return None
    lens = "cosine" if "cosine" in index.stored.lenses else index.stored.lens
    try:
        ids, scores, (top, _) = index.shard(layer).heads.both_ends("vo", head, lens, "words", VO_PAIRS)
    except (IndexFault, NotFound):
        return []
    return token_pairs(index.tokens, ids[:top].tolist(), scores[:top].tolist())


def rows(view: "PromptView") -> Iterator[Record]:
    """Yield a row for every term of the logit: each head, the biases, and the sum over each layer's neurons; then the
    largest terms of single neurons."""
    found = view.attribution
    if not found:
        return
    here: Record = {"panel": "attribution", "position": view.position}
    of_others = {"token": found["against"]} if isinstance(found["against"], dict) else {}
    yield {**here, "part": "logit", "token": found["token"], "measure": "logit", "value": found["logit"]}
    yield {**here, "part": "baseline", **of_others, "measure": "logit", "value": found["baseline"]}
    for each in found["sums"]:
        yield {**here, "part": each["part"], "measure": "sum", "value": each["term"]}
    for row in found["layers"]:
        of_layer = {**here, "layer": row["layer"], "measure": "term"}
        for head, term in enumerate(row["heads"]):
            yield {**of_layer, "part": "head", "head": head, "value": term}
        yield {**of_layer, "part": "attention_bias", "value": row["attention_bias"]}
        yield {**of_layer, "part": "neurons", "value": row["neurons"]}
        yield {**of_layer, "part": "ff_bias", "value": row["ff_bias"]}
    for end, parts in (("top", found["raises"]), ("bottom", found["lowers"])):
        for rank, part in enumerate(parts, 1):
            if part["neuron"] is not None:
                where = {**here, "layer": part["layer"], "part": "neuron", "neuron": part["neuron"]}
                yield {**where, "end": end, "rank": rank, "measure": "term", "value": part["term"]}


def tables(view: "PromptView") -> list[Table]:
    found = view.attribution
    if found is None:
        return []
    against = found["against"]
    other = against if isinstance(against, str) else visible(against["token"])
    logit = f"the logit of {visible(found['token']['token'])}, {found['logit']:.3f}, against {other}"
    return [
        Table(f"{view.model}, {logit}", (Column("part"), Column("term", "number")), found["sums"]),
        Table("What raises it most", COLUMNS, found["raises"]),
        Table("What lowers it most", COLUMNS, found["lowers"]),
    ]


def name_of(part: Mapping[str, Any]) -> str:
    return f"L{part['layer']}" + (f"H{part['head']}" if part["neuron"] is None else f"N{part['neuron']}")


COLUMNS = (
    Column("where", get=name_of), Column("term", "number"), Column("share", "ratio"),
    Column("value", "words", heading="writes"), Column("pairs", "pairs", heading="maps"),
)  # fmt: skip

ATTRIBUTION = Panel(
    name="attribution", title="Why this word", rows=rows, tables=tables, has_lists=True, add_lists=add_lists
)
