"""Views of a difference of two models: how much vectors, heads and layers changed, against the two checkpoints."""

from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.torch import load_file
from tokenizers import Tokenizer

from lexiscope.precompute.index.index import Index
from lexiscope.precompute.project.embedding import Float64
from lexiscope.precompute.shape import MATRICES
from lexiscope.precompute.weights.architectures import describe
from lexiscope.precompute.weights.architectures.base import Model
from lexiscope.precompute.weights.checkpoint import Checkpoint
from tests.support.differences import (
    UNCHANGED_HEAD,
    UNCHANGED_LAYER,
    UNCHANGED_NEURONS,
    build_difference,
    nudged,
    tuned_from,
)
from tests.support.models import tiny_gpt2
from tests.support.site import DIFFERENCE, LLAMA
from tests.support.views import (
    head_view,
    layer_view,
    model_view,
    neuron_view,
    pairs_view,
    random_neuron,
    search_view,
    token_view,
)

CHANGED_LAYER, CHANGED_NEURON, CHANGED_HEAD = 1, 5, 2
Two = tuple[Model, Model]


@pytest.fixture(scope="module")
def index(site_data: Path) -> Index:
    return Index.open(site_data / DIFFERENCE)


@pytest.fixture(scope="module")
def two(site_data: Path) -> Two:
    """The tuned model and the base."""
    sources = site_data.parent / "sources"
    tuned, base = (describe(Checkpoint.open(sources / name)) for name in ("tiny-tuned", LLAMA))
    return tuned, base


def norms(two: Two, layer: int, kind: str) -> tuple[Float64, Float64]:
    """|tuned - base| and |base| of each vector."""
    tuned, base = (model.vectors(layer, kind).double().numpy() for model in two)
    return np.linalg.norm(tuned - base, axis=1), np.linalg.norm(base, axis=1)


def matrix_norms(two: Two, layer: int, matrix: str, head: int) -> tuple[float, float]:
    tuned, base = (
        left[head].double().numpy() @ right[head].double().numpy()
        for left, right in (model.factors(layer, matrix) for model in two)
    )
    return float(np.linalg.norm(tuned - base)), float(np.linalg.norm(base))


def test_a_neuron(index: Index, two: Two) -> None:
    view = neuron_view(index, CHANGED_LAYER, CHANGED_NEURON)
    for vector, kind in ((view.key, "ff_key"), (view.up, "ff_up"), (view.value, "ff_value")):
        delta, base = (float(of_all[CHANGED_NEURON]) for of_all in norms(two, CHANGED_LAYER, kind))
        assert vector
        assert (vector.norm, vector.base_norm) == pytest.approx((delta, base), rel=1e-5)
        assert vector.change == pytest.approx(delta / base, rel=1e-5)
        assert vector.unchanged is None
        assert vector.top
        assert vector.bottom


@pytest.mark.parametrize("neuron", UNCHANGED_NEURONS)
def test_an_unchanged_neuron_lists_nothing(index: Index, neuron: int) -> None:
    view = neuron_view(index, CHANGED_LAYER, neuron)
    for vector in (view.key, view.up, view.value):
        assert vector
        assert (vector.top, vector.bottom, vector.norm, vector.change, vector.unchanged) == ([], [], 0, 0, True)
        assert vector.base_norm
        assert vector.coherence == (None, None)
    assert (view.similarity, view.similarity_bottom, view.shared, view.telling) == (None, None, [], False)


@pytest.mark.parametrize("head", [CHANGED_HEAD, UNCHANGED_HEAD])
def test_a_head_and_its_pairs(index: Index, two: Two, head: int) -> None:
    view = head_view(index, CHANGED_LAYER, head)
    assert view.change
    for matrix in MATRICES:
        expected = matrix_norms(two, CHANGED_LAYER, matrix, head)
        of_matrix, pairs = view.change[matrix], pairs_view(index, matrix, CHANGED_LAYER, head)
        assert (of_matrix["norm"], of_matrix["base_norm"]) == pytest.approx(expected, rel=1e-4)
        assert (pairs.norm, pairs.base_norm, pairs.change) == (*list(of_matrix.values())[:2], of_matrix["change"])
        assert of_matrix["change"] == pytest.approx(expected[0] / expected[1], rel=1e-4)
        lists = (pairs.top, pairs.bottom, *(glance.top for glance in (view.vo, view.qk) if glance))
        if head == UNCHANGED_HEAD:
            assert pairs.unchanged is True
            assert not any(lists)
        else:
            assert pairs.unchanged is None
            assert all(lists)


@pytest.mark.parametrize("sort", ["change", "-change"])
def test_a_layer_sorted_by_change(index: Index, two: Two, sort: str) -> None:
    view = layer_view(index, CHANGED_LAYER, sort=sort, size=None)
    changes = {}
    for kind in ("ff_value", "ff_key"):
        delta, base = norms(two, CHANGED_LAYER, kind)
        changes[kind] = delta / base
    larger = np.maximum(changes["ff_value"], changes["ff_key"])
    order = np.argsort(larger if sort == "-change" else -larger, kind="stable")
    assert [row["neuron"] for row in view.rows] == order.tolist()
    for row in view.rows:
        at = row["neuron"]
        assert row["change"] == pytest.approx(changes["ff_value"][at], rel=1e-4)
        assert row["change_key"] == pytest.approx(changes["ff_key"][at], rel=1e-4)
        if at in UNCHANGED_NEURONS:
            assert (row["key"], row["value"], row["value_bottom"], row["coherence"]) == ([], [], [], None)
            assert (row["similarity"], row["similarity_bottom"]) == (None, None)
        else:
            assert row["key"]
            assert row["value"]


def test_layers_say_how_much_they_changed(index: Index, two: Two) -> None:
    unchanged = layer_view(index, UNCHANGED_LAYER)
    assert unchanged.unchanged is True
    assert unchanged.change == dict.fromkeys(index.shape.weight_kinds, 0.0)
    changed = layer_view(index, CHANGED_LAYER)
    assert changed.unchanged is None
    assert changed.change
    for kind in index.shape.weight_kinds:
        delta, base = norms(two, CHANGED_LAYER, kind)
        assert changed.change[kind] == pytest.approx(np.linalg.norm(delta) / np.linalg.norm(base), rel=1e-4)
    rows = {row.layer: row for row in model_view(index).rows}
    assert (rows[CHANGED_LAYER].change, rows[CHANGED_LAYER].unchanged) == (changed.change, None)
    assert rows[UNCHANGED_LAYER].unchanged is True


WORDS = "Dogs Europe Italy Berlin France Germany", "lion Rome horses They years words"
MOVED = {"ff_key": 7, "ff_value": 9, "w_q": 5, "w_v": 11}  # the vector of a kind that moves towards some words


def some_words(folder: Path) -> tuple[list[int], list[int]]:
    """Twice six tokens that are whole words."""
    vocabulary = Tokenizer.from_file(str(folder / "tokenizer.json")).get_vocab()
    some, others = ([vocabulary[f"Ġ{word}"] for word in words.split()] for words in WORDS)
    return some, others


@pytest.fixture(scope="module")
def moved(tmp_path_factory: pytest.TempPathFactory) -> Index:
    """A difference in which a few vectors of layer 1 moved a long way towards words, all others a little anyhow."""
    folder = tmp_path_factory.mktemp("moved")
    base = tiny_gpt2(folder / "base", d_model=192, d_mlp=64)
    W_E = load_file(base / "model.safetensors")["transformer.wte.weight"]
    some, others = (W_E[words].sum(0) for words in some_words(base))

    def change(name: str, tensor: torch.Tensor) -> torch.Tensor:
        if "h.1." not in name or tensor.ndim < 2:
            return tensor
        tensor = nudged(tensor, seed=sum(name.encode()), size=0.01)
        if name.endswith("mlp.c_fc.weight"):
            tensor[:, MOVED["ff_key"]] += 3 * some
        elif name.endswith("mlp.c_proj.weight"):
            tensor[MOVED["ff_value"]] += 3 * others
        elif name.endswith("attn.c_attn.weight"):
            tensor[:, MOVED["w_q"]] += 3 * others
            tensor[:, 2 * 192 + MOVED["w_v"]] -= 3 * some
        return tensor

    return Index.open(build_difference(tuned_from(base, folder / "tuned", change), base, folder / "data", k=60))


@pytest.mark.parametrize("lens", ["dot", "cosine"])
def test_cards_are_of_what_moved_far_and_reads_clearly(moved: Index, lens: str) -> None:
    view = model_view(moved, lens)
    assert view.agreeing is None
    cards = [*(view.neurons or ()), *(view.subheads or ())]
    vectors = {
        card["kind"]: (card["layer"], card["end"], {token["id"] for token in card["tokens"]})
        for card in cards
        if (card["change"] or 0) > 0.5
    }
    some, others = ({*words} for words in some_words(moved.folder))
    assert vectors == {
        "ff_key": (1, "top", some), "ff_value": (1, "top", others), "w_q": (1, "top", others),
        "w_v": (1, "bottom", some),
    }  # fmt: skip
    assert [card["neuron"] for card in view.neurons or () if (card["change"] or 0) > 0.5] == [7, 9]
    for kind in ("ff_key", "ff_value"):
        products = [
            float(moved.shard(card["layer"]).all_norms(kind)[card["neuron"]]) * card["number"]
            for card in view.neurons or ()
            if card["kind"] == kind
        ]
        assert products == sorted(products, reverse=True)


def test_a_neuron_by_chance_is_one_that_changed(index: Index) -> None:
    for _ in range(200):
        layer, neuron = random_neuron(index)
        assert layer == CHANGED_LAYER
        assert neuron not in UNCHANGED_NEURONS


def test_unchanged_vectors_are_found_by_no_token(index: Index) -> None:
    """Their lists would hold the smallest ids."""
    for token in range(5):
        places = [place for role in token_view(index, token, size=None).roles for place in role.places]
        found = search_view(index, f"#{token}", size=None).matches
        for place in [*places, *found]:
            assert place["layer"] == CHANGED_LAYER
            assert place["head"] is not None or place["index"] not in UNCHANGED_NEURONS
    pairs = token_view(index, 0, size=None, preset="all").pairs or []
    assert all(pair["head"] != UNCHANGED_HEAD for pair in pairs)
