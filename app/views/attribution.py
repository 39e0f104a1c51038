"""The panel `attribution` of a run: what heads and neurons added to a token's logit, with their words beside it."""

from lexiscope.app.views.first_tokens import FirstLists
from lexiscope.app.views.tokens import TokenPair, token_pairs
from lexiscope.precompute.errors import IndexFault, NotFound
from lexiscope.precompute.index.index import Index
from lexiscope.precompute.live.wire.answers import Attribution, PartTerm

FIRST = 5  # tokens of a neuron's value
PAIRS = 2  # of a head's VO


def attribution_view(lists: FirstLists, attribution: Attribution) -> Attribution:
    """Return the attribution with the words of its heads and neurons."""
    return {
        **attribution,
        "raises": [_part_term(lists, part) for part in attribution["raises"]],
        "lowers": [_part_term(lists, part) for part in attribution["lowers"]],
    }


def _part_term(lists: FirstLists, part: PartTerm) -> PartTerm:
    layer, head, neuron, end = part["layer"], part["head"], part["neuron"], part["end"] or "top"
    return {
        **part,
        "pairs": None if head is None else _pairs(lists.index, layer, head),
        "value": None if neuron is None else lists.tokens("ff_value", layer, neuron, FIRST, end),
        "computed": neuron is not None and lists.is_computed("ff_value", layer, neuron, end),
    }


def _pairs(index: Index, layer: int, head: int) -> list[TokenPair] | None:
    """The first pairs of different words under the lens that reads best; none while the layer is not built."""
    if "vo" not in index.stored.matrices:
        return None
    lens = "cosine" if "cosine" in index.stored.lenses else index.stored.lens
    try:
        ids, scores, (top, _) = index.shard(layer).heads.both_ends("vo", head, lens, "words", PAIRS)
    except (IndexFault, NotFound):
        return []
    return token_pairs(index.tokens, ids[:top].tolist(), scores[:top].tolist())
