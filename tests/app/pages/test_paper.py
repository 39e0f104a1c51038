"""The paper's lists beside ours: what was planted is found, and every count is that of a plain count over scores that
numpy gives."""

from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import load_file

from lexiscope.app.library.library import Library
from lexiscope.app.pages.page import ModelSite, find_pages
from lexiscope.app.pages.paper import PaperArguments, PaperAt, PaperView, PrintedList, paper
from lexiscope.precompute.index.index import Index
from lexiscope.precompute.paper import lists
from tests.support import planted

pytestmark = pytest.mark.slow
find_pages()  # rows link to other pages


def paper_view(index: Index, compared_as: str | None = None, chosen: str | None = None) -> PaperView:
    ask = PaperArguments.model_validate({"lens": "dot", "as": compared_as, "list": chosen})
    return paper(ModelSite(index=index, library=Library(index.folder.parent)), PaperAt(), ask)


@pytest.fixture(scope="module")
def view(paper_data: Path) -> PaperView:
    return paper_view(Index.open(paper_data / planted.PLANTED))


def row_of(view: PaperView, address: str, column: str = "") -> PrintedList:
    (found,) = (each for each in view.printed if each.address == address and column in ("", each.column))
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
def test_counts_are_those_of_a_plain_count(paper_data: Path, model: str) -> None:
    view = paper_view(Index.open(paper_data / model), "gpt2-medium")
    stored = {planted.PLANTED: planted.PAIRS, planted.RANDOM: planted.FEW_PAIRS}[model]
    compared = [head for head in lists.heads() if head.layer in planted.BUILT]
    assert len(compared) == 3
    for head in compared:
        ours = our_pairs(paper_data, model, head, stored)[:50]
        row = row_of(view, f"{head.matrix}/{head.layer}/{head.head}")
        left = [(a.removeprefix(" "), b.removeprefix(" ")) for a, b in ours]
        found = 0
        sure = [pair for at, pair in enumerate(head.pairs) if at not in head.low_confidence]
        for a, b in sure:
            if (bare := (a.removeprefix(" "), b.removeprefix(" "))) in left:
                left.remove(bare)
                found += 1
        assert (row.printed, row.found, row.of, row.among) == (len(head.pairs), found, len(sure), len(ours))
        assert (found >= planted.D_HEAD) is (
            model == planted.PLANTED and (head.matrix, head.layer, head.head) != planted.TURNED
        )
    assert view.by_name is (model == planted.PLANTED)


@pytest.mark.parametrize("address", [planted.AS_PRINTED, planted.QUERIES])
def test_planted_pairs_come_first(paper_data: Path, address: tuple[str, int, int]) -> None:
    index, pairs = Index.open(paper_data / planted.PLANTED), planted.planted_pairs(address)
    view = paper_view(index, chosen="/".join(map(str, address)))
    ranks = {tuple(token["token"] for token in entry.tokens): entry.rank for entry in view.entries}
    assert [ranks[pair] for pair in pairs] == [*range(1, len(pairs) + 1)]


def test_planted_tokens_of_a_neuron(paper_data: Path) -> None:
    index, (layer, neuron) = Index.open(paper_data / planted.PLANTED), planted.NEURON
    view = paper_view(index, chosen=f"ff/{layer}/{neuron}")
    assert [row.column for row in view.printed] == ["key", "value"]
    for column, expected in zip(("key", "value"), planted.planted_tokens(), strict=True):
        entries = [entry for entry in view.entries if entry.column == column][: planted.NEURON_TOKENS]
        assert [entry.tokens[0]["token"] for entry in entries] == expected
        assert [entry.rank for entry in entries] == [*range(1, planted.NEURON_TOKENS + 1)]
        found = row_of(view, f"ff/{layer}/{neuron}", column).found
        assert found is not None
        assert found >= planted.NEURON_TOKENS


def test_what_cannot_be_compared_says_why(view: PaperView) -> None:
    assert row_of(view, "vo/21/7").why_not == "layer 21 is not built"
    assert row_of(view, "ff/15/4057", "key").why_not == "there is no neuron 4057 in a layer, only 0 to 1215"
    for row in view.printed:
        assert (row.found is None) is (row.ours is None) is (row.why_not is not None)
    assert row_of(view, "vo/16/2").ours == f"/{planted.PLANTED}/head/16/2/vo?preset=distinct"


def test_every_printed_list_has_a_row(view: PaperView) -> None:
    addresses = {f"{each.matrix}/{each.layer}/{each.head}" for each in lists.heads()}
    addresses |= {f"ff/{each.layer}/{each.neuron}" for each in lists.neurons()}
    addresses |= {f"ff/{result.layer}/{result.neuron}" for each in lists.lookups() for result in each.results}
    assert {row.address for row in view.printed} == addresses
    assert not view.entries


def test_words_of_fine_tuned_vectors(paper_data: Path) -> None:
    view = paper_view(Index.open(paper_data / planted.TUNED))
    assert (view.lists, view.by_name) == ("gpt2", True)
    keys = row_of(view, "FF keys, layer 11")
    assert keys.ours == f"/{planted.TUNED}/ff/11/{planted.CHANGED}"
    assert keys.found is not None
    assert planted.CHANGED_TOKENS <= keys.found <= keys.of
    assert keys.by_chance is not None
    assert 0 < keys.by_chance <= keys.of
    assert row_of(view, "FF keys, layer 9").why_not == "layer 9 is not built"
    assert row_of(view, "W_Q, layer 11").why_not == "no w_q of layer 11 changed"
    assert "no classification head" in (row_of(view, "classification head").why_not or "")
