"""The index of a difference: its lists are those of the full matrix of the difference; what did not change says so."""

import json
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from itertools import product
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file

from lexiscope.precompute.index.index import Index
from lexiscope.precompute.index.lookup import look_up_token
from lexiscope.precompute.index.manifest import Manifest
from lexiscope.precompute.index.tokens import distinct_classes, token_bytes, whole_words
from lexiscope.precompute.project.embedding import Embedding
from lexiscope.precompute.project.vectors import Projector
from lexiscope.precompute.shape import ENDS, LENSES, MATRICES, PRESETS, SIDES
from lexiscope.precompute.verify.sample import check_sample
from lexiscope.precompute.weights.architectures import describe
from lexiscope.precompute.weights.checkpoint import Checkpoint
from lexiscope.precompute.weights.difference import Difference
from tests.support import brute
from tests.support.builds import PAIRS, K, Listener, small_gpt2
from tests.support.differences import (
    BASE,
    DIFFERENCE,
    TUNED,
    UNCHANGED_HEAD,
    UNCHANGED_LAYER,
    UNCHANGED_NEURONS,
    build_difference,
    difference_of,
    nudged,
    tuned_from,
)
from tests.support.models import tiny_gpt2, tiny_llama

pytestmark = pytest.mark.slow

Weights = dict[str, torch.Tensor]


def gpt2_vectors(tensors: Weights, kind: str) -> brute.Array:
    """(n, d_model) of layer 1, by GPT-2's names of tensors."""
    name = {"ff_key": "mlp.c_fc", "ff_value": "mlp.c_proj", "w_o": "attn.c_proj"}.get(kind, "attn.c_attn")
    weight = tensors[f"transformer.h.1.{name}.weight"].numpy()  # (in, out)
    if kind in ("w_q", "w_k", "w_v"):
        return np.split(weight, 3, axis=1)["qkv".index(kind[-1])].T
    return weight.T if kind == "ff_key" else weight


def llama_vectors(tensors: Weights, kind: str) -> brute.Array:
    names = {"ff_key": "mlp.gate_proj", "ff_up": "mlp.up_proj", "ff_value": "mlp.down_proj"}
    name = names.get(kind, f"self_attn.{kind[-1]}_proj")
    weight = tensors[f"model.layers.1.{name}.weight"].numpy()  # (out, in)
    return weight.T if SIDES[kind] == "writes" else weight


def with_equal_rows(folder: Path) -> Path:
    """Tokens that nothing can tell apart: all their scores tie."""
    tensors = load_file(folder / "model.safetensors")
    tensors["transformer.wte.weight"][40:300] = tensors["transformer.wte.weight"][[40, 41] * 130]
    save_file(tensors, folder / "model.safetensors", {"format": "pt"})
    return folder


FAMILIES: dict[str, tuple[Callable[[Path], Path], Callable[[Weights, str], brute.Array]]] = {
    "gpt2": (lambda folder: tiny_gpt2(folder), gpt2_vectors),
    "gpt2 untied": (lambda folder: tiny_gpt2(folder, tied=False, n_heads=2), gpt2_vectors),
    "llama gated, grouped": (lambda folder: tiny_llama(folder), llama_vectors),
    "gpt2 with equal rows": (lambda folder: with_equal_rows(tiny_gpt2(folder, n_heads=2)), gpt2_vectors),
    "llama untied": (lambda folder: tiny_llama(folder, tied=False, n_kv_heads=1, d_head=12), llama_vectors),
}


# the size of the change: a small one is lost in float32 among the base's scores
@pytest.mark.parametrize(("family", "size"), [*((family, 0.3) for family in FAMILIES), ("llama untied", 1e-6)])
def test_lists_are_those_of_the_full_difference(tmp_path: Path, family: str, size: float) -> None:
    make, vectors_of = FAMILIES[family]
    base = make(tmp_path / "base")
    tuned = tuned_from(base, tmp_path / "tuned", lambda name, tensor: nudged(tensor, len(name), size))
    index = Index.open(build_difference(tuned, base, tmp_path / "data", layers=(1,)))
    shape, shard, tokens = index.shape, index.shard(1), [*index.tokens]
    weights = [load_file(folder / "model.safetensors") for folder in (tuned, base)]
    own = weights[1]
    W_E = next(tensor for name, tensor in own.items() if name.endswith(("wte.weight", "embed_tokens.weight"))).numpy()
    sides = {"reads": W_E, "writes": W_E if shape.tied else own["lm_head.weight"].numpy()}
    for kind in shape.weight_kinds:
        after, before = (vectors_of(tensors, kind) for tensors in weights)
        ids, scores = brute.vector_lists(sides[SIDES[kind]], after - before, K)
        np.testing.assert_array_equal(shard.array(f"{kind}.ids"), ids)
        np.testing.assert_array_equal(shard.array(f"{kind}.scores"), scores)
        np.testing.assert_allclose(shard.all_norms(kind), np.linalg.norm(after - before, axis=1), rtol=1e-5)
        np.testing.assert_allclose(shard.all_base_norms(kind), np.linalg.norm(before, axis=1), rtol=1e-5)
    masks = brute.preset_masks(distinct_classes(tokens), whole_words(tokens))
    for matrix, head in product(MATRICES, range(shape.n_heads)):
        kinds = {"vo": ("w_v", "w_o"), "qk": ("w_q", "w_k")}[matrix]
        products = []
        for tensors in weights:
            left, right = (vectors_of(tensors, kind).astype(np.float64) for kind in kinds)
            of_left, of_right = (head * len(side) // (shape.n_heads * shape.d_head) for side in (left, right))
            rows = [slice(at * shape.d_head, (at + 1) * shape.d_head) for at in (of_left, of_right)]
            products.append(left[rows[0]].T @ right[rows[1]])
        M = products[0] - products[1]  # (d_model, d_model)
        norms = [float(norm[head]) for norm in shard.heads.all_matrix_norms(matrix)]
        np.testing.assert_allclose(norms, [np.linalg.norm(M), np.linalg.norm(products[1])], rtol=1e-6)
        for lens in LENSES:
            source, target = (sides[SIDES[kind]] for kind in kinds)
            scores = brute.pair_matrix(source, target, M, np.eye(shape.d_model), lens)
            noise = 1e-14 * np.abs(brute.pair_matrix(source, target, products[1], np.eye(shape.d_model), lens)).max()
            for preset, (end, sign) in product(PRESETS, zip(ENDS, (1, -1), strict=True)):
                listed = shard.heads.pairs(matrix, head, lens, preset, end)
                (_, best), at = brute.best_pairs(scores, masks[preset], PAIRS)[ENDS.index(end)], tuple(listed.ids.T)
                assert masks[preset][at].all()
                assert len({*map(tuple, listed.ids.tolist())}) == len(best)
                np.testing.assert_allclose(listed.scores, best, rtol=1e-6, atol=noise)
                np.testing.assert_allclose(scores[at], listed.scores, rtol=1e-6, atol=noise)
                falls, ids = np.diff(sign * listed.scores), np.diff(listed.ids @ [shape.d_vocab, 1])
                assert ((falls < 0) | ((falls == 0) & (ids > 0))).all()


def test_what_did_not_change(difference_data: Path) -> None:
    index = Index.open(difference_data / DIFFERENCE)
    minus = json.loads((difference_data / DIFFERENCE / "manifest.json").read_text())["minus"]
    assert (minus["tuned"], minus["model"], minus["source"]) == (
        TUNED,
        BASE,
        str(difference_data.parent / "sources" / BASE),
    )
    shard, k = index.shard(1), index.stored.k
    for kind in ("ff_key", "ff_value"):
        assert np.flatnonzero(shard.all_norms(kind) == 0).tolist() == [*UNCHANGED_NEURONS]
        lists = shard.vector(kind, UNCHANGED_NEURONS[1], "cosine")
        assert lists.top_ids.tolist() == lists.bottom_ids.tolist() == [*range(k)]
        assert not lists.top_scores.any()
        assert np.isnan([lists.coherence_top, lists.coherence_bottom]).all()
    assert shard.similarity(UNCHANGED_NEURONS[0], "dot").top == 0
    for matrix in MATRICES:
        norm, base_norm = shard.heads.all_matrix_norms(matrix)
        assert np.flatnonzero(norm == 0).tolist() == [UNCHANGED_HEAD]
        assert (base_norm > 0).all()
        pairs = shard.heads.pairs(matrix, UNCHANGED_HEAD, "dot", "all", "bottom")
        assert pairs.ids.tolist() == [[0, at] for at in range(index.stored.pairs)]
        assert np.isnan(pairs.coherence)
    for token in range(k):
        found = look_up_token(index, token, "dot", "all", ("ff_key", "ff_value"))
        for listed in found.vectors.values():
            assert not {*UNCHANGED_NEURONS}.intersection(listed.index[listed.layer == 1].tolist())
        assert UNCHANGED_HEAD not in found.pairs.head[found.pairs.layer == 1]


def test_an_unchanged_layer(difference_data: Path) -> None:
    index = Index.open(difference_data / DIFFERENCE)
    shard = index.shard(UNCHANGED_LAYER)
    for kind in index.stored.kinds:
        assert not shard.all_norms(kind).any()
    for kind in index.stored.weight_kinds:
        assert (shard.all_base_norms(kind) > 0).all()
    for matrix in MATRICES:
        assert not shard.heads.all_singular(matrix).any()
    assert shard.lists_of_tokens("dot", "top").sum() == len(shard.array("paired.rank")) == 0


def test_brute_force_finds_nothing_wrong(difference_data: Path) -> None:
    index, sources = Index.open(difference_data / DIFFERENCE), difference_data.parent / "sources"
    difference = difference_of(sources / TUNED, sources / BASE)
    assert not [fault for _, fault in check_sample(index, difference, 1000, seed=1, rows=1000) if fault]


def test_the_same_checkpoint_twice(tmp_path: Path) -> None:
    base, listener = small_gpt2(tmp_path / "base"), Listener()
    index = Index.open(build_difference(base, base, tmp_path / "data", listener))
    assert "nothing changed" in listener.text.getvalue()
    assert (index.layers, index.hubs("dot"), index.best_lens) == ((0, 1, 2), frozenset(), "dot")


def test_a_changed_embedding_is_said_once_and_recorded(tmp_path: Path) -> None:
    base, listener = small_gpt2(tmp_path / "base"), Listener()
    tuned = tuned_from(base, tmp_path / "tuned", lambda name, tensor: tensor * 1.5 if "wte" in name else tensor)
    folder = build_difference(tuned, base, tmp_path / "data", listener, layers=(2,))
    assert listener.text.getvalue().count("|ΔW_E|/|W_E| = 0.5") == 1
    made = Manifest.load(folder)
    assert made.embedding_change == {"W_E": 0.5}
    made.with_changes(embedding_change=None).save(folder)  # as if it was made before this was recorded
    build_difference(tuned, base, tmp_path / "data")
    assert Manifest.load(folder).embedding_change == {"W_E": 0.5}


def test_a_real_fine_tune_speaks_of_what_it_was_tuned_on(minilm: Checkpoint, sre: Checkpoint) -> None:
    """MiniLM, tuned on reports of incidents (section 4.3 of the paper, on real weights)."""
    difference = Difference(describe(sre), describe(minilm))
    assert difference.embedding_changes["W_E"] == pytest.approx(0.0034, abs=1e-4)
    texts = token_bytes(difference.tokenizer_file(), difference.shape.d_vocab)
    projector = Projector(Embedding.of(difference.W_E, torch.device("cpu")), 12)
    with ThreadPoolExecutor(1) as pool:
        crash, outage = (
            projector.lists(difference.vectors(layer, "ff_key")[[neuron]], pool).ids[0, LENSES.index("cosine"), 0]
            for layer, neuron in ((5, 853), (4, 199))
        )
    assert b" ".join(texts[token] for token in crash[:5]) == b"crashed wrecked accidents crashing crash"
    assert {b"unavailable", b"duration", b"status", b"incoming"} <= {texts[token] for token in outage}
