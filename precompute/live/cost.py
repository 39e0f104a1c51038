"""What an ask costs, in multiplications: known from the model's shape and the ask, before anything is computed.
Whatever else takes time is counted as the multiplications that take as long: a worker turns them into seconds.
"""

from precompute.live.coverage import rows_of_products
from precompute.live.patterns import ALL_MESSAGES, MESSAGES
from precompute.live.records import attention_layers
from precompute.live.weights import Weights
from precompute.live.wire import PairsReadingAsk, PromptAsk, ReadingAsk, RelationAsk, SeedsAsk, ThroughHeadsAsk, Wire
from precompute.shape import Shape

PASS_TOKENS = 24  # a pass over few tokens reads every matrix, too: it takes as long as one over so many more
NUMBER_COST = 7000  # of an attention weight, which becomes text and is multiplied with nothing
PAIRS_SHARE = 0.2  # of all products that a search for pairs takes as long as, with its bounds and on one thread


def token_cost(shape: Shape) -> int:
    """Of one token in the matrices of one layer."""
    return sum(shape.count(kind) for kind in shape.kinds) * shape.d_model


def row_cost(shape: Shape) -> int:
    """Of one vector with the whole vocabulary."""
    return shape.d_vocab * shape.d_model


def ask_cost(w: Weights, ask: Wire, tokens: int = 0, *, has_mlp_vocabulary: bool = False) -> float:
    """Of any ask; `tokens` are those of a prompt. The vocabulary after the first MLP is made once, and then kept."""
    s = w.shape
    first_mlp = 0 if has_mlp_vocabulary else mlp_vocabulary_cost(s)
    match ask:
        case PromptAsk():
            return prompt_cost(w, ask, tokens)
        case SeedsAsk():
            vectors = sum(s.n_layers * s.count(kind) for kind in set(ask.kinds) & set(s.kinds))
            rows = 1 + (2 * s.n_layers * s.n_heads if ask.heads else 0)
            return vectors * s.d_model + rows * row_cost(s)
        case RelationAsk():
            return len(ask.pairs) * s.n_layers * s.n_heads * row_cost(s)
        case ThroughHeadsAsk():
            heads = len(ask.layers) * (s.n_heads if ask.head is None else 1)
            return 2 * len(ask.groups) * heads * row_cost(s)
        case ReadingAsk(reading="mlp"):
            return row_cost(s) + first_mlp
        case PairsReadingAsk():
            search = PAIRS_SHARE * s.d_vocab**2 * s.d_head
            return search + (first_mlp if ask.reading == "mlp" else 0)
        case _:
            return row_cost(s)


def prompt_cost(w: Weights, ask: PromptAsk, tokens: int) -> float:
    """Of a run with its panels, and beside one with interventions of the same without, which has only evolution."""
    s = w.shape
    runs = 2 if ask.interventions else 1
    scores = 2 * tokens * tokens * s.n_heads * s.d_head  # of attention, and values mixed by them, in one layer
    cost: float = runs * s.n_layers * (PASS_TOKENS * token_cost(s) + scores)
    rows = runs  # predictions
    if "patterns" in ask.panels:
        rows += s.n_heads * (1 + MESSAGES) + (ALL_MESSAGES if ask.head is not None else 0)
    if "attention" in ask.panels:
        heads = len(attention_layers(s, tokens, 0)) * s.n_heads
        cost += NUMBER_COST * heads * tokens * (tokens + 1) / 2
    return progress_cost(w, ask, tokens) + rows * row_cost(s) + cost


def progress_cost(w: Weights, ask: PromptAsk, tokens: int) -> float:
    """The part of it that reports of progress count: tokens through layers, and rows of evolution and coverage."""
    s = w.shape
    runs = 2 if ask.interventions else 1
    rows = 0
    if "evolution" in ask.panels:
        rows += runs * (2 * s.n_layers + 1) * tokens
    if "coverage" in ask.panels:
        rows += rows_of_products(w, tokens)
    return runs * tokens * s.n_layers * token_cost(s) + rows * row_cost(s)


def mlp_vocabulary_cost(shape: Shape) -> int:
    """Of every token through the first MLP."""
    matrices = sum(kind.startswith("ff_") for kind in shape.kinds)
    return shape.d_vocab * matrices * shape.d_mlp * shape.d_model
