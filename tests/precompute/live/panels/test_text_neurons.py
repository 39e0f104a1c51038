"""Neurons over a whole text: against the coefficients of `transformers`, sorted in full."""

import numpy as np
import pytest

from lexiscope.precompute.live.panels import records
from lexiscope.precompute.live.wire.grammar import NeuronPlace
from tests.precompute.live.reference import TEXT, Case, ids

PLACES = ((2, 7), (0, 3), (2, 1))


@pytest.mark.parametrize("text", [TEXT, "The"])
def test_the_strongest_of_the_text(every: Case, text: str) -> None:
    answer = every.ask(text, panel=("neurons",))
    assert answer["strongest"] is not None
    run, s, found = every.run(ids(answer["tokens"])), every.engine.shape, answer["strongest"]
    one = len(answer["tokens"]) == 1
    of_text: dict[tuple[int, int], float] = {}
    of_first: dict[tuple[int, int], float] = {}
    for layer in range(s.n_layers):
        norms = every.model.vectors(layer, "ff_value").norm(dim=1)
        sizes = run.coefficients[layer].abs()  # (T, d_mlp)
        first, others = sizes[0], sizes[0] if one else sizes[1:].amax(dim=0)
        for n in range(s.d_mlp):
            only = not one and bool(first[n] >= records.FIRST_ONLY_FACTOR * others[n]) and bool(first[n] > 0)
            (of_first if only else of_text)[layer, n] = float((first if only else others)[n] * norms[n])
    for wanted, count, listed in (
        (of_text, records.STRONGEST, [n for n in found if not n["first_only"]]),
        (of_first, records.FIRST_TOKEN_NEURONS, [n for n in found if n["first_only"]]),
    ):
        best = sorted((size for size in wanted.values() if size > 0), reverse=True)[:count]
        np.testing.assert_allclose([n["strength"] for n in listed], best, atol=1e-4)
        for neuron in listed:
            row = run.coefficients[neuron["layer"]][:, neuron["neuron"]]
            np.testing.assert_allclose(neuron["coefficients"], row, atol=1e-4)
            assert neuron["coefficient"] == neuron["coefficients"][neuron["position"]]
            start = 0 if neuron["first_only"] or one else 1
            assert abs(neuron["coefficient"]) == pytest.approx(float(row[start:].abs().max()), abs=1e-4)


def test_neurons_that_were_asked_about(case: Case) -> None:
    places = tuple(NeuronPlace(layer=layer, neuron=neuron) for layer, neuron in PLACES)
    answer = case.ask(panel=("neurons",), neurons=places)
    assert answer["activations"] is not None
    assert [(neuron["layer"], neuron["neuron"]) for neuron in answer["activations"]] == list(PLACES)
    run = case.run(ids(answer["tokens"]))
    for neuron in answer["activations"]:
        np.testing.assert_allclose(
            neuron["coefficients"], run.coefficients[neuron["layer"]][:, neuron["neuron"]], atol=1e-4
        )
    assert case.ask(panel=("evolution",), neurons=places).get("activations") is None
