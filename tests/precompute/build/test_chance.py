"""Lines of chance, the cosines of neurons' vectors and the variance over the unembedding are those of plain numpy."""

import json
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from safetensors.torch import load_file, save_file

from lexiscope.precompute.index.index import Index
from lexiscope.precompute.index.layer.lists import Chance
from lexiscope.precompute.index.layout import NEURON_PAIRS, Piece
from lexiscope.precompute.index.manifest import Manifest
from lexiscope.precompute.index.tensor_file import TensorFile, write_tensors
from lexiscope.precompute.shape import SIDES
from lexiscope.precompute.weights.architectures import describe
from lexiscope.precompute.weights.checkpoint import Checkpoint
from lexiscope.precompute.weights.difference import Difference, Parameters
from tests.support.builds import copy, faults, quick_build
from tests.support.differences import (
    BASE,
    TUNED,
    UNCHANGED_LAYER,
    build_difference,
    difference_of,
    fine_tune,
    tuned_from,
)
from tests.support.families import FAMILIES, family_parameters, load_net
from tests.support.models import tiny_gpt2

Float64 = NDArray[np.float64]

ODD = 1  # the layer with a value of zeros, a key of zeros, and values whose numbers are equal
ZERO_VALUE, EQUAL_VALUE, ZERO_KEY = 0, 1, 2
# By family: the tensors of keys and values in that layer, whether they are (neurons, d_model), and the norm in front.
LAYOUT = {
    "gpt2": ("transformer.h.1.mlp.c_fc", False, "transformer.h.1.mlp.c_proj", True, "transformer.h.{}.ln_2"),
    "llama3": ("model.layers.1.mlp.gate_proj", True, "model.layers.1.mlp.down_proj", False,
               "model.layers.{}.post_attention_layernorm"),
    "gemma2": ("model.layers.1.mlp.gate_proj", True, "model.layers.1.mlp.down_proj", False,
               "model.layers.{}.pre_feedforward_layernorm"),
    "bert": ("bert.encoder.layer.1.intermediate.dense", True, "bert.encoder.layer.1.output.dense", False, None),
}  # fmt: skip


@pytest.fixture(scope="module", params=LAYOUT)
def case(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> tuple[str, Path, Path]:
    """A family, a checkpoint of it with vectors that are zero or constant, and its index."""
    folder = FAMILIES[request.param].save(tmp_path_factory.mktemp("odd") / request.param)
    keys, key_rows, values, value_rows, _ = LAYOUT[request.param]
    tensors = load_file(folder / "model.safetensors")
    for name, by_rows, neuron, number in (
        (values, value_rows, ZERO_VALUE, 0.0),
        (values, value_rows, EQUAL_VALUE, 0.3),
        (keys, key_rows, ZERO_KEY, 0.0),
    ):
        weight = tensors[f"{name}.weight"]
        (weight if by_rows else weight.T)[neuron] = number
    save_file(tensors, folder / "model.safetensors", {"format": "pt"})
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # numpy warns of a division by zero
        return request.param, folder, quick_build(folder, tmp_path_factory.mktemp("built"), pairs=0)


def rows(model: Parameters, layer: int, kind: str) -> Float64:
    return model.vectors(layer, kind).numpy().astype(np.float64)


def scores(model: Parameters, kind: str, V: Float64, lens: str) -> Float64:
    W = (model.W_E if SIDES[kind] == "reads" else model.W_U).detach().numpy().astype(np.float64)
    if lens == "cosine":
        W -= W.mean(axis=0)
        W /= np.linalg.norm(W, axis=1, keepdims=True)
    return V @ W.T


def top_z(of_vector: Float64) -> float:
    return float((of_vector.max() - of_vector.mean()) / of_vector.std())


def drawn(model: Parameters, kind: str) -> tuple[list[Float64], list[Float64]]:
    """Gaussian vectors and mixtures of the kind's own, as FORMAT.md describes them."""
    n_layers, mixtures = model.shape.n_layers, []
    for layer in range(n_layers):
        count = sum(number * n_layers // 1000 == layer for number in range(1000))
        V = rows(model, layer, kind)
        mixtures += [*(np.random.RandomState(layer).standard_normal((count, len(V))) / np.sqrt(len(V)) @ V)]
    return [*np.random.RandomState(0).standard_normal((1000, model.shape.d_model))], mixtures


@pytest.mark.parametrize("kind", ["ff_key", "ff_value", "w_v", "w_o", "vo_out", "qk_key"])
@pytest.mark.parametrize("lens", ["dot", "cosine"])
def test_lines_are_those_of_a_thousand_random_vectors(case: tuple[str, Path, Path], kind: str, lens: str) -> None:
    _, folder, built = case
    model, chance = describe(Checkpoint.open(folder)), Index.open(built).chance(kind, lens)
    assert chance
    sources = [[top_z(of) for of in scores(model, kind, np.array(V), lens)] for V in drawn(model, kind)]
    expected = [np.quantile(z, [0.95, 0.99]) for z in sources]
    assert chance.gaussian == pytest.approx(expected[0].tolist(), rel=1e-5)
    assert chance.mixtures == pytest.approx(expected[1].tolist(), rel=1e-5)
    assert [chance.line95, chance.line99] == pytest.approx(np.max(expected, axis=0).tolist(), rel=1e-5)


def test_variance_over_the_unembedding(case: tuple[str, Path, Path]) -> None:
    name, folder, built = case
    model, index = describe(Checkpoint.open(folder)), Index.open(built)
    U = model.W_U.detach().numpy().astype(np.float64)
    for kind in ("ff_value", "w_o", "vo_out"):
        V = rows(model, ODD, kind)
        stored = index.stats(ODD, f"{kind}.unembedding")
        assert stored is not None
        for at in range(0 if kind != "ff_value" else 1, len(V)):
            cosines = [U[token] @ V[at] / np.linalg.norm(U[token]) / np.linalg.norm(V[at]) for token in range(len(U))]
            assert stored[at] == pytest.approx(np.var(cosines), rel=1e-5), (name, kind, at)
    assert np.isnan(index.stats(ODD, "ff_value.unembedding")[ZERO_VALUE])  # type: ignore[index]
    assert index.stats(ODD, "ff_key.unembedding") is None


def acting(folder: Path, name: str, layer: int) -> dict[str, Float64]:
    """The vectors of a layer's neurons as they act through the norm in front of them, by the run of transformers."""
    model, front = describe(Checkpoint.open(folder)), LAYOUT[name][-1]
    vectors: dict[str, Float64] = {
        kind: rows(model, layer, kind) for kind in ("ff_key", "ff_up", "ff_value") if kind in model.shape.kinds
    }
    if front is None:
        return vectors
    norm = load_net(folder).get_submodule(front.format(layer))
    gain = norm.weight.detach().numpy().astype(np.float64) + (name == "gemma2")
    if isinstance(norm, torch.nn.LayerNorm):
        vectors["ff_value"] = vectors["ff_value"] - vectors["ff_value"].mean(axis=1, keepdims=True)
    return {kind: V if kind == "ff_value" else gain * V for kind, V in vectors.items()}


def cosine(x: Float64, y: Float64) -> float:
    lengths = np.linalg.norm(x), np.linalg.norm(y)
    return float(x @ y / lengths[0] / lengths[1]) if min(lengths) > 1e-9 else np.nan


@pytest.mark.parametrize("layer", [0, ODD])
def test_cosines_of_what_neurons_read_and_write(case: tuple[str, Path, Path], layer: int) -> None:
    name, folder, built = case
    index, vectors = Index.open(built), acting(folder, name, layer)
    stored, mismatched = index.stats(layer, "ff.cosines"), index.stats(layer, "ff.mismatched")
    assert stored is not None
    assert mismatched is not None
    n = len(vectors["ff_value"])
    order = np.random.RandomState(0).permutation(n)
    pairs = [(order[i % n], order[(i % n + 1 + i // n) % n]) for i in range(1000)]
    assert len({*pairs}) == 1000
    assert not any(one == other for one, other in pairs)
    for at, (one, other) in enumerate(NEURON_PAIRS):
        if not {one, other} <= vectors.keys():
            assert np.isnan(stored[:, at]).all()
            assert np.isnan(mismatched[at]).all()
            continue
        expected = [cosine(vectors[one][neuron], vectors[other][neuron]) for neuron in range(n)]
        np.testing.assert_allclose(stored[:, at], expected, rtol=1e-5, atol=1e-6)
        sizes = np.array([abs(cosine(vectors[one][a], vectors[other][b])) for a, b in pairs])
        known = sizes[~np.isnan(sizes)]
        assert len(known) < len(pairs) or layer != ODD
        np.testing.assert_allclose(mismatched[at], np.quantile(known, [0.95, 0.99]), rtol=1e-5)
    if layer == ODD:
        assert np.isnan(stored[ZERO_VALUE, 0])
        assert np.isnan(stored[ZERO_KEY, 0])
        assert np.isnan(stored[EQUAL_VALUE, 0]) == (name == "gpt2")  # the only norm here that centres


@pytest.mark.parametrize("name", family_parameters())
def test_what_the_norm_in_front_does(family_folder: Callable[[str], Path], name: str) -> None:
    """The build reads of a norm what the norm's module does with a stream."""
    model = describe(Checkpoint.open(family_folder(name)))
    net = load_net(family_folder(name))
    generator = torch.Generator().manual_seed(1)
    for layer in range(model.shape.n_layers):
        gain, centres = model.norm_in_front(layer)
        stream = torch.randn(3, model.shape.d_model, generator=generator) + 1
        if not model.shape.causal:
            assert (bool((gain == 1).all()), centres) == (True, False)
            continue
        with torch.no_grad():
            norm = model.in_memory(net).norm("ff", layer)
            made = norm(stream) - norm(torch.zeros_like(stream))  # without the bias
            ours = (stream - stream.mean(dim=1, keepdim=True) * centres) * gain
        np.testing.assert_allclose(torch.cosine_similarity(made, ours), 1, atol=1e-6)


def test_verify_finds_wrong_numbers(case: tuple[str, Path, Path], tmp_path: Path) -> None:
    name, folder, built = case
    assert not faults(built, folder)
    wrong = (
        (Piece("chance"), "{}.line", "line of"),
        (Piece("stats", ODD), "ff.cosines", "cosines of"),
        (Piece("stats", ODD), "w_o.unembedding", "variance over the unembedding of w_o"),
    )
    for together in (wrong, [(Piece("stats", ODD), "ff.mismatched", "cosines of")]):
        index = copy(built, tmp_path / name / str(len(together)))
        for piece, array, _ in together:
            path = index / Manifest.load(index).entries()[piece].file
            file = TensorFile(path)
            arrays = {one: file.array(one).copy() for one in file.tensors}
            for one in arrays if "{}" in array else (array,):
                arrays[one] += np.float32(0.01)
            write_tensors(path, arrays, file.metadata)
        found = faults(index, folder)
        assert all(any(said in fault for fault in found) for _, _, said in together), found


@pytest.fixture(scope="module")
def difference(tmp_path_factory: pytest.TempPathFactory) -> tuple[Difference, Path]:
    folder = tmp_path_factory.mktemp("difference")
    base = tiny_gpt2(folder / BASE)
    tuned = tuned_from(base, folder / TUNED, fine_tune)
    return difference_of(tuned, base), build_difference(tuned, base, folder / "data")


def test_a_difference(difference: tuple[Difference, Path]) -> None:
    """Layers that did not change are left out of its lines; what its neurons read and write is not compared."""
    model, built = difference
    index = Index.open(built)
    assert index.stats(1, "ff.cosines") is None
    assert index.stats(1, "ff.mismatched") is None
    for kind, lens in (("ff_value", "dot"), ("w_q", "cosine")):
        gaussian, mixtures = drawn(model, kind)
        changed = [V for V in mixtures if V.any()]
        assert 0 < len(changed) < len(mixtures)
        chance = index.chance(kind, lens)
        assert chance
        for stored, V in ((chance.gaussian, gaussian), (chance.mixtures, changed)):
            z = [top_z(of) for of in scores(model, kind, np.array(V), lens)]
            assert stored == pytest.approx(np.quantile(z, [0.95, 0.99]).tolist(), rel=1e-4)
    variances = index.stats(UNCHANGED_LAYER, "ff_value.unembedding")
    assert variances is not None
    assert np.isnan(variances).all()


def test_where_there_is_no_line() -> None:
    """Mixtures that are all zero leave the Gaussian vectors; without either there is no line."""
    one = Chance.of(np.array([[4, 5], [np.nan, np.nan]], np.float32))
    assert one
    assert (one.gaussian, one.mixtures, one.line95, one.line99) == ((4, 5), None, 4, 5)
    assert Chance.of(np.full((2, 2), np.nan, np.float32)) is None
    both = Chance.of(np.array([[4, 6], [4.5, 5]], np.float32))
    assert both
    assert (both.line95, both.line99) == (4.5, 6)
    assert [both.standing(z) for z in (4.5, 4.6, 6, 6.1)] == ["within", "near", "near", "above"]


def test_readers(built: Path, tmp_path: Path) -> None:
    index = Index.open(built)
    z = index.all_z(1, "ff_key", "cosine")
    assert z is not None
    assert z[3, 0] == pytest.approx(index.moments(1, "ff_key", 3, "cosine")["z"])  # type: ignore[index]
    assert z.shape == (index.shape.d_mlp, 2)
    older = copy(built, tmp_path)
    content: dict[str, Any] = json.loads((older / "manifest.json").read_text())
    del content["parts"]
    (older / "manifest.json").write_text(json.dumps(content))
    without = Index.open(older)
    missing = [without.all_z(1, "ff_key", "dot"), without.stats(1, "ff.cosines"), without.stats(1, "ff.mismatched")]
    missing += [without.stats(1, "w_o.unembedding"), without.chance("ff_key", "dot")]  # type: ignore[list-item]
    missing += [without.positions(1, 0)]  # type: ignore[list-item]
    assert missing == [None] * 6
