"""The panel `positions`: where heads would look by position alone, and what position adds to the scores of this run.

Where positions are learned, the vectors W_pos go alone through the layer's own norm, W_Q and W_K with their biases, and
a softmax: no token, no type of token and no earlier layer takes part. Where they are rotary, the curve of a head is the
score that the mean query and the mean key of this run have at each distance, by position · by position rotated. But for
a soft cap, which is applied to it, that is the mean score of all pairs of its queries and keys, put at that distance.
A softmax of the curve over the positions that each one sees is where the head would look by distance alone. Windows of
attention, which are longer than most prompts, are left out.

Learned positions also stay in the stream, beside everything else, which is called content here. With the scales of all
norms fixed as they are in this run, a state is position's part + content, and a head's score is a sum of four products
(query's position · key's position, position · content, ...) and of the terms that the biases of queries and keys take
part in. A part's share is its covariance with the score over the keys that a query sees, summed over all queries, and
divided by the same sum of the score's variance: the shares sum to 1, and one that is negative works against the others.
"""

from collections.abc import Iterator, Sequence

import torch
from torch import Tensor

from lexiscope.precompute.index.layer.lists import CLEAR_SHARE
from lexiscope.precompute.index.layout import LOOKS
from lexiscope.precompute.live.panels.panel import Fields, Panel, PanelRun
from lexiscope.precompute.live.panels.records import LayerHeads, Record
from lexiscope.precompute.live.vocabulary import Tick
from lexiscope.precompute.live.weights import Weights
from lexiscope.precompute.live.wire.answers import ChosenPositions, Positions, PositionShares, ScoreParts
from lexiscope.precompute.live.wire.asks import PromptAsk
from lexiscope.precompute.weights.architectures.base import rotated

MOST_DISTANCES = 64  # the largest distance of a head's curve
NUMBER_COST = 600  # multiplications that take as long as all that is done with a head's score of two positions


def shares(weights: Tensor, causal: bool) -> list[PositionShares]:
    """Return what share of the weights (heads, T, T) of each head is on the first position, on the one before, on the
    same one and on the next: the mean over all queries but the first, which sees little else."""
    diagonals = [weights.diagonal(offset, 1, 2)[:, start:] for offset, start in ((-1, 0), (0, 1), (1, 1))]
    sums = torch.stack([of.sum(dim=1) for of in (weights[:, 1:, 0], *diagonals)], dim=1)
    return [
        {"first": first, "previous": previous, "same": same, "next": None if causal else after}
        for first, previous, same, after in (sums / (weights.shape[1] - 1)).tolist()
    ]


def by_distance(w: Weights, layer: int, heads: LayerHeads) -> Tensor:
    """Return the scores (n_heads, T) of each head's mean query and mean key at the distances 0 to T - 1."""
    assert heads.rotation is not None
    T = len(heads.states)
    q, k = (w.head_states(kind, layer, heads.states).mean(dim=1, keepdim=True) for kind in ("w_q", "w_k"))
    cos, sin = heads.rotation
    scores = rotated(q.expand(-1, T, -1), (cos[:T], sin[:T])) * rotated(k, (cos[:1], sin[:1]))  # (n_heads, T, d_head)
    return w.capped(scores.sum(dim=2) * w.model.scale(layer), layer)


def by_position(w: Weights, layer: int, T: int) -> Tensor:
    """Return the scores (n_heads, T, T) of learned positions alone."""
    x = w.norm(w.model.W_pos[:T], "attention", layer)
    q, k = (w.head_states(kind, layer, x) for kind in ("w_q", "w_k"))
    return q @ k.transpose(1, 2) * w.model.scale(layer)


def position_states(w: Weights, record: Record) -> Iterator[Tensor]:
    """Yield of each layer the part (T, d_model) that learned positions have in the states that its attention reads."""
    part, before_norms = w.model.W_pos[: len(record.tokens)], iter(record.before_norms)
    for layer in range(w.shape.n_layers):
        norm = w.norm_numbers("attention", layer)
        read = norm.gained(part) * norm.scale(next(before_norms))
        yield read
        if not w.shape.causal:  # what an encoder's norms return is its stream
            norm = w.norm_numbers("ff", layer)
            part = norm.gained(read) * norm.scale(next(before_norms))


def parts_of_scores(w: Weights, layer: int, x: Tensor, positions: Tensor) -> list[Tensor]:
    """Return the parts (n_heads, T, T), in the order of ScoreParts, of the scores of states x (T, d_model), of which
    `positions` (T, d_model) is position's part."""
    sides = []
    for kind in ("w_q", "w_k"):
        W, bias = w.every_head(kind, layer).transpose(1, 2), w.every_bias(kind, layer)  # (n_heads, d_model, d_head)
        of_bias = torch.zeros_like(W[:, :1, :]) if bias is None else bias[:, None]
        sides.append((positions @ W, (x - positions) @ W, of_bias))
    (q_position, q_content, q_bias), (k_position, k_content, k_bias) = sides
    parts = [q @ k.transpose(1, 2) for q in (q_position, q_content) for k in (k_position, k_content)]
    with_q_bias = q_bias @ (k_position + k_content + k_bias).transpose(1, 2)  # (n_heads, 1, T)
    parts.append(with_q_bias + (q_position + q_content) @ k_bias.transpose(1, 2))
    return [part * w.model.scale(layer) for part in parts]


def shares_of_variance(parts: list[Tensor], seen: Tensor) -> list[ScoreParts | None]:
    """Return for each head the share of each part in the variance of its scores; None if they do not vary. `seen` (T,
    T) are flags of the keys that each query sees."""
    score = torch.stack(parts).sum(dim=0)
    centred = (score - (score * seen).sum(dim=2, keepdim=True) / seen.sum(dim=1)[:, None]) * seen
    variance = centred.square().sum(dim=(1, 2))
    of_parts = torch.stack([(part * centred).sum(dim=(1, 2)) for part in parts], dim=1) / variance[:, None]
    return [
        _named(of_head) if varies else None
        for of_head, varies in zip(of_parts.tolist(), (variance > 0).tolist(), strict=True)
    ]


def _named(parts: Sequence[float]) -> ScoreParts:
    """Return the five parts by their names."""
    return dict(zip(ScoreParts.__annotations__, parts, strict=True))  # type: ignore[return-value]


def words_of(shares: PositionShares) -> str | None:
    """Return in words where at least half of these weights are; None if that is nowhere."""
    best = max(LOOKS, key=lambda name: shares[name] or 0.0)  # type: ignore[literal-required]
    return LOOKS[best] if (shares[best] or 0.0) >= CLEAR_SHARE else None  # type: ignore[literal-required]


def positions(w: Weights, record: Record, ask: PromptAsk, tick: Tick) -> Positions:
    """Tell of every head where it looks by position alone, and in this run, and more of the head that was asked
    about."""
    T, is_learned, causal = len(record.tokens), w.shape.positions == "learned", w.shape.causal
    seen = torch.ones(T, T, dtype=torch.bool, device=w.device)
    seen = seen.tril() if causal else seen
    answer: Positions = {"by": "position" if is_learned else "distance", "even": None, "heads": [], "chosen": None}
    if T == 1:
        return answer
    answer["even"] = float((1 / seen[1:].sum(dim=1)).mean())
    at = torch.arange(T, device=w.device)
    distances = (at[:, None] - at).clamp(min=0)
    of_positions = position_states(w, record) if is_learned else iter(())
    for layer, heads in sorted(record.heads.items()):
        tick(0)
        curve, parts = torch.empty(0), []
        if is_learned:
            scores = by_position(w, layer, T)
            parts = parts_of_scores(w, layer, heads.states, next(of_positions))
        else:
            curve = by_distance(w, layer, heads)
            scores = curve[:, distances]
        alone = scores.masked_fill(~seen, -torch.inf).softmax(dim=2)
        of_variance = shares_of_variance(parts, seen) if is_learned else [None] * w.shape.n_heads
        found = zip(shares(alone, causal), shares(heads.weights, causal), of_variance, strict=True)
        answer["heads"] += [
            {**here, "layer": layer, "head": head, "words": words_of(here), "attention": in_run, "parts": of_parts}
            for head, (here, in_run, of_parts) in enumerate(found)
        ]
        if layer == record.layer and ask.head is not None:
            answer["chosen"] = _chosen(record, ask.head, curve, alone, parts, seen)
    return answer


def _chosen(
    record: Record, head: int, curve: Tensor, alone: Tensor, parts: Sequence[Tensor], seen: Tensor
) -> ChosenPositions:
    """Describe one head: its curve by distance, or the parts of its scores from the chosen position."""
    weights, here = record.heads[record.layer].weights[head], record.position
    chosen: ChosenPositions = {"layer": record.layer, "head": head, "distances": None, "keys": None}
    if not parts:
        chosen["distances"] = [
            {
                "distance": d, "score": score, "alone": float(alone[head].diagonal(-d).mean()),
                "attention": float(weights.diagonal(-d).mean()),
            }
            for d, score in enumerate(curve[head, : MOST_DISTANCES + 1].tolist())
        ]  # fmt: skip
        return chosen
    rows = torch.stack([part[head, here] for part in parts], dim=1)[seen[here]]  # (keys, parts)
    chosen["keys"] = [
        {"position": key, "score": sum(row), "weight": float(weights[here, key]), **_named(row)}
        for key, row in enumerate(rows.tolist())
    ]
    return chosen


def _answer(run: PanelRun) -> Fields:
    return {"positions": positions(run.w, run.record, run.ask, run.tick("positions"))}


def _cost(w: Weights, _: PromptAsk, tokens: int) -> float:
    """Return the cost: queries and keys of all positions, of positions alone and of their parts, and all scores."""
    s = w.shape
    is_learned = s.positions == "learned"
    states = (4 if is_learned else 1) * tokens * (s.count("w_q") + s.count("w_k")) * s.d_model
    products = 7 * s.d_head if is_learned else 0
    return s.n_layers * (states + s.n_heads * tokens * tokens * (products + NUMBER_COST))


PANEL = Panel(name="positions", keeps=frozenset({"every", "before_norms"}), answer=_answer, cost=_cost)
