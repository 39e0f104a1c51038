"""The paper's lists beside ours: what was planted is found, and every count is that of a plain count over scores that
numpy gives."""

import shutil
from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import load_file

from app.views.paper import PaperView, paper_view
from app.views.paper_heads import HeadCompared
from precompute.errors import NotFound
from precompute.index.index import Index
from precompute.paper import lists
from tests.support import planted
from tests.support.labs import plausible_lab

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def view(paper_data: Path) -> PaperView:
    return paper_view(Index.open(paper_data / planted.PLANTED))


def head_of(view: PaperView, address: tuple[str, int, int]) -> HeadCompared:
    (found,) = (each for each in view.heads if (each.matrix, each.layer, each.head) == address)
    return found


def our_pairs(paper_data: Path, model: str, head: lists.PrintedHead, n: int) -> list[tuple[str, str]]:
    """The first pairs of a head, of all that there are, by sorting their scores."""
    tensors = load_file(paper_data.parent / "sources" / model / "model.safetensors")
    E = tensors["transformer.wte.weight"].astype(np.float64)
    attn, d = f"transformer.h.{head.layer}.attn", E.shape[1]
    d_head = d // planted.N_HEADS
    part = slice(head.head * d_head, (head.head + 1) * d_head)
    W_Q, W_K, W_V = np.split(tensors[f"{attn}.c_attn.weight"].astype(np.float64), 3, axis=1)
    W_O = tensors[f"{attn}.c_proj.weight"].astype(np.float64)
    M = W_V[:, part] @ W_O[part] if head.matrix == "vo" else W_Q[:, part] @ W_K[:, part].T
    scores = (E @ M @ E.T).ravel()
    best = np.argpartition(-scores, 4 * n)[: 4 * n]
    order = best[np.argsort(-scores[best], kind="stable")]
    tokens = Index.open(paper_data / model).tokens
    pairs = [(tokens.raw(int(at) // len(E)), tokens.raw(int(at) % len(E))) for at in order]
    if head.without_same_token:
        words = [tuple(raw.decode("utf-8", "replace").strip().lower() for raw in pair) for pair in pairs]
        pairs = [pair for pair, (a, b) in zip(pairs, words, strict=True) if a != b]
    return [(a.decode(), b.decode()) for a, b in pairs[:n] if a.isascii() and b.isascii()]


@pytest.mark.parametrize("model", [planted.PLANTED, planted.RANDOM])
@pytest.mark.parametrize("turned", [False, True])
def test_counts_are_those_of_a_plain_count(paper_data: Path, model: str, turned: bool) -> None:
    view = paper_view(Index.open(paper_data / model), "gpt2-medium")
    stored = {planted.PLANTED: planted.PAIRS, planted.RANDOM: planted.FEW_PAIRS}[model]
    compared = [head for head in lists.heads() if head.layer in planted.BUILT]
    assert len(compared) == 3
    for head in compared:
        ours = our_pairs(paper_data, model, head, stored)
        found = head_of(view, (head.matrix, head.layer, head.head))
        assert found.compared == len(ours)
        unknown = {pair for pair, _ in head.space_uncertain}
        for first in (50, 500):
            printed = [pair[::-1] if turned else pair for pair in head.pairs]
            sure = [pair for at, pair in enumerate(printed) if at not in head.low_confidence]
            known = [pair for at, pair in enumerate(printed) if at not in head.low_confidence | unknown]
            left = [(a.removeprefix(" "), b.removeprefix(" ")) for a, b in ours[:first]]
            up_to_space = 0
            for a, b in sure:
                if (bare := (a.removeprefix(" "), b.removeprefix(" "))) in left:
                    left.remove(bare)
                    up_to_space += 1
            count = found.count(first, direction="turned" if turned else "as printed")
            assert (count.up_to_space, count.of) == (up_to_space, len(sure))
            assert (count.exactly, count.exactly_of) == (sum(pair in ours[:first] for pair in known), len(known))


@pytest.mark.parametrize(
    ("address", "fits"),
    [(planted.AS_PRINTED, "as printed"), (planted.TURNED, "turned"), (planted.QUERIES, "as printed")],
)
def test_planted_pairs_come_first_in_their_direction(view: PaperView, address: tuple[str, int, int], fits: str) -> None:
    found, pairs = head_of(view, address), planted.planted_pairs(address)
    assert found.fits == fits
    ours = [(pair["from"]["token"], pair["to"]["token"]) for pair in found.ours]
    assert ours[: len(pairs)] == [pair[::-1] if fits == "turned" else pair for pair in pairs]
    if fits == "turned":
        assert found.count(50, direction="turned").exactly >= len(pairs) > found.count(50).exactly
        return
    assert [pair["printed"] for pair in found.ours[: len(pairs)]] == ["exactly"] * len(pairs)
    ranks = {(pair.printed[0]["token"], pair.printed[1]["token"]): (pair.rank, pair.how) for pair in found.pairs}
    assert [ranks[pair] for pair in pairs] == [(rank, "exactly") for rank in range(1, len(pairs) + 1)]


def test_direction_of_all_heads(view: PaperView) -> None:
    vo, qk = view.orientation
    assert (qk.fits, qk.means) == ("as printed", "as the authors’ code has it: first the query, then the key")
    assert vo.fits == "both"  # one head is planted as printed, the other one turned
    assert "may be so by chance" in vo.means


def test_planted_tokens_of_a_neuron(view: PaperView) -> None:
    (neuron,) = (each for each in view.neurons if (each.layer, each.neuron) == planted.NEURON)
    for column, expected, ours in zip(
        neuron.columns, planted.planted_tokens(), (neuron.ours_key, neuron.ours_value), strict=True
    ):
        n = planted.NEURON_TOKENS
        assert [token["token"] for token in ours[:n]] == expected
        own = column.in_key if column.column == "key" else column.in_value
        assert own
        assert own.exactly >= n
        ranks = [found.in_key if column.column == "key" else found.in_value for found in column.tokens[:n]]
        assert ranks == [*range(1, n + 1)]


def test_what_cannot_be_compared_says_why(view: PaperView) -> None:
    reasons = {each.address: each.why_not for each in view.heads}
    reasons |= {each.address: each.why_not for each in (*view.neurons, *view.lookups)}
    assert reasons["vo/21/7"] == "layer 21 is not built"
    assert reasons["ff/15/4057"] == "there is no neuron 4057 in a layer, only 0 to 1215"
    assert reasons["vo/16/2"] is None
    assert any("1 of 24 layers are built. `lexiscope precompute" in sentence for sentence in view.details)


def test_where_nothing_fits_it_is_said(paper_data: Path) -> None:
    view = paper_view(Index.open(paper_data / planted.RANDOM), "gpt2-medium")
    assert view.summary.startswith("None of the 117 printed pairs of heads is among our first 50")
    assert {head.fits for head in view.heads if not head.why_not} <= {"neither", "as printed", "turned", "both"}
    assert [each.fits for each in view.orientation] == ["neither", "neither"]
    assert "(no more are to be compared with)" in view.details[0]
    assert all(0 < head.compared <= planted.FEW_PAIRS for head in view.heads if not head.why_not)
    assert not view.by_name


def test_another_vocabulary(site_data: Path) -> None:
    view = paper_view(Index.open(site_data / "tiny-gpt2"), "gpt2-medium")
    assert view.summary.startswith("None of the 39 printed lists can be compared with ours")
    assert head_of(view, ("vo", 21, 7)).pairs[1].printed[0] == {"id": None, "token": " Ramos"}


def test_one_list(paper_data: Path) -> None:
    index = Index.open(paper_data / planted.PLANTED)
    view = paper_view(index, chosen="vo/16/2")
    assert [head.address for head in view.heads] == ["vo/16/2"]
    assert not view.neurons
    assert not view.numbers
    with pytest.raises(NotFound, match="printed no list 'vo/1/1' of gpt2-medium: there is vo/21/7"):
        paper_view(index, chosen="vo/1/1")


def test_words_of_fine_tuned_vectors(paper_data: Path) -> None:
    view = paper_view(Index.open(paper_data / planted.TUNED))
    assert (view.lists, view.by_name) == ("gpt2", True)
    (keys,) = (each for each in view.words if (each.kind, each.layer) == ("FF keys", 11))
    assert keys.best
    assert (keys.best.kind, keys.best.layer, keys.best.index) == ("ff_key", 11, planted.CHANGED)
    assert {*planted.changed_words()} <= {token["token"] for token in keys.best.shared}
    assert planted.CHANGED_TOKENS <= keys.found <= len(keys.words)
    others = {(each.kind, each.layer): each.why_not for each in view.words if each is not keys}
    assert others["FF keys", 9] == "layer 9 is not built"
    assert others["W_Q", 11] == "no w_q of layer 11 changed"
    assert "no classification head" in (others["classification head", None] or "")


def test_numbers(view: PaperView, paper_data: Path) -> None:
    ours = {number.id: number.ours for number in view.numbers}
    assert (ours["heads_gpt2_medium"], ours["layers_gpt2_medium"]) == (384, 24)
    assert len(ours) == len(lists.numbers())
    shard = Index.open(paper_data / planted.PLANTED).shard(16)
    keys, values = (shard.array(f"{kind}.ids")[:, 0, 0].tolist() for kind in ("ff_key", "ff_value"))
    common = [len({*key} & {*value}) >= 15 for key, value in zip(keys, values, strict=True)]
    assert ours["ff_overlap_share_of_pairs"] == round(float(np.mean(common)), 4)
    assert ours["keepk_score_transpose"] is None  # nothing was measured


def test_numbers_of_the_laboratory(paper_data: Path, tmp_path: Path) -> None:
    """Those of these very weights, and of no others."""
    copy = Path(shutil.copytree(paper_data / planted.PLANTED, tmp_path / planted.PLANTED))
    record = plausible_lab(Index.open(copy).manifest)
    record.save(copy)
    assert record.inverse
    assert record.inverse.normal
    at = record.inverse.normal.k.index(1000)
    ours = {number.id: number.ours for number in paper_view(Index.open(copy)).numbers}
    assert ours["keepk_score_transpose"] == round(record.inverse.normal.transpose[at], 4)
    assert ours["keepk_score_pinv"] == round(record.inverse.normal.pseudo[at], 4)
    assert "aligned higher in layers: ff_key" in ours["rk_claim"]
    record.model_copy(update={"weights_sha256": "0" * 64}).save(copy)
    assert {number.id: number.ours for number in paper_view(Index.open(copy)).numbers}["keepk_score_pinv"] is None
