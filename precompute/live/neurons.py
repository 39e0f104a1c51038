"""The panels `neurons` and `attention`: who was active at a position, and which positions each head looked at."""

import torch

from precompute.live.records import Record
from precompute.live.weights import Weights
from precompute.live.wire.panels import ActiveNeuron, ChosenNeuron, HeadAttention
from precompute.shape import Shape

NEURONS_PER_LAYER = 10


def active_neurons(w: Weights, value_norms: torch.Tensor, record: Record) -> tuple[ActiveNeuron, ...]:
    """The strongest neurons of each layer at the position, all together strongest first.

    value_norms (n_layers, d_mlp). Strength is |coefficient| |value|: how far the neuron moves the stream.
    """
    coefficients = torch.stack(record.coefficients)
    strength, neurons = (coefficients.abs() * value_norms).topk(min(NEURONS_PER_LAYER, w.shape.d_mlp), dim=1)
    first_only = torch.stack([record.first_only(layer) for layer in range(w.shape.n_layers)])
    columns = (neurons, coefficients.gather(1, neurons), strength, first_only.gather(1, neurons))
    active = [
        ActiveNeuron(layer=layer, neuron=n, coefficient=c, strength=s, first_only=f)
        for layer, rows in enumerate(zip(*(column.tolist() for column in columns), strict=True))
        for n, c, s, f in zip(*rows, strict=True)
    ]
    return tuple(sorted(active, key=lambda neuron: (-neuron.strength, neuron.layer, neuron.neuron)))


def chosen_neuron(value_norms: torch.Tensor, record: Record) -> ChosenNeuron | None:
    """The neuron that was asked about, if one was: at the position, among the others of its layer, and everywhere."""
    if record.chosen_coefficients is None:
        return None
    assert record.neuron is not None
    layer, n = record.layer, record.neuron
    strength = record.coefficients[layer].abs() * value_norms[layer]  # (d_mlp,)
    return ChosenNeuron(
        layer=layer,
        neuron=n,
        coefficient=float(record.coefficients[layer][n]),
        strength=float(strength[n]),
        first_only=bool(record.first_only(layer)[n]),
        rank=1 + int((strength > strength[n]).sum()),
        coefficients=tuple(record.chosen_coefficients.tolist()),
    )


def attentions(shape: Shape, record: Record) -> tuple[HeadAttention, ...]:
    """The weights of every head of the layers that were kept."""
    heads = []
    for layer, weights in record.weights.items():
        for head, rows in enumerate(weights.tolist()):
            upto = [row[: query + 1] for query, row in enumerate(rows)] if shape.causal else rows
            heads.append(HeadAttention.model_validate({"layer": layer, "head": head, "weights": upto}))
    return tuple(heads)
