"""The panel `sweep`: every head, or every strong neuron, switched off one by one at all positions of the text, and what
that changes of the log probability of a token. Beside it stands the part's direct effect, its term of the panel
`attribution`.

The runs without a part go through the model together. Each begins at the layer of its part, because nothing changes
before. A model that predicts no tokens has cosines instead of log probabilities.
"""

from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor

from lexiscope.precompute.errors import BadRequest, LexiscopeError
from lexiscope.precompute.live.batches import MOST_PASS_TOKENS, free_memory, halving
from lexiscope.precompute.live.first_tokens import first_tokens_cost, promoted_end
from lexiscope.precompute.live.panels import attribution
from lexiscope.precompute.live.panels.panel import Panel, PanelRun
from lexiscope.precompute.live.run import Change, Watcher, run
from lexiscope.precompute.live.vocabulary import Tick, likelihoods
from lexiscope.precompute.live.weights import Weights
from lexiscope.precompute.live.wire.answers import SWEEP_NAMED, Sweep, SweptPart
from lexiscope.precompute.live.wire.asks import STRONGEST_NEURONS, PromptAsk
from lexiscope.precompute.live.wire.grammar import HeadOff, NeuronSet
from lexiscope.precompute.shape import Shape

MOST_NEURONS = 1000  # most neurons of one sweep

Part = HeadOff | NeuronSet


class _Ticking(Watcher):
    """Report the tokens that have passed a layer, as rows of a product with the vocabulary that take as long."""

    def __init__(self, shape: Shape, tick: Tick) -> None:
        self.rows, self.tick = rows_of_token(shape), tick

    def stream(self, layer: int, after: str, x: Tensor) -> None:  # noqa: ARG002
        if after == "ff":
            self.tick(self.rows * x.shape[0] * x.shape[1])


def sweep(asked: PanelRun) -> Sweep:
    w, record, token = asked.w, asked.record, asked.token
    terms = attribution.terms_of(w, record, token, asked.against)
    of_heads = asked.ask.over == "heads"
    parts, cut = (_heads(asked), None) if of_heads else _strong_neurons(asked)
    changes = changes_without(asked, parts, asked.tick("sweep"))
    swept: list[SweptPart] = []
    for part, change in zip(parts, changes, strict=True):
        layer, head, neuron = _place(part)
        swept.append({
            "layer": layer, "head": head, "neuron": neuron, "change": change,
            "direct": float(terms.heads[layer, head] if neuron is None else terms.neurons[layer, neuron]),
            "strength": None if neuron is None else float(record.strength(layer)[neuron]),
            "end": None if neuron is None else promoted_end(float(record.coefficients[layer][neuron])),
        })  # fmt: skip
    against = asked.against
    return {
        "token": {"id": token},
        "against": {"id": against} if isinstance(against, int) else against,
        "log_p": float(scores(w, record.steps[-1][None], token)),
        "over": asked.ask.over,
        "of": len(parts),
        "cut": cut,
        "spearman": spearman([part["change"] for part in swept], [part["direct"] for part in swept]),
        "parts": sorted(swept, key=lambda part: -abs(part["change"])),
    }


def changes_without(asked: PanelRun, parts: Sequence[Part], tick: Tick) -> list[float]:
    """Return for each of the parts, in rising layers, how much the token's log probability changes without it. All
    other changes of the run stay."""
    w, record = asked.w, asked.record
    T = len(record.tokens)
    tokens, watcher = torch.tensor([record.tokens], device=w.device), _Ticking(w.shape, tick)

    def changed(some: Sequence[Part]) -> list[float]:
        each = [[*(other for other in record.changes if _place(other) != _place(part)), part] for part in some]
        last = run(w, tokens, [T], [record.changes, *each], watcher, [part.layer for part in some])
        found = scores(w, last[:, record.position], asked.token, tick)
        if not found.isfinite().all():
            raise BadRequest("the run overflows without one of its parts: use smaller coefficients")
        return (found[1:] - found[0]).tolist()

    found: list[float] = []
    together = max(1, MOST_PASS_TOKENS // T - 1)  # besides the run with all parts
    for start in range(0, len(parts), together):
        for change in halving(parts[start : start + together], changed, lambda: free_memory(w.device)):
            if isinstance(change, LexiscopeError):
                raise change
            found.append(change)
    return found


def scores(w: Weights, x: Tensor, token: int, tick: Tick = lambda _: None) -> Tensor:
    """Return the token's log probability, or its cosine if the model predicts no tokens, for last states x
    (n, d_model)."""
    return likelihoods(w, x, 1, torch.full((len(x), 1), token, device=w.device), tick).log_p[:, 0]


def _heads(asked: PanelRun) -> list[Part]:
    """Return all heads that are not off already."""
    s = asked.w.shape
    every = (HeadOff(layer=layer, head=head) for layer in range(s.n_layers) for head in range(s.n_heads))
    return [head for head in every if head not in asked.ask.off]


def _strong_neurons(asked: PanelRun) -> tuple[list[Part], float | None]:
    """Return the neurons whose strength over the text is at least the cut, in rising layers, and that cut; neurons that
    are off already, or never fire, are left out."""
    record, d_mlp = asked.record, asked.w.shape.d_mlp
    strength = torch.cat([record.strength(layer) for layer in range(asked.w.shape.n_layers)])
    for off in asked.ask.off:
        if off.neuron is not None and off.position is None:
            strength[off.layer * d_mlp + off.neuron] = 0
    strongest = strength.sort(descending=True, stable=True)
    count, cut = min(STRONGEST_NEURONS, int((strength > 0).sum())), asked.ask.cut
    if cut is not None:
        count = int(((strength >= cut) & (strength > 0)).sum())
    if count > MOST_NEURONS:
        raise BadRequest(
            f"{count:,} neurons of this run are as strong as cut={cut:g}: up to {MOST_NEURONS:,} are switched off one "
            f"by one. Ask for cut={1.01 * float(strongest.values[MOST_NEURONS - 1]):.3g}"
        )
    if cut is None and count:
        cut = float(strongest.values[count - 1])
    places = sorted(divmod(at, d_mlp) for at in strongest.indices[:count].tolist())
    return [NeuronSet(layer=layer, neuron=neuron) for layer, neuron in places], cut


def _place(change: Change) -> tuple[int, int | None, int | None]:
    return change.layer, change.head, change.neuron


def spearman(a: Sequence[float], b: Sequence[float]) -> float | None:
    """Return Spearman's rank correlation; None where one of the two has only one value."""
    if len({*a}) < 2 or len({*b}) < 2:
        return None
    return float(np.corrcoef(_ranks(a), _ranks(b))[0, 1])


def _ranks(values: Sequence[float]) -> "np.ndarray[tuple[int], np.dtype[np.float64]]":
    """Return the rank of each value; equal ones have their mean rank."""
    _, at, counts = np.unique(values, return_inverse=True, return_counts=True)
    return (np.cumsum(counts) - (counts - 1) / 2)[at]


def rows_of_token(shape: Shape) -> float:
    """Return how many rows of a product with the vocabulary take as long as one token that passes a layer."""
    return sum(shape.count(kind) for kind in shape.weight_kinds) / shape.d_vocab


def _size(w: Weights, ask: PromptAsk) -> int:
    """Return how many parts may be switched off."""
    if ask.over == "heads":
        return w.shape.n_layers * w.shape.n_heads
    return min(STRONGEST_NEURONS if ask.cut is None else MOST_NEURONS, w.shape.n_layers * w.shape.d_mlp)


def _passed(w: Weights, ask: PromptAsk, tokens: int) -> float:
    """Return how many tokens pass a layer: each run begins at the layer of its part."""
    return _size(w, ask) * tokens * (w.shape.n_layers + 1) / 2


def _cost(w: Weights, ask: PromptAsk, tokens: int) -> float:
    lists = SWEEP_NAMED * first_tokens_cost(w.shape, ask.unbuilt) if ask.over == "neurons" else 0
    of_attention = 2 * tokens * w.shape.n_heads * w.shape.d_head
    return _passed(w, ask, tokens) * of_attention + lists + attribution.cost(w, ask, tokens)


PANEL = Panel(
    name="sweep",
    keeps=frozenset({"steps", "mixed", "coefficients", "peaks"}),
    answer=lambda asked: {"sweep": sweep(asked)},
    rows=lambda w, ask, tokens: _passed(w, ask, tokens) * rows_of_token(w.shape) + _size(w, ask),
    cost=_cost,
    vectors=lambda answer, _: attribution.ends_of_values(answer["sweep"]["parts"][:SWEEP_NAMED]),
)
