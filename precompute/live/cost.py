"""Estimate what an ask costs, in multiplications, from the model's shape and the ask, before anything is computed.
Other work is counted as the multiplications that take as long; a worker turns the cost into seconds."""

from collections.abc import Collection, Iterable
from typing import Any

from lexiscope.precompute.live.beforehand import SENTENCE_TOKENS, SENTENCES
from lexiscope.precompute.live.by_words.transition import DRAWS
from lexiscope.precompute.live.first_tokens import first_tokens_cost
from lexiscope.precompute.live.panels import PANELS
from lexiscope.precompute.live.parameters import LoadedParameters
from lexiscope.precompute.live.weights import Weights
from lexiscope.precompute.live.wire import asks
from lexiscope.precompute.live.wire.fields import Ask
from lexiscope.precompute.shape import DIRECTIONS, Shape

PASS_OVERHEAD_TOKENS = 24  # tokens added to the length of each pass, because a short pass reads every matrix, too
PAIRS_SHARE = 0.2  # time of a pair search on one thread, as a share of the time of computing all products
STRENGTH_COST = 200  # multiplications that take as long as the strength of a neuron for a pair
RANK_COST = 70  # multiplications that take as long as comparing a token with one whose rank is counted


def token_cost(shape: Shape) -> int:
    """Return the multiplications of one token with the matrices of one layer."""
    return sum(shape.count(kind) for kind in shape.weight_kinds) * shape.d_model


def row_cost(shape: Shape) -> int:
    """Return the multiplications of one vector with the whole vocabulary."""
    return shape.d_vocab * shape.d_model


def ask_cost(w: LoadedParameters, ask: Ask[Any], tokens: int = 0, made: Collection[str] = ()) -> float:
    """Return the cost of any ask. `tokens` is the length of its text, or the number of states that it gives. What a
    reading makes of the whole vocabulary costs something only if it is not among those that are `made`."""
    s = w.shape
    reading = getattr(ask, "reading", getattr(ask, "source", ""))
    vocabulary = 0 if reading in made else vocabulary_cost(s, reading)
    match ask:
        case asks.PromptAsk() if isinstance(w, Weights):
            return prompt_cost(w, ask, tokens)
        case asks.SeedsAsk():
            vectors = sum(s.n_layers * s.count(kind) for kind in set(ask.kinds) & set(s.kinds))
            rows = 1 + (2 * s.n_layers * s.n_heads if ask.heads else 0)
            lists = ask.k * first_tokens_cost(s, ask.unbuilt)
            lists += vocabulary + directions_cost(w, ask.kinds, range(s.n_layers))
            return vectors * s.d_model + rows * row_cost(s) + lists
        case asks.RelationAsk():
            return len(ask.pairs) * s.n_layers * s.n_heads * row_cost(s) + vocabulary
        case asks.TransitionAsk():
            n, neurons, kinds = len(ask.pairs), s.n_layers * s.d_mlp, 3 if s.gated else 2
            drawn = kinds * neurons * (DRAWS + n) * s.d_model + STRENGTH_COST * neurons * DRAWS * n
            return drawn + 2 * kinds * min(ask.k, neurons) * (row_cost(s) + RANK_COST * n * s.d_vocab)
        case asks.ThroughHeadsAsk():
            heads = len(ask.layers) * (s.n_heads if ask.head is None else 1)
            return 2 * len(ask.words) * heads * row_cost(s) + vocabulary
        case asks.StatesAsk():
            layers = s.n_layers if ask.layer is None else min(ask.layer + 1, s.n_layers)
            scores = 2 * tokens * tokens * s.n_heads * s.d_head
            return layers * ((PASS_OVERHEAD_TOKENS + tokens) * token_cost(s) + scores) + tokens * row_cost(s)
        case asks.BeforehandAsk():  # the sentences are run once, for the first token that is asked for
            return sentences_cost(s) + 2 * row_cost(s)
        case asks.StatesReadingAsk():
            return tokens * row_cost(s)
        case asks.ReadingAsk():
            return row_cost(s) + directions_cost(w, (ask.kind,), (ask.layer,)) + vocabulary
        case asks.PairsReadingAsk():
            return PAIRS_SHARE * s.d_vocab**2 * s.d_head + vocabulary
        case _:
            return row_cost(s)


def directions_cost(w: LoadedParameters, kinds: Iterable[str], layers: Iterable[int]) -> float:
    """Return the cost of the directions (singular vectors of heads' matrices) that are not computed yet: each is
    multiplied with the vocabulary to find its sign. All directions of a matrix are computed together."""
    s, layers = w.shape, list(layers)
    asked = {*kinds}
    of_matrices = [pair[0] for pair in DIRECTIONS.values() if not asked.isdisjoint(pair)]
    missing = sum(w.lacks(kind, layer) for kind in of_matrices for layer in layers)
    return missing * s.n_heads * s.d_head * row_cost(s)


def prompt_cost(w: Weights, ask: asks.PromptAsk, tokens: int) -> float:
    """Return the cost of a run with its panels. A run with changes is repeated without them, and with a second text if
    there is one; of these other runs only the panel `evolution` is made. `tokens` is the length of the longer text."""
    s = w.shape
    runs = ask.runs
    scores = 2 * tokens * tokens * s.n_heads * s.d_head  # the attention scores and mixed values of one layer
    cost: float = runs * s.n_layers * (PASS_OVERHEAD_TOKENS * token_cost(s) + scores)
    cost += sum(panel.cost(w, ask, tokens) for panel in PANELS if panel.name in ask.panel)
    return progress_cost(w, ask, tokens) + runs * row_cost(s) + cost  # the rows of predictions


def sentences_cost(shape: Shape) -> float:
    """Return the cost of running the sentences that Lexiscope has."""
    return len(SENTENCES) * (PASS_OVERHEAD_TOKENS + SENTENCE_TOKENS) * shape.n_layers * token_cost(shape)


def progress_cost(w: Weights, ask: asks.PromptAsk, tokens: int) -> float:
    """Return the part of the cost that progress reports count: sending tokens through layers, and multiplying the
    panels' vectors with the vocabulary."""
    s = w.shape
    rows = sum(panel.rows(w, ask, tokens) for panel in PANELS if panel.name in ask.panel)
    return ask.runs * tokens * s.n_layers * token_cost(s) + rows * row_cost(s)


def vocabulary_cost(shape: Shape, reading: str) -> float:
    """Return the cost of what a reading makes of the whole vocabulary: send every token through the first MLP or block,
    or multiply the vocabulary with itself in float64, which takes twice as long."""
    match reading:
        case "mlp":
            return shape.d_vocab * sum(kind.startswith("ff_") for kind in shape.kinds) * shape.d_mlp * shape.d_model
        case "first":
            return shape.d_vocab * token_cost(shape)
        case "pseudo":
            return 2 * row_cost(shape) * shape.d_model
        case _:
            return 0
