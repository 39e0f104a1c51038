"""The arrays of a layer of small real models: they fit the layout, and hold what brute force makes of the weights."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import product
from pathlib import Path

import numpy as np
import pytest
import torch

from lexiscope.precompute.build.inverted import invert_lists, invert_pairs
from lexiscope.precompute.build.layer import Arrays, BuildContext, Costs, make_layer
from lexiscope.precompute.index.layout import misfits, shard_layout
from lexiscope.precompute.index.stored import Stored
from lexiscope.precompute.index.tokens import distinct_classes, token_bytes, whole_words
from lexiscope.precompute.project.coherence import COHERENT_TOKENS
from lexiscope.precompute.shape import COMPARED, ENDS, FACTORS, LENSES, MATRICES, PRESETS, SIDES
from lexiscope.precompute.weights.architectures import describe
from lexiscope.precompute.weights.architectures.base import Model
from lexiscope.precompute.weights.checkpoint import Checkpoint
from tests.support import brute
from tests.support.models import tiny_gpt2, tiny_llama

pytestmark = pytest.mark.slow

K, PAIRS, LAYER = 12, 40, 1
MODELS = {
    "gpt2": lambda folder: tiny_gpt2(folder),
    "llama grouped": lambda folder: tiny_llama(folder),
    "llama untied": lambda folder: tiny_llama(folder, tied=False, n_kv_heads=1, d_head=12),
    "llama ungrouped": lambda folder: tiny_llama(folder, n_kv_heads=4, d_vocab=600),  # more rows than tokens
}


@dataclass(frozen=True)
class Built:
    model: Model
    tokens: list[bytes]
    arrays: Arrays
    steps: list[float]

    def embedding(self, kind: str) -> brute.Array:
        W: brute.Array = (self.model.W_E if SIDES[kind] == "reads" else self.model.W_U).numpy()
        return W


def everything(model: Model, k: int = K, pairs: int = PAIRS) -> Stored:
    return Stored(model.shape, model.shape.kinds, LENSES, min(k, model.shape.d_vocab), pairs)


def misfits_of(arrays: Arrays, stored: Stored) -> list[str]:
    return [*misfits({name: (array.dtype, array.shape) for name, array in arrays.items()}, shard_layout(stored))]


def make(model: Model, tokens: list[bytes], threads: int, stored: Stored) -> tuple[Arrays, list[float]]:
    """One layer, and the shares of its work; on several threads, what first pieces took is asked for, too."""
    steps: list[float] = []
    costs: list[Costs] = []
    with ThreadPoolExecutor(threads) as pool:
        context = BuildContext.of(model, tokens, stored, torch.device("cpu"), pool)
        arrays = make_layer(context, LAYER, steps.append, costs.append if threads > 1 else None)
    if threads > 1:
        assert costs[0].vector > 0
        assert costs[0].searches.keys() == ({*stored.lenses} if stored.pairs else set())
    return arrays, steps


@pytest.fixture(scope="module", params=MODELS)
def built(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Built:
    folder: Path = MODELS[request.param](tmp_path_factory.mktemp("model"))
    checkpoint = Checkpoint.open(folder)
    model = describe(checkpoint)
    tokens = token_bytes(checkpoint.tokenizer_file(), model.shape.d_vocab)
    return Built(model, tokens, *make(model, tokens, 2, everything(model)))


def heads(built: Built, matrix: str) -> Iterator[tuple[int, int, dict[str, brute.Ends]]]:
    """Head, lens and the true pairs; from the factors as the architecture gives them, grouped heads repeated."""
    sides = {"vo": ("w_v", "w_o"), "qk": ("w_q", "w_k")}[matrix]
    source, target = (built.embedding(kind) for kind in sides)
    left, right = (factor.numpy() for factor in built.model.factors(LAYER, matrix))
    surface, words = distinct_classes(built.tokens), whole_words(built.tokens)
    for head, (lens, name) in product(range(built.model.shape.n_heads), enumerate(LENSES)):
        yield head, lens, brute.top_pairs(source, target, left[head], right[head].T, name, surface, words, PAIRS)


def test_arrays_fit_the_layout(built: Built) -> None:
    assert misfits_of(built.arrays, everything(built.model)) == []
    assert min(built.steps) > 0
    assert sum(built.steps) == pytest.approx(1)


def test_lists_are_inverted(built: Built) -> None:
    arrays, d_vocab = built.arrays, built.model.shape.d_vocab
    ids, counts = ({matrix: arrays[f"{matrix}.{part}"] for matrix in MATRICES} for part in ("ids", "count"))
    inverted = invert_lists([arrays[f"{kind}.ids"] for kind in built.model.shape.kinds], d_vocab)
    for name, array in (inverted | invert_pairs(ids, counts, d_vocab)).items():
        np.testing.assert_array_equal(arrays[name], array)


def test_lists_and_norms(built: Built) -> None:
    for kind in built.model.shape.kinds:
        V = built.model.vectors(LAYER, kind).numpy()
        ids, scores = brute.vector_lists(built.embedding(kind), V, K)
        np.testing.assert_array_equal(built.arrays[f"{kind}.ids"], ids)
        np.testing.assert_array_equal(built.arrays[f"{kind}.scores"], scores)
        np.testing.assert_allclose(built.arrays[f"{kind}.norm"], np.linalg.norm(V, axis=1), rtol=1e-5)


@pytest.mark.parametrize("matrix", MATRICES)
def test_pairs(built: Built, matrix: str) -> None:
    for head, lens, true in heads(built, matrix):
        for (p, preset), end in product(enumerate(PRESETS), range(len(ENDS))):
            at, (pairs, scores) = (head, lens, p, end), true[preset][end]
            count = built.arrays[f"{matrix}.count"][at]
            assert count == len(pairs)
            np.testing.assert_array_equal(built.arrays[f"{matrix}.ids"][at][:count], pairs)
            np.testing.assert_array_equal(built.arrays[f"{matrix}.scores"][at][:count], scores)
            assert not built.arrays[f"{matrix}.ids"][at][count:].any()
            assert not built.arrays[f"{matrix}.scores"][at][count:].any()
            readable = brute.readability(pairs, *map(built.embedding, FACTORS[matrix]))
            assert built.arrays[f"{matrix}.readability"][at] == pytest.approx(readable, abs=1e-5, nan_ok=True)


def test_coherence_and_similarity(built: Built) -> None:
    """Of the first 100 tokens, however few are stored."""
    check_coherence_and_similarity(built)


def check_coherence_and_similarity(built: Built) -> int:
    """Returns how many tokens are hubs."""
    shape, arrays, n_hubs = built.model.shape, built.arrays, 0
    vectors = {kind: built.model.vectors(LAYER, kind).numpy() for kind in shape.kinds}
    lists = {kind: brute.vector_lists(built.embedding(kind), V, 100)[0] for kind, V in vectors.items()}
    for lens in range(len(LENSES)):
        listed = np.concatenate([ids[:, lens].reshape(-1, 100) for ids in lists.values()])
        hubs = np.bincount(listed.ravel(), minlength=shape.d_vocab) > 10 * 100 / shape.d_vocab * len(listed)
        n_hubs += int(hubs.sum())
        for kind, ids in lists.items():
            for end in range(len(ENDS)):
                naive = brute.coherence(ids[:, lens, end], hubs, built.embedding(kind), COHERENT_TOKENS)
                np.testing.assert_allclose(arrays[f"{kind}.coherence"][:, lens, end], naive, atol=2e-5)
    check_similarities(built, lists)
    return n_hubs


def check_similarities(built: Built, lists: dict[str, brute.Array]) -> None:
    """By sets, head after head; grouped heads share rows of w_k and w_v as `factors` repeats them."""
    shape, arrays = built.model.shape, built.arrays
    group = shape.n_heads // shape.n_kv_heads
    rows = {  # of the lists of two kinds, in the order of neurons or subheads
        "ff": [("ff_key", n, "ff_value", n) for n in range(shape.d_mlp)],
        "vo": [
            ("w_v", h // group * shape.d_head + j, "w_o", h * shape.d_head + j)
            for h, j in np.ndindex(shape.n_heads, shape.d_head)
        ],
        "qk": [
            ("w_q", h * shape.d_head + j, "w_k", h // group * shape.d_head + j)
            for h, j in np.ndindex(shape.n_heads, shape.d_head)
        ],
    }
    for name, numbered in rows.items():
        order = np.random.RandomState(0).permutation(len(numbered)).tolist()
        following = dict(zip(order, order[1:] + order[:1], strict=True))
        matched, shuffled = (arrays[f"{name}.{part}"].reshape(-1, 2, 2) for part in ("similarity", "shuffled"))
        for number, (first, row, second, other) in enumerate(numbered):
            partner = numbered[following[number]][3]
            for lens, end in np.ndindex(2, 2):
                top = set(lists[first][row, lens, 0].tolist())
                for found, of in ((matched, other), (shuffled, partner)):
                    tokens = set(lists[second][of, lens, end].tolist())
                    jaccard = np.float32(len(top & tokens) / len(top | tokens))
                    assert found[number, lens, end] == pytest.approx(jaccard)


@pytest.mark.parametrize("degenerate", ["equal tokens", "zero values", "few directions"])
def test_similarities_where_scores_tie(tmp_path: Path, degenerate: str) -> None:
    """Ties go to the smaller ids at both ends, so the two ends of a list can be the same tokens."""
    checkpoint = Checkpoint.open(tiny_llama(tmp_path, d_vocab=600))
    model = describe(checkpoint)
    if degenerate == "equal tokens":
        model.W_E[:] = model.W_E[0].clone()
    elif degenerate == "few directions":
        model.W_E[:] = model.W_E[:3].repeat(200, 1)
    else:
        vectors = model.vectors
        zeros = ("ff_value", "w_k")
        model.vectors = lambda layer, kind: vectors(layer, kind) * (0 if kind in zeros else 1)  # type: ignore[method-assign]
    tokens = token_bytes(checkpoint.tokenizer_file(), model.shape.d_vocab)
    built = Built(model, tokens, *make(model, tokens, 2, everything(model)))
    vectors_of = {kind: model.vectors(LAYER, kind).numpy() for kind in model.shape.kinds}
    lists = {kind: brute.vector_lists(built.embedding(kind), V, 100)[0] for kind, V in vectors_of.items()}
    check_similarities(built, lists)
    assert degenerate != "equal tokens" or (built.arrays["ff.similarity"] == 1).all()


def test_what_is_stored_does_not_change_coherence_and_similarity(tmp_path: Path) -> None:
    """In a vocabulary with tokens that are on most lists."""
    checkpoint = Checkpoint.open(tiny_gpt2(tmp_path, n_heads=1, d_model=8, d_mlp=20, d_vocab=2500))
    model = describe(checkpoint)
    model.W_E[::250] *= 40
    tokens = token_bytes(checkpoint.tokenizer_file(), model.shape.d_vocab)
    made = {k: make(model, tokens, 2, everything(model, k, 10))[0] for k in (12, 100, 300)}
    for k, arrays in made.items():
        assert misfits_of(arrays, everything(model, k, 10)) == []
        numbers = [f"{part}.coherence" for part in (*model.shape.kinds, *MATRICES)]
        numbers += [f"{compared}.{part}" for compared in COMPARED for part in ("similarity", "shuffled")]
        for name in numbers:
            np.testing.assert_array_equal(arrays[name], made[100][name])
        for part in ("ids", "scores"):
            np.testing.assert_array_equal(arrays[f"w_q.{part}"], made[300][f"w_q.{part}"][..., :k])
    assert check_coherence_and_similarity(Built(model, tokens, made[12], []))


def test_threads_do_not_change_a_bit(built: Built) -> None:
    before = torch.get_num_threads()
    try:
        for threads, of_torch in ((1, 1), (3, 2)):
            torch.set_num_threads(of_torch)
            arrays, _ = make(built.model, built.tokens, threads, everything(built.model))
            assert arrays.keys() == built.arrays.keys()
            for name, array in arrays.items():
                assert array.dtype == built.arrays[name].dtype
                assert array.tobytes() == built.arrays[name].tobytes(), name
    finally:
        torch.set_num_threads(before)


def test_lists_longer_than_the_vocabulary_are_cut_and_long_pair_lists_are_not_full(tmp_path: Path) -> None:
    checkpoint = Checkpoint.open(tiny_gpt2(tmp_path, n_layers=2, n_heads=1, d_model=4, d_mlp=5, d_vocab=30))
    model = describe(checkpoint)
    tokens = [b" word" if token < 2 else b" word%d" % (token // 2) for token in range(30)]
    arrays, _ = make(model, tokens, 2, everything(model, 100, 1000))
    assert misfits_of(arrays, everything(model, 100, 1000)) == []
    assert np.unique(arrays["vo.count"][:, :, PRESETS.index("all")]) == [900]
    assert np.unique(arrays["vo.count"][:, :, PRESETS.index("distinct")]) == [900 - 15 * 4]
    assert not arrays["vo.count"][:, :, PRESETS.index("words")].any()  # one surface only is a word
    assert np.isnan(arrays["vo.coherence"][:, :, PRESETS.index("words")]).all()


@pytest.mark.parametrize(("kinds", "lenses", "pairs"), [
    (("ff_up", "w_k"), ("cosine",), PAIRS),
    (("ff_key", "ff_up", "ff_value", "w_q", "w_k", "w_v", "w_o"), ("dot",), 0),
])  # fmt: skip
def test_what_is_left_out_changes_nothing_of_the_rest(
    tmp_path: Path, kinds: tuple[str, ...], lenses: tuple[str, ...], pairs: int
) -> None:
    """But for coherence, which leaves out hubs by the lists that there are."""
    checkpoint = Checkpoint.open(tiny_llama(tmp_path, tied=False))
    model = describe(checkpoint)
    tokens = token_bytes(checkpoint.tokenizer_file(), model.shape.d_vocab)
    whole, _ = make(model, tokens, 2, everything(model))
    part = Stored(model.shape, kinds, lenses, K, pairs)
    arrays, steps = make(model, tokens, 2, part)
    assert misfits_of(arrays, part) == []
    assert sum(steps) == pytest.approx(1)
    at = [LENSES.index(lens) for lens in lenses]
    for name, array in arrays.items():
        if name.endswith(".coherence"):
            assert np.isnan(array).mean() < 0.5
        elif not name.startswith(("inverted", "paired")):
            expected = whole[name] if name.endswith(".norm") else np.take(whole[name], at, _lens_axis(name))
            np.testing.assert_array_equal(array, expected, name)


def _lens_axis(name: str) -> int:
    return 2 if name in ("vo.similarity", "vo.shuffled", "qk.similarity", "qk.shuffled") else 1
