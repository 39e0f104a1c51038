"""The panel `attribution` of a run: what heads and neurons added to a token's logit, with their words beside it."""

from typing import Annotated, Literal

from pydantic import Field
from typing_extensions import TypedDict

from lexiscope.app.views.first_tokens import FirstLists
from lexiscope.app.views.seeds import COMPUTED
from lexiscope.app.views.tokens import Token, TokenPair, token_pairs, tokens_of
from lexiscope.app.views.vectors import NOT_STORED
from lexiscope.precompute.errors import IndexFault, NotFound
from lexiscope.precompute.index.index import Index
from lexiscope.precompute.live.wire import answers as panels

FIRST = 5  # tokens of a neuron's value
PAIRS = 2  # of a head's VO
SHARE = "Of the sum of all terms; null where that is not positive"


class Attended(TypedDict):
    position: int
    weight: float


class PartTerm(TypedDict):
    """A head or a neuron, and what it added."""

    layer: int
    head: int | None
    neuron: int | None
    term: float
    share: Annotated[float | None, Field(description=SHARE)]
    attends: list[Attended] | None  # of a head: the positions it attends to most
    pairs: Annotated[list[TokenPair] | None, NOT_STORED]  # of a head: the first pairs of words of its VO
    coefficient: float | None  # of a neuron
    value: Annotated[list[Token] | None, NOT_STORED]  # of a neuron: at the end to which its coefficient pushes
    end: str | None
    first_only: bool | None  # of a neuron: it fires on the first token much more than anywhere else
    computed: Annotated[bool, COMPUTED]


class LayerTerms(TypedDict):
    layer: int
    heads: tuple[float, ...]
    attention_bias: float
    neurons: float  # all of them together
    ff_bias: float
    attention: float  # all heads and the bias
    ff: float  # all neurons and the bias


class NamedTerm(TypedDict):
    part: str
    term: float


class Attribution(TypedDict):
    """What each part of the run added to the token's logit directly; the terms sum to logit - baseline."""

    token: Token
    against: Token | Literal["mean", "none"]
    logit: float  # before a soft cap; the cosine, where the model predicts no tokens
    baseline: float  # the logit of `against`
    sums: list[NamedTerm]  # all terms, put together by what they are of
    layers: list[LayerTerms]
    raises: list[PartTerm]  # the largest of all heads and neurons
    lowers: list[PartTerm]  # the most negative


def attribution_view(lists: FirstLists, attribution: panels.Attribution) -> Attribution:
    tokens, layers = lists.index.tokens, attribution.layers
    against: int | Token | Literal["mean", "none"] = attribution.against
    if isinstance(against, int):
        against = tokens_of(tokens, (against,))[0]
    sums = {
        "embedding": attribution.embedding,
        "positions": attribution.positions,
        "heads": sum(sum(row.heads) for row in layers),
        "attention_bias": sum(row.attention_bias for row in layers),
        "neurons": sum(row.neurons for row in layers),
        "ff_bias": sum(row.ff_bias for row in layers),
        "final_bias": attribution.final_bias,
        "unembedding_bias": attribution.unembedding_bias,
    }
    total = attribution.logit - attribution.baseline
    return {
        "token": tokens_of(tokens, (attribution.token,))[0],
        "against": against,
        "logit": attribution.logit,
        "baseline": attribution.baseline,
        "sums": [{"part": part, "term": term} for part, term in sums.items() if term is not None],
        "layers": [_layer(row) for row in layers],
        "raises": [_part_term(lists, part, total) for part in attribution.raises],
        "lowers": [_part_term(lists, part, total) for part in attribution.lowers],
    }


def _layer(row: panels.LayerTerms) -> LayerTerms:
    return {
        "layer": row.layer,
        "heads": row.heads,
        "attention_bias": row.attention_bias,
        "neurons": row.neurons,
        "ff_bias": row.ff_bias,
        "attention": sum(row.heads) + row.attention_bias,
        "ff": row.neurons + row.ff_bias,
    }


def _part_term(lists: FirstLists, writer: panels.HeadTerm | panels.NeuronTerm, total: float) -> PartTerm:
    share = writer.term / total if total > 0 else None
    if isinstance(writer, panels.HeadTerm):
        attends: list[Attended] = [{"position": look.position, "weight": look.weight} for look in writer.attends]
        return {
            "layer": writer.layer, "head": writer.head, "neuron": None, "term": writer.term, "share": share,
            "attends": attends, "pairs": _pairs(lists.index, writer.layer, writer.head), "coefficient": None,
            "value": None, "end": None, "first_only": None, "computed": False,
        }  # fmt: skip
    end = "top" if writer.coefficient >= 0 else "bottom"
    return {
        "layer": writer.layer, "head": None, "neuron": writer.neuron, "term": writer.term, "share": share,
        "attends": None, "pairs": None, "coefficient": writer.coefficient,
        "value": lists.tokens("ff_value", writer.layer, writer.neuron, FIRST, end), "end": end,
        "first_only": writer.first_only, "computed": lists.is_computed("ff_value", writer.layer, writer.neuron, end),
    }  # fmt: skip


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
