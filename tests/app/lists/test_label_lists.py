"""How much of a label's list is in ours, counted by hand."""

from pathlib import Path
from typing import Any

import pytest

from lexiscope.app.lists.labels import InOurs, in_ours
from lexiscope.precompute.index.index import Index
from lexiscope.precompute.index.label_files import Label
from tests.support.site import LLAMA, K


@pytest.fixture(scope="module")
def index(site_data: Path) -> Index:
    return Index.open(site_data / LLAMA)


def compared(index: Index, place: str, **fields: Any) -> list[InOurs]:
    return in_ours(index, Label(address=f"{LLAMA}/{place}", title="x", **fields))


def other_space(text: str) -> str:
    """Another spelling of the same word: with a leading space, or without."""
    return text[1:] if text.startswith(" ") else f" {text}"


def top(index: Index, kind: str, row: int, lens: str = "dot", end: int = 0) -> list[str]:
    ids = index.shard(1).array(f"{kind}.ids")[row, index.stored.lenses.index(lens), end]
    return [index.tokens.texts[token] for token in ids.tolist()]


def test_tokens_of_a_vector(index: Index) -> None:
    ours = top(index, "ff_value", 3)
    words = [text for text in ours if text.strip().isalnum() and other_space(text) not in ours]
    exact, loose = words[:4], words[4:6]
    (found,) = compared(index, "ff_value/1/3", tokens=[*exact, *map(other_space, loose), "nowhere at all"])
    assert (found.kind, found.length, found.exactly, found.up_to_space) == ("ff_value", K, 4, 6)
    assert found.ranks == [ours.index(text) + 1 for text in exact + loose] + [None]
    assert found.turned is None


def test_tokens_of_a_neuron_are_looked_for_in_each_of_its_vectors(index: Index) -> None:
    tokens = top(index, "ff_up", 3)[:5]
    found = compared(index, "ff/1/3", tokens=tokens)
    assert [of.kind for of in found] == ["ff_key", "ff_up", "ff_value"]
    assert found[1].exactly == 5


def test_vectors_that_heads_share(index: Index) -> None:
    """Heads 0 and 1 have one w_v, of row 2; w_o is head 1's own."""
    assert index.shape.n_heads // index.shape.n_kv_heads == 2
    tokens = top(index, "w_v", 2)
    assert [compared(index, f"w_v/1/{head}/2", tokens=tokens)[0].exactly for head in (0, 1)] == [K, K]
    row = index.shape.d_head + 2
    found = {of.kind: of.exactly for of in compared(index, "sub/1/1/2", tokens=top(index, "w_o", row))}
    assert found["w_o"] == K


@pytest.mark.parametrize(("preset", "lens"), [("all", "dot"), ("words", "cosine")])
def test_pairs(index: Index, preset: str, lens: str) -> None:
    at = index.stored.lenses.index(lens), ["all", "distinct", "words"].index(preset), 0
    count = int(index.shard(1).array("vo.count")[(2, *at)])
    ids = index.shard(1).array("vo.ids")[(2, *at)][:count].tolist()
    texts = index.tokens.texts
    ours = [[texts[a], texts[b]] for a, b in ids]
    turned = [[b, a] for a, b in ours]
    new = [pair for pair in turned[:6] if pair not in ours and [other_space(pair[0]), pair[1]] not in ours]
    (found,) = compared(index, "vo/1/2", pairs=[*ours[:3], *new], preset=preset, lens=lens)
    assert (found.kind, found.length) == ("vo", count)
    assert found.exactly >= 3
    assert found.ranks[:3] == [1, 2, 3]
    assert found.turned is not None
    assert found.in_first_50 == sum(rank is not None and rank <= 50 for rank in found.ranks)
    assert found.turned >= len(new)


def test_tokens_of_a_head_are_looked_for_at_both_sides(index: Index) -> None:
    first = index.shard(1).heads.pairs("qk", 0, "dot", "all", "top").ids[0].tolist()
    texts = [index.tokens.texts[token] for token in first]
    found = {(of.kind, of.side): of.ranks for of in compared(index, "head/1/0", tokens=texts)}
    assert set(found) == {("vo", "from"), ("vo", "to"), ("qk", "from"), ("qk", "to")}
    assert found["qk", "from"][0] == 1
    assert found["qk", "to"][1] == 1
