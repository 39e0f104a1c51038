"""Keep what panels need of a run while it is computed, for each prompt by itself and without padding.
Nothing is kept that no panel asked for (`Panel.keeps`).
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Literal

import torch
from torch import Tensor

from lexiscope.precompute.live.run import Changes, Watcher
from lexiscope.precompute.live.wire.answers import Predicted
from lexiscope.precompute.live.wire.grammar import Replaced
from lexiscope.precompute.shape import Shape
from lexiscope.precompute.weights.architectures.base import Rotation

FIRST_ONLY_FACTOR = 10.0  # a neuron's first coefficient is this many times the largest at any other position
STRONGEST, FIRST_TOKEN_NEURONS = 20, 10  # neurons kept of a whole text, and of those that fire only on its first token
COLUMNS = 100  # neurons of each layer whose coefficients are kept at all positions
MOST_WEIGHTS = 2_000_000  # attention weights of an answer; if there are more, only those of the chosen layer are kept

Keep = Literal[
    "streams", "states", "steps",  # the stream: at all positions after each step, or each layer; at the position
    "weights", "mixed", "looks",  # attention: of all heads; mixed values; from the position
    "chosen", "every",  # what the heads of the chosen layer, or of every layer, do
    "keys", "coefficients", "peaks", "neurons",  # FF: at the position; the largest of each neuron; of some, everywhere
    "columns",  # FF: everywhere, of the strongest neurons of each layer
    "before_norms",  # what norms are given, from learned positions to the last layer's attention
]  # fmt: skip


def attention_numbers(shape: Shape, tokens: int) -> int:
    """Return how many attention weights one head has: from every position to those that it may attend to."""
    return tokens * (tokens + 1) // 2 if shape.causal else tokens * tokens


def attention_layers(shape: Shape, tokens: int, layer: int) -> range:
    """Return the layers whose attention is kept: all, or only the chosen one if a long prompt would have more than
    MOST_WEIGHTS weights, since a page shows no more."""
    every = shape.n_layers * shape.n_heads * attention_numbers(shape, tokens) <= MOST_WEIGHTS
    return range(shape.n_layers) if every else range(layer, layer + 1)


@dataclass(frozen=True)
class LayerHeads:
    """What the heads of one layer read in a run, and where they look."""

    states: Tensor  # (T, d_model), normed as the layer's attention reads it
    weights: Tensor  # (n_heads, T, T), from query to key
    mixed: Tensor  # (n_heads, T, d_head) values, mixed by these weights
    stream: Tensor  # (T, d_model) before attention
    rotation: Rotation | None  # of the layer, where positions are rotary


@dataclass
class Record:
    """One prompt among those that are run together: what to keep of its run, and what was kept."""

    tokens: tuple[int, ...]
    changes: Changes
    position: int
    layer: int  # the chosen layer
    keeps: frozenset[Keep]
    neuron: int | None = None  # the neuron of that layer that was asked about
    attention: range = range(0)  # the layers whose attention weights the panel `attention` wants
    row_places: tuple[tuple[int, int], ...] = ()  # layer and number of neurons that are kept at all positions
    replaced: Sequence[Replaced] = ()  # the heads and neurons whose values at all positions another run needs
    values: dict[Replaced, Tensor] = field(default_factory=dict)  # of a head (T, d_head), of a neuron (T,)
    value_norms: Tensor | None = None  # neurons: (n_layers, d_mlp)
    rows: dict[tuple[int, int], Tensor] = field(default_factory=dict)  # neurons: (T,) coefficients of `row_places`
    strongest: list[tuple[Tensor, Tensor]] = field(default_factory=list)  # neurons: by layer, numbers (n,) and (T, n)
    chosen_coefficients: Tensor | None = None  # neurons: (T,) coefficients of `neuron`
    streams: list[Tensor] = field(default_factory=list)  # evolution: (T, d_model) after each step
    weights: dict[int, Tensor] = field(default_factory=dict)  # attention: layer -> (n_heads, T, T)
    heads: dict[int, LayerHeads] = field(default_factory=dict)  # patterns: by layer
    before_norms: list[Tensor] = field(default_factory=list)  # positions: (T, d_model), in the order of the run
    columns: list[tuple[Tensor, Tensor]] = field(default_factory=list)  # sheet: by layer, as `strongest`
    coefficients: list[Tensor] = field(default_factory=list)  # (d_mlp,) of each layer, at the position
    first: list[Tensor] = field(default_factory=list)  # (d_mlp,) of each layer, |coefficient| at position 0
    others: list[Tensor] = field(default_factory=list)  # (d_mlp,) of each layer, the largest |coefficient| after it
    states: list[Tensor] = field(default_factory=list)  # coverage: (T, d_model) after each layer
    keys: list[Tensor] = field(default_factory=list)  # coverage: (d_mlp,) what keys read at the position
    mixed: list[Tensor] = field(default_factory=list)  # (n_heads, d_head) mixed values of each layer, at the position
    steps: list[Tensor] = field(default_factory=list)  # attribution: (d_model,) after each step, at the position
    looks: list[Tensor] = field(default_factory=list)  # (n_heads, T) attention weights of each layer, from the position
    prediction: Predicted = field(default_factory=list)  # at the position
    is_finite: bool = True  # False if the run overflowed

    def first_only(self, layer: int) -> Tensor:
        """Return flags (d_mlp,): True for a neuron that fires at the first of several positions, and hardly anywhere
        else."""
        first, others = self.first[layer], self.others[layer]
        return (first >= FIRST_ONLY_FACTOR * others) & (first > 0) & (len(self.tokens) > 1)

    def strength(self, layer: int) -> Tensor:
        """Return the strength (d_mlp,) of each neuron of a layer at its peak: after the first position, unless it fires
        there only."""
        assert self.value_norms is not None
        peaks = torch.where(self.first_only(layer), self.first[layer], self.others[layer])
        return peaks * self.value_norms[layer]

    def keep_strongest(self, layer: int, coefficients: Tensor) -> None:
        """Keep those columns of a layer's coefficients (T, d_mlp) whose neurons could be among the strongest of all
        layers."""
        assert self.value_norms is not None
        norms, only = self.value_norms[layer], self.first_only(layer)
        best = [
            (sizes * norms).masked_fill(hidden, 0).topk(min(count, len(norms))).indices
            for sizes, hidden, count in (
                (self.others[layer], only, STRONGEST),
                (self.first[layer], ~only, FIRST_TOKEN_NEURONS),
            )
        ]
        kept = torch.tensor(sorted({*torch.cat(best).tolist()}), device=norms.device)
        self.strongest.append((kept, coefficients[:, kept]))


class Recorder(Watcher):
    def __init__(self, records: Sequence[Record], before_layer: Callable[[int], None]) -> None:
        self.records = records
        self.before_layer = before_layer
        self.before = torch.empty(0)  # the stream before the layer's attention

    def layer(self, layer: int) -> None:
        self.before_layer(layer)

    def stream(self, layer: int, after: str, x: Tensor) -> None:  # noqa: ARG002
        self.before = self.before if after == "attention" else x
        for b, record in enumerate(self.records):
            if "streams" in record.keeps:
                record.streams.append(x[b, : len(record.tokens)])
            if "steps" in record.keeps:
                record.steps.append(x[b, record.position].clone())
            if "states" in record.keeps and after == "ff":
                record.states.append(x[b, : len(record.tokens)])

    def before_norm(self, x: Tensor) -> None:
        for b, record in enumerate(self.records):
            if "before_norms" in record.keeps:
                record.before_norms.append(x[b, : len(record.tokens)])

    def attention(self, layer: int, x: Tensor, weights: Tensor, z: Tensor, rotation: Rotation | None) -> None:
        for b, record in enumerate(self.records):
            T = len(record.tokens)
            if "weights" in record.keeps and layer in record.attention:
                record.weights[layer] = weights[b, :, :T, :T]
            if "every" in record.keeps or ("chosen" in record.keeps and layer == record.layer):
                record.heads[layer] = LayerHeads(
                    x[b, :T], weights[b, :, :T, :T], z[b, :, :T], self.before[b, :T], rotation
                )
            if "mixed" in record.keeps:
                record.mixed.append(z[b, :, record.position].clone())
            for change in record.replaced:
                if change.layer == layer and change.head is not None:
                    record.values[change] = z[b, change.head, :T].clone()
            if "looks" in record.keeps:
                record.looks.append(weights[b, :, record.position, :T].clone())

    def ff(self, layer: int, keys: Tensor, coefficients: Tensor) -> None:
        for b, record in enumerate(self.records):
            here = coefficients[b, : len(record.tokens)]
            if "keys" in record.keeps:
                record.keys.append(keys[b, record.position].clone())
            if "coefficients" in record.keeps:
                record.coefficients.append(here[record.position].clone())  # a view would keep the whole pass
            if "neurons" in record.keeps and layer == record.layer and record.neuron is not None:
                record.chosen_coefficients = here[:, record.neuron].clone()
            if "peaks" in record.keeps:
                record.first.append(here[0].abs())
                record.others.append(here[1:].abs().amax(dim=0) if len(here) > 1 else here[0].abs())
            if "neurons" in record.keeps:
                record.rows |= {place: here[:, place[1]].clone() for place in record.row_places if place[0] == layer}
            for change in record.replaced:
                if change.layer == layer and change.neuron is not None:
                    record.values[change] = here[:, change.neuron].clone()
            if "neurons" in record.keeps:
                record.keep_strongest(layer, here)
            if "columns" in record.keeps:
                best = record.strength(layer).sort(descending=True, stable=True).indices[:COLUMNS]
                record.columns.append((best, here[:, best]))
