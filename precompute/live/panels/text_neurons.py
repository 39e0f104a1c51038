"""Neurons over a whole text, for the panel `neurons`: those that were asked about, and the strongest.

At the first position many neurons fire whatever stands there. So a neuron counts by its peak after that position,
unless it fires on the first token only: these are ranked by themselves.
"""

import torch
from torch import Tensor

from lexiscope.precompute.live.first_tokens import promoted_end
from lexiscope.precompute.live.panels.records import FIRST_TOKEN_NEURONS, STRONGEST, Record
from lexiscope.precompute.live.wire.answers import TextNeuron


def chosen_neurons(value_norms: Tensor, record: Record) -> list[TextNeuron]:
    """Those that were asked about, in that order. value_norms (n_layers, d_mlp)."""
    return [_neuron(value_norms, record, *place, record.rows[place]) for place in record.row_places]


def strongest_neurons(value_norms: Tensor, record: Record) -> list[TextNeuron]:
    """The strongest of the text, then those of its first token only."""
    places, strengths, only = [], [], []
    for layer, (neurons, columns) in enumerate(record.strongest):
        places += [(layer, at) for at in range(len(neurons))]
        first = record.first_only(layer)[neurons]
        peaks = torch.where(first, record.first[layer][neurons], record.others[layer][neurons])
        strengths.append(peaks * value_norms[layer, neurons])
        only.append(first)
        assert columns.shape == (len(record.tokens), len(neurons))
    strength, first_only = torch.cat(strengths), torch.cat(only)
    found: list[TextNeuron] = []
    for wanted, count in ((~first_only, STRONGEST), (first_only, FIRST_TOKEN_NEURONS)):
        order = strength.masked_fill(~wanted, 0).sort(descending=True, stable=True)
        for size, number in zip(order.values[:count].tolist(), order.indices[:count].tolist(), strict=True):
            if size > 0:
                layer, at = places[number]
                neurons, columns = record.strongest[layer]
                found.append(_neuron(value_norms, record, layer, int(neurons[at]), columns[:, at]))
    return found


def _neuron(value_norms: Tensor, record: Record, layer: int, neuron: int, column: Tensor) -> TextNeuron:
    """`column` (T,) are its coefficients."""
    first_only = bool(record.first_only(layer)[neuron])
    start = 0 if first_only or len(column) == 1 else 1
    peak = start + int(column[start:].abs().argmax())
    return TextNeuron(
        layer=layer,
        neuron=neuron,
        coefficient=float(column[peak]),
        strength=float(column[peak].abs() * value_norms[layer, neuron]),
        first_only=first_only,
        end=promoted_end(float(column[peak])),
        position=peak,
        coefficients=column.tolist(),
    )
