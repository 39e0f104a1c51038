"""The panel `coverage`: the paper's R_k (section 4.2) for one position of a run, and the same with other positions'
states.

For every layer, and for each of the kinds ff_key, ff_value, w_v and w_o by itself, as in the paper:

    R_k = |first k tokens of the hidden state, among the first k tokens of at least one active vector| / k

- hidden state: the stream after the layer at the position, through the final norm (an encoder's is normed already) and
  W_U.
- active vectors: the key and the value of the m neurons, and w_v and w_o of the m subheads, whose coefficients at the
  position are largest in size. The coefficient is the factor by which the model multiplies the neuron's value, or the
  subhead's w_o. A vector whose coefficient is 0 is not active.
- first tokens of a vector: those of its list with W_E if it reads, with W_U if it writes, at the end to which it points
  in this run. That is the bottom if its coefficient is negative or, for a key, if what it reads, bias included, is
  negative.
- shuffled: the same active vectors compared with the hidden states of all other positions after the same layer, on
  average. The paper's code draws one of these positions at random; here all are used. A text of one token has no such
  number. Two numbers belong to it: the standard deviation over these positions (n - 1 in the divisor), and how many of
  them are covered at least as much as the position itself. If these are many, the vectors say nothing about this
  position.

k is 100, as for stored lists and Sim_k, and m is 10; the paper's code takes 5 vectors, with 15 of their tokens and 3 of
the hidden state's.
"""

from statistics import fmean

import numpy as np
import torch
from torch import Tensor

from lexiscope.precompute.live.panels.panel import Panel
from lexiscope.precompute.live.panels.records import Record
from lexiscope.precompute.live.vocabulary import PRODUCT_ROWS, Tick, top_tokens
from lexiscope.precompute.live.weights import Weights
from lexiscope.precompute.live.wire.answers import CoverageRow
from lexiscope.precompute.shape import SIDES

COVERED_TOKENS = 100  # first tokens of a hidden state that are looked for
ACTIVE_VECTORS = 10  # most active vectors of each kind and layer, in whose lists they are looked for
COVERED_KINDS = ("ff_key", "ff_value", "w_v", "w_o")
OfLayer = tuple[str, int]  # a kind, or "hidden" for the hidden states, and a layer


def rows_of_products(w: Weights, tokens: int) -> int:
    """Return how many vectors of a run are multiplied with the vocabulary."""
    return w.shape.n_layers * (tokens + len(COVERED_KINDS) * ACTIVE_VECTORS)


def coverage(w: Weights, record: Record, tick: Tick) -> list[CoverageRow]:
    n_layers = w.shape.n_layers
    states = w.model.before_unembedding(torch.stack(record.states))  # (n_layers, T, d_model)
    active = [active_vectors(w, record, layer) for layer in range(n_layers)]
    vectors = {(kind, layer): active[layer][kind] for kind in COVERED_KINDS for layer in range(n_layers)}
    vectors |= {("hidden", layer): states[layer] for layer in range(n_layers)}
    first = _first_tokens(w, vectors, tick)
    rows: list[CoverageRow] = []
    for kind in COVERED_KINDS:
        for layer in range(n_layers):
            listed = torch.zeros(w.shape.d_vocab, dtype=torch.bool, device=w.device)
            listed[first[kind, layer].flatten()] = True
            shares = listed[first["hidden", layer]].double().mean(dim=1).tolist()  # by position
            covered = shares.pop(record.position)
            rows.append(
                CoverageRow(
                    layer=layer,
                    kind=kind,
                    covered=covered,
                    shuffled=fmean(shares) if shares else None,
                    shuffled_sd=float(np.std(shares, ddof=1)) if len(shares) > 1 else None,
                    others=len(shares),
                    as_covered=sum(share >= covered for share in shares),
                )
            )
    return rows


def active_vectors(w: Weights, record: Record, layer: int) -> dict[str, Tensor]:
    """Return the active vectors of a layer by kind, (up to ACTIVE_VECTORS, d_model), negated where they point to the
    bottom in this run."""
    coefficients, subheads = record.coefficients[layer], record.mixed[layer].flatten()
    neurons, channels = _largest(coefficients), _largest(subheads)
    keys, values = (w.vectors(kind, layer)[neurons] for kind in ("ff_key", "ff_value"))
    read = record.keys[layer][neurons]
    w_v, w_o = (w.every_head(kind, layer).flatten(0, 1)[channels] for kind in ("w_v", "w_o"))
    written, mixed = coefficients[neurons].sign()[:, None], subheads[channels].sign()[:, None]
    return {"ff_key": read.sign()[:, None] * keys, "ff_value": written * values, "w_v": mixed * w_v, "w_o": mixed * w_o}


def _largest(coefficients: Tensor) -> Tensor:
    """Return the positions of up to ACTIVE_VECTORS coefficients, of (n,), that are largest in size and not 0."""
    largest = most_active(coefficients, ACTIVE_VECTORS)
    return largest[coefficients[largest] != 0]


def most_active(coefficients: Tensor, m: int) -> Tensor:
    """Return the positions of the m coefficients that are largest in size, (..., n) -> (..., m); these may still be 0.
    Of equal ones the first counts: heads that share values have equal ones at the first position of a text."""
    return coefficients.abs().sort(dim=-1, descending=True, stable=True).indices[..., :m]


def _first_tokens(w: Weights, vectors: dict[OfLayer, Tensor], tick: Tick) -> dict[OfLayer, Tensor]:
    """Return the ids (n, COVERED_TOKENS) of the tokens with the largest products for each group of vectors
    (n, d_model), computed by a few large products."""
    reads = {name: rows for name, rows in vectors.items() if SIDES.get(name[0]) == "reads"}
    others = {name: rows for name, rows in vectors.items() if name not in reads}
    first: dict[OfLayer, Tensor] = {}
    for W, group in ((w.W_U, vectors),) if w.shape.tied else ((w.W_E, reads), (w.W_U, others)):
        ids = [torch.empty(0, min(COVERED_TOKENS, len(W)), dtype=torch.long, device=w.device)]
        for block in torch.split(torch.cat(list(group.values())), PRODUCT_ROWS):
            ids.append(top_tokens(block @ W.T, COVERED_TOKENS).ids)
            tick(len(block))
        first |= zip(group, torch.split(torch.cat(ids), [len(rows) for rows in group.values()]), strict=True)
    return first


PANEL = Panel(
    name="coverage",
    keeps=frozenset({"states", "mixed", "keys", "coefficients"}),
    answer=lambda run: {"coverage": coverage(run.w, run.record, run.tick("coverage"))},
    rows=lambda w, _, tokens: rows_of_products(w, tokens),
)
