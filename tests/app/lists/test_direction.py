"""Singular directions: their page, their table on a head's page, and how well they read beside subheads."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from lexiscope.app.formats.json_format import ascii_json
from lexiscope.app.lists.direction_coherence import BEST, JUDGED_TOKENS, direction_coherence, subhead_coherence
from lexiscope.app.lists.readable import INDISTINCT, readable
from lexiscope.app.pages.head import DIRECTIONS_NAMED, NOISE, VECTOR_TOKENS, MatrixDirections
from lexiscope.precompute.build.inverted import invert_lists
from lexiscope.precompute.index.index import Index
from lexiscope.precompute.shape import DIRECTION_KINDS, DIRECTIONS, ENDS, FACTORS, LENSES
from tests.app.lists.test_parameters import expected_vector
from tests.support.lists import SHAPES, token
from tests.support.synthetic import (
    GPT2,
    make_manifest,
    raw_tokens,
    rewrite_shard,
    shard_arrays,
    stored_arrays,
    write_index,
)
from tests.support.views import direction_view, head_view

SIDES = {"vo": ("in", "out"), "qk": ("query", "key")}


@pytest.fixture(params=SHAPES)
def index(request: pytest.FixtureRequest, indexes: dict[str, Index]) -> Index:
    return indexes[request.param]


NOTES = {
    "rotary": "Positions are rotary: QK's directions are of the scores at distance zero only.",
    "learned": "Positions are learned, and left out: QK's directions are of the scores of the tokens alone.",
}


@pytest.mark.parametrize("lens", LENSES)
def test_a_page_of_both_matrices(index: Index, lens: str) -> None:
    layer, head, j = index.layers[1], 1, 2
    arrays = shard_arrays(index.shape, seed=layer)
    row, at = head * index.shape.d_head + j, LENSES.index(lens)  # also where heads share keys and values
    values = {matrix: arrays[f"{matrix}.singular"][head].astype(np.float64) for matrix in DIRECTIONS}
    assert json.loads(ascii_json(direction_view(index, layer, head, j, lens))) == {
        "model": index.manifest.model, "build": index.manifest.build, "layer": layer, "head": head, "direction": j,
        "lens": lens,
        **{
            matrix: {
                "singular": values[matrix][j],
                "share": pytest.approx(values[matrix][j] ** 2 / (values[matrix] ** 2).sum()),
                **{
                    side: expected_vector(arrays, kind, row, at)
                    for side, kind in zip(SIDES[matrix], kinds, strict=True)
                },
            }
            for matrix, kinds in DIRECTIONS.items()
        },
        "matches": {}, "note": NOTES[index.shape.positions],
    }  # fmt: skip


def edited(folder: Path, change: Any, **parts: Any) -> Index:
    """A small index whose layer 1 was changed."""
    manifest = write_index(folder, make_manifest(GPT2, **parts), layers=(1,))
    arrays = {name: array.copy() for name, array in stored_arrays(manifest.stored, seed=1).items()}
    change(arrays)
    arrays |= invert_lists([arrays[f"{kind}.ids"] for kind in manifest.stored.kinds], GPT2.d_vocab)
    rewrite_shard(folder, manifest, 1, arrays)
    return Index.open(folder)


def test_what_is_no_direction_lists_nothing(tmp_path: Path) -> None:
    def change(arrays: dict[str, Any]) -> None:
        arrays["vo.singular"][1] = [3, 2, 0, 0]
        for kind in DIRECTIONS["vo"]:
            arrays[f"{kind}.norm"][6:8], arrays[f"{kind}.coherence"][6:8] = 0, np.nan

    index = edited(tmp_path, change)
    there, none = (direction_view(index, 1, 1, j) for j in (1, 2))
    assert there.vo
    assert none.vo
    assert there.vo["share"] == pytest.approx(4 / 13)
    assert len(there.vectors["in"].top) == index.manifest.k  # type: ignore[union-attr]
    assert (none.vo["singular"], none.vo["share"]) == (0, 0)
    for side in ("in", "out"):
        vector = none.vectors[side]
        assert vector
        assert (vector.top, vector.bottom, vector.norm, vector.coherence) == ([], [], 0, (None, None))
    assert none.vectors["query"].top  # type: ignore[union-attr]
    rows = head_view(index, 1, 1).directions["vo"].rows  # type: ignore[index, union-attr]
    assert [bool(row["tokens"]["out"]) for row in rows] == [True, True, False, False]


@pytest.mark.parametrize(("values", "near"), [
    ([2, 1.99, 1, 0.5], {0: [1], 1: [0], 2: [], 3: []}),
    ([2, 1.999, 1.998, 1], {0: [1, 2], 1: [0, 2], 2: [0, 1], 3: []}),
    ([1, 0, 0, 0], {0: [], 1: [], 2: [], 3: []}),
])  # fmt: skip
def test_nearly_equal_singular_values_are_named(
    tmp_path: Path, values: list[float], near: dict[int, list[int]]
) -> None:
    def change(arrays: dict[str, Any]) -> None:
        arrays["qk.singular"][0] = values

    index = edited(tmp_path, change)
    assert {j: direction_view(index, 1, 0, j).near["qk"] for j in range(4)} == near


def word_list(index: Index, ids: list[int]) -> bool:
    """Of the first tokens of a list: two thirds are words, half are whole ones."""
    words = readable(index)
    return 3 * sum(words.stem(t) is not None for t in ids) >= 2 * len(ids) and 2 * sum(words.whole[ids]) >= len(ids)


def some_lists_of_words(arrays: dict[str, Any], coherence: float | None = None) -> None:
    """Every second list begins with words, the others with random tokens, most of them bytes."""
    words = [at for at, raw in enumerate(raw_tokens()) if raw.strip().isalpha() and len(raw.strip()) > 2]
    random = np.random.default_rng(3)
    for kind in (*DIRECTION_KINDS, *FACTORS["vo"], *FACTORS["qk"]):
        for row in range(0, len(arrays[f"{kind}.ids"]), 2):
            arrays[f"{kind}.ids"][row, :, :, :JUDGED_TOKENS] = random.permutation(words)[:JUDGED_TOKENS]
        if coherence is not None:
            arrays[f"{kind}.coherence"][...] = coherence


def test_coherence_of_both_sides_at_the_better_end(tmp_path: Path) -> None:
    """Written out list by list; a list that is no words counts as 0, and so does one whose tokens are all the same."""

    def change(arrays: dict[str, Any]) -> None:
        some_lists_of_words(arrays)
        arrays["vo_in.coherence"][0] = INDISTINCT
        arrays["vo_out.coherence"][2] = np.nan

    index = edited(tmp_path, change, k=10)
    shard, d_head = index.shard(1), GPT2.d_head
    some = 0
    for matrix, lens in ((matrix, lens) for matrix in DIRECTIONS for lens in LENSES):
        for measure, kinds in ((direction_coherence, DIRECTIONS[matrix]), (subhead_coherence, FACTORS[matrix])):
            for head in range(GPT2.n_heads):
                found = measure(index, shard, matrix, head, lens)
                assert found
                for j in range(d_head):
                    at_ends = []
                    for end, name in enumerate(ENDS):
                        sides = []
                        for kind in kinds:
                            ids, _ = shard.vectors([(kind, head * d_head + j)], lens)
                            coherence = shard.coherences(kind, head * d_head + j, lens)[end]
                            is_read = word_list(index, ids[0, end, :JUDGED_TOKENS].tolist()) and coherence < INDISTINCT
                            sides.append(coherence if is_read else 0.0)
                        at_ends.append(sum(sides) / 2)
                        assert name == ENDS[end]
                    some += max(at_ends) > 0
                    assert found.numbers[j] == pytest.approx(max(at_ends), abs=1e-6)
                    assert found.ends[j] == at_ends.index(max(at_ends))
                order = sorted(range(d_head), key=lambda j: -found.numbers[j])
                assert found.best == [j for j in order if found.numbers[j] > 0]
                assert found.reads == pytest.approx(sum(sorted(found.numbers.tolist())[-BEST:]) / d_head)
    assert some > 10


@pytest.mark.parametrize("lens", LENSES)
def test_the_table_of_a_head(index: Index, lens: str) -> None:
    layer, at = index.layers[1], LENSES.index(lens)
    arrays = shard_arrays(index.shape, seed=layer)
    for head in range(index.shape.n_heads):
        directions = head_view(index, layer, head, lens).directions
        assert directions
        for matrix, of in (("vo", directions["vo"]), ("qk", directions["qk"])):
            measured = direction_coherence(index, index.shard(layer), matrix, head, lens)
            beside = subhead_coherence(index, index.shard(layer), matrix, head, lens)
            assert of
            assert measured
            assert beside
            named = [j for j in measured.best if measured.numbers[j] > NOISE][:DIRECTIONS_NAMED]
            assert (of.best, of.reads, of.subheads_read) == (named, measured.reads, beside.reads)
            for j, row in enumerate(of.rows):
                end = measured.ends[j]
                assert (row["direction"], row["end"]) == (j, ENDS[end])
                assert row["singular"] == arrays[f"{matrix}.singular"][head, j].item()
                assert row["coherence"] == measured.numbers[j].item()
                for side, kind in zip(SIDES[matrix], DIRECTIONS[matrix], strict=True):
                    ids = arrays[f"{kind}.ids"][head * index.shape.d_head + j, at, end, :VECTOR_TOKENS]
                    assert row["tokens"][side] == [token(number) for number in ids.tolist()]


@pytest.mark.parametrize(("reads", "subheads_read", "better"), [
    (0.3, 0.2, "directions"), (0.2, 0.3, "subheads"), (0.22, 0.2, "neither"), (0.2, None, ""), (None, 0.2, ""),
    (0.1, 0.05, "noise"), (0.1, 0.2, "subheads"), (0.13, 0.1, "directions"), (0.125, 0.115, "neither"),
])  # fmt: skip
def test_which_reads_better(reads: float | None, subheads_read: float | None, better: str) -> None:
    of = MatrixDirections(best=[], reads=0.0, subheads_read=0.0, rows=[])
    assert replace(of, reads=reads, subheads_read=subheads_read).better == better
