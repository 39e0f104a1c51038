"""A model's page: its maps, and what is worth reading, from the right places of an index."""

import math

import pytest

from app.views.model import STEPS, model_view, random_neuron
from precompute.index.index import Index
from precompute.shape import LENSES, MATRICES, PRESETS
from tests.support.lists import SHAPES, all_pairs, stored_arrays, token


@pytest.fixture(params=SHAPES)
def index(request: pytest.FixtureRequest, indexes: dict[str, Index]) -> Index:
    return indexes[request.param]


@pytest.mark.parametrize("lens", LENSES)
@pytest.mark.parametrize("preset", PRESETS)
def test_maps(index: Index, lens: str, preset: str) -> None:
    view, at = model_view(index, lens, preset), LENSES.index(lens)
    arrays = {layer: stored_arrays(index.shape, layer) for layer in index.layers}
    pairs = list(all_pairs(index.shape, index.layers))
    assert [row.layer for row in view.rows] == list(range(index.shape.n_layers))[::-1]
    for row in view.rows:
        assert row.ready == (row.layer in arrays)
        if not row.ready:
            assert (row.fault, row.coherence, row.vo, row.qk) == (None, (), (), ())
            continue
        numbers = arrays[row.layer]["ff_value.coherence"][:, at, 0].tolist()
        steps = [min(max(int(x * STEPS), 0), STEPS - 1) for x in numbers if not math.isnan(x)]
        assert list(row.coherence) == [steps.count(step) for step in range(STEPS)]
        for matrix in MATRICES:
            for head, cell in enumerate(getattr(row, matrix)):
                number = arrays[row.layer][f"{matrix}.coherence"][head, at, PRESETS.index(preset), 0].item()
                assert cell["coherence"] == (None if math.isnan(number) else number)
                place = (matrix, row.layer, head, lens, preset, "top", 1)
                first = [p for p in pairs if (p.matrix, p.layer, p.head, p.lens, p.preset, p.end, p.rank) == place]
                expected = [{"from": token(p.pair[0]), "to": token(p.pair[1]), "score": p.score} for p in first]
                assert cell["first"] == (expected[0] if expected else None)


def test_provenance(index: Index) -> None:
    provenance, manifest = model_view(index).provenance, index.manifest
    assert (provenance.build, provenance.weights_sha256) == (manifest.build, manifest.weights_sha256)
    assert (provenance.k, provenance.pairs, provenance.source) == (manifest.k, manifest.pairs, manifest.source)


def test_random_neurons_are_of_ready_layers(index: Index) -> None:
    found = {random_neuron(index) for _ in range(300)}
    assert {layer for layer, _ in found} == set(index.layers)
    assert {neuron for _, neuron in found} == set(range(index.shape.d_mlp))
