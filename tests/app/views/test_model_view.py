"""A model's page: its maps, and what is worth reading, from the right places of an index."""

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from app.views.model import STEPS, model_view, random_neuron
from precompute.errors import NotFound
from precompute.index.index import Index
from precompute.shape import LENSES, MATRICES, PRESETS
from tests.support.lists import READY, SHAPES, all_pairs, token
from tests.support.synthetic import D_VOCAB, make_manifest, rewrite_shard, shard_arrays, write_index


def arrays_of(name: str, layer: int) -> dict[str, Any]:
    """With values that are undefined or beyond the steps."""
    arrays = {key: array.copy() for key, array in shard_arrays(SHAPES[name], seed=layer).items()}
    arrays["ff_value.coherence"][1] = np.nan
    arrays["ff_value.coherence"][2] = -0.2
    arrays["ff_value.coherence"][3] = 1
    arrays["vo.coherence"][0] = np.nan
    return arrays


@pytest.fixture(scope="module", params=SHAPES)
def index(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Index:
    name = request.param
    folder = tmp_path_factory.mktemp("data") / name
    manifest = write_index(folder, make_manifest(SHAPES[name], name), READY[name])
    rewrite_shard(folder, manifest, 0, arrays_of(name, 0))
    return Index.open(folder)


def stored(index: Index) -> dict[int, dict[str, Any]]:
    name = index.manifest.model
    return {layer: shard_arrays(index.shape, seed=layer) if layer else arrays_of(name, 0) for layer in READY[name]}


@pytest.mark.parametrize("lens", LENSES)
@pytest.mark.parametrize("preset", PRESETS)
def test_maps(index: Index, lens: str, preset: str) -> None:
    view, arrays, at = model_view(index, lens, preset), stored(index), LENSES.index(lens)
    pairs = list(all_pairs(index.shape, READY[index.manifest.model]))
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


def test_made_once(index: Index) -> None:
    assert model_view(index) is model_view(index, "dot", "all")
    assert model_view(index) is not model_view(index, "cosine")


@pytest.mark.parametrize(("arguments", "said"), [(("x",), "dot, cosine"), (("dot", "x"), "all, distinct, words")])
def test_what_does_not_exist_is_named(index: Index, arguments: tuple[str, ...], said: str) -> None:
    with pytest.raises(NotFound, match=said):
        model_view(index, *arguments)


def test_random_neurons_are_of_ready_layers(index: Index) -> None:
    found = {random_neuron(index) for _ in range(300)}
    assert {layer for layer, _ in found} == set(index.layers)
    assert {neuron for _, neuron in found} == set(range(index.shape.d_mlp))


def test_nothing_is_built_yet(tmp_path: Path) -> None:
    write_index(tmp_path / "tiny", make_manifest(), ())
    index = Index.open(tmp_path / "tiny")
    view = model_view(index)
    assert not any(row.ready for row in view.rows)
    assert (view.neurons, view.agreeing, view.heads) == ((), (), ())
    with pytest.raises(NotFound, match="no layer of tiny is ready"):
        random_neuron(index)


@pytest.mark.parametrize(("array", "value"), [("vo.ids", D_VOCAB), ("qk.count", 10**6), ("ff_value.ids", D_VOCAB)])
def test_a_damaged_layer_does_not_take_the_page_with_it(tmp_path: Path, array: str, value: int) -> None:
    manifest = write_index(tmp_path / "tiny", make_manifest(), (0, 1))
    arrays = {name: part.copy() for name, part in shard_arrays(manifest.shape, seed=1).items()}
    arrays[array][...] = value
    rewrite_shard(tmp_path / "tiny", manifest, 1, arrays)
    view = model_view(Index.open(tmp_path / "tiny"))
    rows = {row.layer: row for row in view.rows}
    assert rows[0].ready
    if array != "ff_value.ids":  # which the maps do not show
        assert not rows[1].ready
        assert "layer-1.safetensors is damaged" in str(rows[1].fault)
    assert {card["layer"] for card in view.neurons} <= {0}


def test_a_layer_that_cannot_be_opened(tmp_path: Path) -> None:
    write_index(tmp_path / "tiny", make_manifest(), (0, 1))
    (tmp_path / "tiny" / "layer-1.safetensors").write_bytes(b"")
    rows = {row.layer: row for row in model_view(Index.open(tmp_path / "tiny")).rows}
    assert "layer-1.safetensors" in str(rows[1].fault)
    assert (rows[0].fault, rows[2].fault) == (None, None)
