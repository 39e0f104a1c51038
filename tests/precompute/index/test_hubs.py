"""Hubs and the lens that reads best, counted list by list; harmed layers are left out."""

import collections
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from lexiscope.precompute.build.inverted import invert_lists
from lexiscope.precompute.build.shard_writer import write_piece
from lexiscope.precompute.errors import NotFound
from lexiscope.precompute.index.index import Index
from lexiscope.precompute.index.layout import Piece
from lexiscope.precompute.index.manifest import Manifest
from tests.support.crowded import BYTE, DOG, WORDS, crowded, make, write_crowded_neighbours
from tests.support.synthetic import D_VOCAB, GPT2, LLAMA, K, make_manifest, rewrite_shard, stored_arrays, write_index


def all_lists(index: Index, lens: str, layers: tuple[int, ...]) -> list[list[int]]:
    """Every list of every vector, both ends; of directions only where there are no others."""
    at, stored = index.stored.lenses.index(lens), index.stored.kinds
    kinds = [kind for kind in stored if kind.startswith(("ff_", "w_"))] or stored
    arrays = [index.shard(layer).array(f"{kind}.ids")[:, at] for layer in layers for kind in kinds]
    return [tokens for array in arrays for tokens in array.reshape(-1, array.shape[-1]).tolist()]


def hubs_by_counting(lists: list[list[int]]) -> frozenset[int]:
    counts = collections.Counter(token for tokens in lists for token in tokens)
    usual = sum(map(len, lists)) / D_VOCAB
    return frozenset(token for token, count in counts.items() if count > 10 * usual)


def readable_share(lists: list[list[int]]) -> float:
    first, hubs = [token for tokens in lists for token in tokens[:10]], hubs_by_counting(lists)
    return sum(token in WORDS and token not in hubs for token in first) / len(first)


@pytest.mark.parametrize(("tokens", "share", "more", "best"), [
    ({}, 0, {}, None),
    ({"dot": (DOG, BYTE)}, 0.8, {}, "cosine"),  # of dot the word is a hub, too: it does not count
    ({"dot": tuple(WORDS)}, 0.2, {}, "dot"),  # too few of the lists to be hubs: these are words
    ({"cosine": tuple(WORDS)}, 0.2, {"k": K + 5}, "cosine"),
    ({"cosine": (BYTE, 3, 4)}, 0.9, {"k": 4, "kinds": ("ff_value", "w_o")}, "dot"),
    ({"cosine": (BYTE, 3, 4)}, 0.9, {"lenses": ("cosine",), "pairs": 0}, "cosine"),
    ({"dot": (DOG, BYTE)}, 0.8, {"kinds": ("vo_in", "qk_key")}, "cosine"),
    ({"dot": (DOG, BYTE)}, 0.8, {"kinds": None}, "cosine"),
])  # fmt: skip
def test_hubs_and_the_best_lens_are_those_that_counting_finds(
    tmp_path: Path, tokens: dict[str, tuple[int, ...]], share: float, more: dict[str, Any], best: str
) -> None:
    index = make(tmp_path, tokens, share, LLAMA, **more)
    lists = {lens: all_lists(index, lens, index.layers) for lens in index.stored.lenses}
    for lens in index.stored.lenses:
        assert index.hubs(lens) == hubs_by_counting(lists[lens])
        assert index.hubs(lens) == (frozenset(tokens.get(lens, ())) if share > 0.5 else frozenset())
        assert index.hubs(lens) is index.hubs(lens)
    shares = {lens: readable_share(lists[lens]) for lens in lists}
    assert index.best_lens == max(shares, key=lambda lens: shares[lens])
    assert best in (None, index.best_lens)


def test_equal_lenses_and_no_layers_give_the_first(tmp_path: Path) -> None:
    manifest = write_index(tmp_path / "same", make_manifest())
    for layer in range(GPT2.n_layers):
        arrays = stored_arrays(manifest.stored)
        for kind in manifest.stored.kinds:
            arrays[f"{kind}.ids"][:, 1] = arrays[f"{kind}.ids"][:, 0]
        arrays |= invert_lists([arrays[f"{kind}.ids"] for kind in manifest.stored.kinds], D_VOCAB)
        rewrite_shard(tmp_path / "same", Manifest.load(tmp_path / "same"), layer, arrays)
    assert Index.open(tmp_path / "same").best_lens == "dot"
    write_index(tmp_path / "none", make_manifest(), layers=())
    empty = Index.open(tmp_path / "none")
    assert (empty.best_lens, empty.hubs("cosine"), empty.nearest_hubs) == ("dot", frozenset(), frozenset())


def test_lists_of_directions_change_no_hub(tmp_path: Path) -> None:
    manifest = write_index(tmp_path, make_manifest())
    before = Index.open(tmp_path)
    for layer in range(GPT2.n_layers):
        arrays = stored_arrays(manifest.stored, seed=layer)
        for kind in ("vo_in", "vo_out", "qk_query", "qk_key"):
            arrays[f"{kind}.ids"][..., : len(WORDS)] = WORDS
            arrays[f"{kind}.norm"][::2] = 0  # no direction: its lists are in no inverted list
        listed = np.concatenate([arrays[f"{kind}.norm"] > 0 for kind in manifest.stored.kinds])
        arrays |= invert_lists([arrays[f"{kind}.ids"] for kind in manifest.stored.kinds], D_VOCAB, listed)
        rewrite_shard(tmp_path, manifest, layer, arrays)
        manifest = Manifest.load(tmp_path)
    index = Index.open(tmp_path)
    for lens in index.stored.lenses:
        assert index.hubs(lens) == hubs_by_counting(all_lists(index, lens, index.layers)) == before.hubs(lens)
    assert index.best_lens == before.best_lens


@pytest.mark.parametrize("harm", ["missing before", "missing after", "offsets"])
def test_a_harmed_layer_is_left_out(tmp_path: Path, harm: str) -> None:
    """The other layers have no hubs; together with the harmed one they had."""
    manifest = write_index(tmp_path, make_manifest())
    arrays = crowded(manifest, 1, {"dot": (BYTE,), "cosine": tuple(WORDS)}, 1)
    before = Index.open(tmp_path)
    rewrite_shard(tmp_path, manifest, 1, arrays)
    if harm == "offsets":
        arrays["inverted.offsets"][:, :, 5] = 2**31
        rewrite_shard(tmp_path, manifest, 1, arrays)
    elif harm == "missing before":
        (tmp_path / Piece("lists", 1).file(1)).unlink()
    index = Index.open(tmp_path)
    if harm == "missing after":
        (tmp_path / Piece("lists", 1).file(1)).unlink()
    for lens in before.stored.lenses:
        assert index.hubs(lens) == hubs_by_counting(all_lists(index, lens, (0, 2, 3)))
    shares = {lens: readable_share(all_lists(index, lens, (0, 2, 3))) for lens in before.stored.lenses}
    assert index.best_lens == max(shares, key=lambda lens: shares[lens])


def test_hubs_of_a_lens_that_is_not_stored(tmp_path: Path) -> None:
    write_index(tmp_path, make_manifest(lenses=("dot",)), layers=(0,))
    with pytest.raises(NotFound, match="lens 'cosine': there are dot"):
        Index.open(tmp_path).hubs("cosine")


def test_hubs_among_the_nearest_tokens(tmp_path: Path) -> None:
    manifest, arrays = write_crowded_neighbours(tmp_path, BYTE)
    index = Index.open(tmp_path)
    assert index.nearest_hubs == hubs_by_counting(arrays["neighbours.ids"].tolist()) == {BYTE}
    arrays["neighbours.ids"][3, 4] = 65535  # no token
    write_piece(tmp_path, manifest, Piece("neighbours"), arrays).save(tmp_path)
    assert Index.open(tmp_path).nearest_hubs == {BYTE}
    assert index.refreshed().nearest_hubs == {BYTE}
