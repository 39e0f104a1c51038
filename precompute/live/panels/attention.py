"""The panel `attention`: how much every head attends from each position to each other, and from the chosen position in
every layer, however long the prompt is."""

from lexiscope.precompute.live.panels.panel import Fields, Panel, PanelRun
from lexiscope.precompute.live.panels.records import attention_layers
from lexiscope.precompute.live.weights import Weights
from lexiscope.precompute.live.wire.answers import HeadAttention
from lexiscope.precompute.live.wire.asks import PromptAsk

NUMBER_COST = 7000  # multiplications that take as long as a weight, which becomes text and is multiplied with nothing


def _answer(run: PanelRun) -> Fields:
    """Return the attention weights of every head in the layers whose attention was kept."""
    heads: list[HeadAttention] = []
    for layer, weights in run.record.weights.items():
        for head, rows in enumerate(weights.tolist()):
            upto = [row[: query + 1] for query, row in enumerate(rows)] if run.w.shape.causal else rows
            heads.append({"layer": layer, "head": head, "weights": upto})
    seen = run.record.position + 1 if run.w.shape.causal else len(run.record.tokens)
    return {"attention": heads, "looks": [weights[:, :seen].tolist() for weights in run.record.looks]}


def _cost(w: Weights, _: PromptAsk, tokens: int) -> float:
    heads = len(attention_layers(w.shape, tokens, 0)) * w.shape.n_heads
    return NUMBER_COST * (heads * (tokens + 1) / 2 + w.shape.n_layers * w.shape.n_heads) * tokens


PANEL = Panel(name="attention", keeps=frozenset({"weights", "looks"}), answer=_answer, cost=_cost)
