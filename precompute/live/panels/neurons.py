"""The panel `neurons`: which neurons were active at a position, and which ones over the whole text.

At the first position many neurons fire whatever its token is. So over a text a neuron counts by its peak after that
position, unless it fires on the first token only: such neurons are ranked separately.
"""

from collections.abc import Iterator

import torch
from torch import Tensor

from lexiscope.precompute.live.first_tokens import ListEnd, ends_of_neuron, first_tokens_cost, promoted_end
from lexiscope.precompute.live.panels.panel import Fields, Panel, PanelRun
from lexiscope.precompute.live.panels.records import FIRST_TOKEN_NEURONS, STRONGEST, Record
from lexiscope.precompute.live.weights import Weights
from lexiscope.precompute.live.wire.answers import ActiveNeuron, ChosenNeuron, TextNeuron
from lexiscope.precompute.live.wire.asks import PromptAsk

NEURONS_PER_LAYER = 10


def active_neurons(w: Weights, value_norms: Tensor, record: Record) -> list[ActiveNeuron]:
    """Return the strongest neurons of each layer at the position, in one list, strongest first.

    value_norms (n_layers, d_mlp) are the lengths of the neurons' values. Strength is |coefficient| |value|: how far the
    neuron moves the stream.
    """
    coefficients = torch.stack(record.coefficients)
    strength, neurons = (coefficients.abs() * value_norms).topk(min(NEURONS_PER_LAYER, w.shape.d_mlp), dim=1)
    first_only = torch.stack([record.first_only(layer) for layer in range(w.shape.n_layers)])
    columns = (neurons, coefficients.gather(1, neurons), strength, first_only.gather(1, neurons))
    active = [
        _active(layer, n, c, s, f)
        for layer, rows in enumerate(zip(*(column.tolist() for column in columns), strict=True))
        for n, c, s, f in zip(*rows, strict=True)
    ]
    return sorted(active, key=lambda neuron: (-neuron["strength"], neuron["layer"], neuron["neuron"]))


def _active(layer: int, neuron: int, coefficient: float, strength: float, first_only: bool) -> ActiveNeuron:
    return {
        "layer": layer, "neuron": neuron, "coefficient": coefficient, "strength": strength, "first_only": first_only,
        "end": promoted_end(coefficient),
    }  # fmt: skip


def chosen_neuron(value_norms: Tensor, record: Record) -> ChosenNeuron | None:
    """Describe the neuron that was asked about, if there is one: its activity at the position, its rank in its layer,
    and its coefficients over the text."""
    if record.chosen_coefficients is None:
        return None
    assert record.neuron is not None
    layer, n = record.layer, record.neuron
    strength = record.coefficients[layer].abs() * value_norms[layer]  # (d_mlp,)
    coefficient = float(record.coefficients[layer][n])
    return ChosenNeuron(
        layer=layer,
        neuron=n,
        coefficient=coefficient,
        strength=float(strength[n]),
        first_only=bool(record.first_only(layer)[n]),
        end=promoted_end(coefficient),
        rank=1 + int((strength > strength[n]).sum()),
        coefficients=record.chosen_coefficients.tolist(),
    )


def strongest_neurons(value_norms: Tensor, record: Record) -> list[TextNeuron]:
    """Return the strongest neurons of the text, then those that fire on its first token only."""
    places, strengths, only = [], [], []
    for layer, (neurons, columns) in enumerate(record.strongest):
        places += [(layer, at) for at in range(len(neurons))]
        strengths.append(record.strength(layer)[neurons])
        only.append(record.first_only(layer)[neurons])
        assert columns.shape == (len(record.tokens), len(neurons))
    strength, first_only = torch.cat(strengths), torch.cat(only)
    found: list[TextNeuron] = []
    for wanted, count in ((~first_only, STRONGEST), (first_only, FIRST_TOKEN_NEURONS)):
        order = strength.masked_fill(~wanted, 0).sort(descending=True, stable=True)
        for size, number in zip(order.values[:count].tolist(), order.indices[:count].tolist(), strict=True):
            if size > 0:
                layer, at = places[number]
                neurons, columns = record.strongest[layer]
                found.append(_text_neuron(value_norms, record, layer, int(neurons[at]), columns[:, at]))
    return found


def _text_neuron(value_norms: Tensor, record: Record, layer: int, neuron: int, column: Tensor) -> TextNeuron:
    """Describe a neuron over the text from `column` (T,), its coefficients."""
    first_only = bool(record.first_only(layer)[neuron])
    start = 0 if first_only or len(column) == 1 else 1
    peak = start + int(column[start:].abs().argmax())
    strength = float(column[peak].abs() * value_norms[layer, neuron])
    active = _active(layer, neuron, float(column[peak]), strength, first_only)
    return {**active, "position": peak, "coefficients": column.tolist()}


def _answer(run: PanelRun) -> Fields:
    norms, record = run.tables.value_norms, run.record
    return {
        "neurons": active_neurons(run.w, norms, record),
        "neuron": chosen_neuron(norms, record),
        "activations": [_text_neuron(norms, record, *place, record.rows[place]) for place in record.row_places],
        "strongest": strongest_neurons(norms, record),
    }


def _vectors(answer: Fields, gated: bool) -> Iterator[ListEnd]:
    for neuron in (*answer["neurons"], *answer["activations"], *answer["strongest"]):
        yield from ends_of_neuron(neuron)
    if answer["neuron"]:
        yield from ends_of_neuron(answer["neuron"], up=gated)


def _cost(w: Weights, ask: PromptAsk, _: int) -> float:
    others = STRONGEST + FIRST_TOKEN_NEURONS + len(ask.neurons) + (0 if ask.neuron is None else 1)
    vectors = 2 * (w.shape.n_layers * NEURONS_PER_LAYER + others)
    return vectors * first_tokens_cost(w.shape, ask.unbuilt)


PANEL = Panel(
    name="neurons", keeps=frozenset({"coefficients", "peaks", "neurons"}), answer=_answer, cost=_cost, vectors=_vectors
)
