"""The panel `coverage`: the paper's R_k (section 4.2) for one position of one run, against chance.

R_k of a layer is the share of the k first tokens of the hidden state that are among the k first tokens of at least one
active parameter, with
- the hidden state: the stream after the layer, through the final norm and W_U;
- the active parameters: the 100 neurons with the largest |coefficient| |value|, and every head. A neuron's tokens are
  those of its value with W_U, at the end to which its coefficient pushes (top if positive, bottom if negative: the
  stored lists); a head's are those of its output at the position, sum of weight times message, with W_U. A neuron or
  head that adds nothing has no tokens.
- chance: as many values as these (100 and the number of heads) drawn from the same layer's neurons, each at an
  end drawn as well, with a fixed seed: the same for every prompt.
k = 10. Models with fewer neurons use all they have.
"""

from collections.abc import Callable

import torch
from torch import Tensor

from precompute.live.records import Record
from precompute.live.vocabulary import BLOCK, blocks, top_tokens
from precompute.live.weights import Weights
from precompute.live.wire import CoverageRow

K = 10
ACTIVE = 100


class ValueLists:
    """The first K tokens of FF values at both ends, made when first asked for and kept: they belong to the weights."""

    def __init__(self, w: Weights) -> None:
        s, self.w = w.shape, w
        self.ids = torch.zeros(s.n_layers, s.d_mlp, 2, min(K, s.d_vocab), dtype=torch.int32, device=w.device)
        self.known = torch.zeros(s.n_layers, s.d_mlp, dtype=torch.bool, device=w.device)

    def of(self, layer: int, neurons: Tensor, negative: Tensor) -> Tensor:
        """neurons (n,), negative (n,) bool -> token ids (n, K)."""
        missing = neurons[~self.known[layer, neurons]]
        for part in blocks(missing, BLOCK):
            scores = self.w.vectors["ff_value"][layer, part] @ self.w.W_U.T
            self.ids[layer, part, 0] = top_tokens(scores, K).ids.int()
            self.ids[layer, part, 1] = top_tokens(scores.neg_(), K).ids.int()
            self.known[layer, part] = True
        return self.ids[layer, neurons, negative.int()]


def coverage(
    w: Weights, record: Record, value_norms: Tensor, lists: ValueLists, tick: Callable[[float], None]
) -> tuple[CoverageRow, ...]:
    """value_norms (n_layers, d_mlp)."""
    s = w.shape
    states = w.norm(torch.stack(record.states), "final")  # (n_layers, d_model)
    heads = torch.cat([mixed[:, None] @ w.heads("w_o", layer) for layer, mixed in enumerate(record.mixed)])[:, 0]
    both = torch.cat((states, heads))  # (n_layers + n_layers * n_heads, d_model)
    first = torch.cat([top_tokens(part @ w.W_U.T, K).ids for part in blocks(both)])
    first = first.masked_fill((both == 0).all(dim=1)[:, None], -1)
    hidden, of_heads = first[: s.n_layers], first[s.n_layers :].view(s.n_layers, -1)
    rows = []
    for layer, coefficients in enumerate(record.coefficients):
        tick(1 / s.n_layers)
        strongest = (coefficients.abs() * value_norms[layer]).topk(min(ACTIVE, s.d_mlp)).indices
        strongest = strongest[coefficients[strongest] != 0]
        active = lists.of(layer, strongest, coefficients[strongest] < 0)
        drawn, negative = (part.to(w.device) for part in random_values(s.d_mlp, ACTIVE + s.n_heads, layer))
        covered = torch.isin(hidden[layer], torch.cat((active.flatten().long(), of_heads[layer])))
        shuffled = torch.isin(hidden[layer], lists.of(layer, drawn, negative).flatten().long())
        rows.append(CoverageRow(layer=layer, covered=_share(covered), shuffled=_share(shuffled)))
    return tuple(rows)


def random_values(d_mlp: int, count: int, layer: int) -> tuple[Tensor, Tensor]:
    """Different neurons, and whether each counts at its bottom end: (min(count, d_mlp),), the same for each prompt."""
    generator = torch.Generator().manual_seed(layer)
    neurons = torch.randperm(d_mlp, generator=generator)[:count]
    return neurons, torch.randint(2, (len(neurons),), generator=generator).bool()


def _share(found: Tensor) -> float:
    return int(found.sum()) / len(found)
