"""Similarities of lists are those of sets in plain Python, shuffles included."""

from collections.abc import Callable
from pathlib import Path
from statistics import fmean

import numpy as np
import pytest

from lexiscope.precompute.errors import NotStored
from lexiscope.precompute.index.index import Index
from lexiscope.precompute.index.lab_record import Similarities
from lexiscope.precompute.lab.similarity import measure_similarity
from tests.precompute.lab.conftest import K
from tests.precompute.lab.direct import FAMILIES, READS, direct
from tests.support.builds import quick_build
from tests.support.site import DIFFERENCE, GPT2

PAIRS = {"ff": ("ff_key", "ff_value"), "vo": ("w_v", "w_o"), "qk": ("w_q", "w_k")}
SHUFFLES = 10


def sim(a: set[int], b: set[int]) -> float:
    return len(a & b) / len(a | b)


@pytest.mark.parametrize("family", FAMILIES)
def test_similarity_equals_a_direct_computation(
    family: str, lab_index: Callable[[str], Path], family_folder: Callable[[str], Path]
) -> None:
    seed = 7
    model, part = direct(family_folder(family)), measure_similarity(Index.open(lab_index(family)), seed)
    assert (part.k, part.shuffles, part.seed, part.layers) == (K, SHUFFLES, seed, (*range(model.n_layers),))
    for lens in ("dot", "cosine"):
        of_lens = part.of_lens(lens)
        assert of_lens is not None
        for name, (first, second) in PAIRS.items():
            found = getattr(of_lens, name)
            for layer in range(model.n_layers):
                top = model.tokens(model.vectors(layer, first), True, lens, K)
                tops, bottoms = (
                    model.tokens(model.vectors(layer, second), second in READS, lens, K, end)
                    for end in ("top", "bottom")
                )
                check(found, layer, top, tops, bottoms, seed)


def check(
    found: Similarities, layer: int, top: list[set[int]], tops: list[set[int]], bottoms: list[set[int]], seed: int
) -> None:
    n, means = len(top), []
    shares: dict[str, list[float]] = {"bottom": [], "15": [], "common": []}
    orders = [np.random.RandomState(seed + shuffle).permutation(n).tolist() for shuffle in range(SHUFFLES)]
    for order in [None, *orders]:
        partner = dict(zip(order, order[1:] + order[:1], strict=True)) if order else {a: a for a in range(n)}
        pairs = [(top[a], tops[partner[a]], bottoms[partner[a]]) for a in range(n)]
        means.append(fmean([sim(one, other) for one, other, _ in pairs]))
        shares["bottom"].append(fmean([sim(one, other) for one, _, other in pairs]))
        shares["15"].append(fmean([max(sim(a, b), sim(a, c)) >= 0.15 for a, b, c in pairs]))
        shares["common"].append(fmean([len(one & other) >= 0.15 * K for one, other, _ in pairs]))
    matched, *shuffled = means
    expected = {
        "matched": matched, "shuffled": np.mean(shuffled),
        "shuffled_low": min(shuffled), "shuffled_high": max(shuffled),
        "matched_bottom": shares["bottom"][0], "shuffled_bottom": np.mean(shares["bottom"][1:]),
        "share_15": shares["15"][0], "shuffled_15": np.mean(shares["15"][1:]),
        "common_15": shares["common"][0], "shuffled_common_15": np.mean(shares["common"][1:]),
    }  # fmt: skip
    assert {name: values[layer] for name, values in found} == pytest.approx(expected, abs=1e-12)


def test_layers_that_are_not_built_have_no_numbers(site_data: Path) -> None:
    part = measure_similarity(Index.open(site_data / GPT2), 0)
    assert part.layers == (1, 2)
    assert part.ff is not None
    assert [value is None for value in part.ff.matched] == [True, False, False]


def test_vectors_that_did_not_change_are_left_out(site_data: Path) -> None:
    """Of a difference: their lists hold the first tokens of the vocabulary, all alike."""
    part = measure_similarity(Index.open(site_data / DIFFERENCE), 0)
    assert part.ff is not None
    assert (part.ff.matched[0], part.ff.shuffled[0]) == (None, None)
    assert part.ff.shuffled[1] is not None
    assert part.ff.shuffled[1] < 0.1


def test_an_index_without_two_kinds_that_belong_together(source: Path, tmp_path: Path) -> None:
    folder = quick_build(source, tmp_path, kinds=("ff_key", "w_o"), pairs=0)
    with pytest.raises(NotStored, match="--kinds ff_key,ff_value,w_q"):
        measure_similarity(Index.open(folder), 0)


def test_one_lens_and_one_kind_of_pairs(source: Path, tmp_path: Path) -> None:
    folder = quick_build(source, tmp_path, kinds=("ff_key", "ff_value"), lenses=("cosine",), pairs=0)
    part = measure_similarity(Index.open(folder), 0)
    assert (part.ff, part.vo) == (None, None)
    assert part.lenses["cosine"].ff is not None
    assert part.lenses["cosine"].vo is None
