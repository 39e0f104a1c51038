"""Token pages against all lists of a small index, one by one."""

import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lexiscope.app.lists.first_words import FIRST_WORDS
from lexiscope.app.pages.token import LISTINGS_OF_KIND, PAIRS_OF_MATRIX
from lexiscope.precompute.build.inverted import invert_pairs
from lexiscope.precompute.errors import NotFound
from lexiscope.precompute.index import tensor_file
from lexiscope.precompute.index.index import Index
from lexiscope.precompute.index.lookup import layers as lookup_layers
from lexiscope.precompute.shape import ENDS, HUB_FACTOR, LENSES, MATRICES, PRESETS, SIDES
from tests.support.builds import quick_build, small_gpt2
from tests.support.lists import (
    READY,
    SHAPES,
    TEXTS,
    all_listings,
    all_pairs,
    first_readable,
    first_tokens,
    owner,
    token,
)
from tests.support.synthetic import D_VOCAB, PADDING, make_manifest, rewrite_shard, shard_arrays, write_index
from tests.support.views import token_view

ROLES = {
    ("reads", "top"): "reads",
    ("reads", "bottom"): "avoids",
    ("writes", "top"): "writes",
    ("writes", "bottom"): "suppresses",
    ("ff_up", "top"): "positive",  # its sign is that of the activation
    ("ff_up", "bottom"): "negative",
}


LISTINGS = {name: list(all_listings(shape, READY[name])) for name, shape in SHAPES.items()}
FIRST_TOKENS = {name: first_tokens(shape, READY[name], FIRST_WORDS) for name, shape in SHAPES.items()}
PAIRS = {name: list(all_pairs(shape, READY[name])) for name, shape in SHAPES.items()}


def places(name: str, number: int, lens: str, kind: str, end: str) -> list[dict[str, object]]:
    """What one role list holds in full."""
    shape = SHAPES[name]
    found = [
        entry
        for entry in LISTINGS[name]
        if (entry.token, entry.lens, entry.kind, entry.end) == (number, lens, kind, end)
    ]
    found.sort(key=lambda entry: (entry.rank, -abs(entry.score), entry.layer, entry.number))
    return [
        {
            "kind": kind, "layer": e.layer, "index": e.number, "rank": e.rank, "score": e.score,
            "first": FIRST_TOKENS[name][kind, e.layer, e.number, lens, end],
        }
        | owner(shape, kind, e.number)
        for e in found
    ]  # fmt: skip


def pairs(name: str, number: int, lens: str, preset: str, matrices: tuple[str, ...]) -> list[dict[str, object]]:
    found = []
    for e in PAIRS[name]:
        if (e.lens, e.preset) == (lens, preset) and e.matrix in matrices:
            for side in range(2):
                if e.pair[side] == number and not (side and e.pair[0] == number):  # a pair with itself counts once
                    order = (e.rank, -abs(e.score), e.layer, e.head, MATRICES.index(e.matrix), side, ENDS.index(e.end))
                    found.append((order, e, side))
    return [
        {
            "matrix": e.matrix, "layer": e.layer, "head": e.head, "side": ("from", "to")[side], "end": e.end,
            "rank": e.rank, "score": e.score, "other": token(e.pair[1 - side]),
            "first": first_readable(PAIRS[name], e.matrix, e.layer, e.head),
        }
        for _, e, side in sorted(found)
    ]  # fmt: skip


questions = {
    "name": st.sampled_from(sorted(SHAPES)),
    "number": st.integers(0, D_VOCAB - 1),
    "lens": st.sampled_from(LENSES),
}


@given(**questions, preset=st.sampled_from(PRESETS))
def test_all_kinds(indexes: dict[str, Index], name: str, number: int, lens: str, preset: str) -> None:
    view = token_view(indexes[name], number, lens, preset)
    kinds = SHAPES[name].kinds
    assert {(role.kind, role.end) for role in view.roles} == {(kind, end) for kind in kinds for end in ENDS}
    assert [role.role for role in view.roles] == sorted(
        (role.role for role in view.roles), key=list(ROLES.values()).index
    )
    for role in view.roles:
        expected = places(name, number, lens, role.kind, role.end)
        assert role.role == ROLES[role.kind if role.kind == "ff_up" else SIDES[role.kind], role.end]
        assert (role.total, list(role.places)) == (len(expected), expected[:LISTINGS_OF_KIND])
        layers = [place["layer"] for place in expected]
        assert role.by_layer == [layers.count(layer) for layer in range(SHAPES[name].n_layers)]
    by_matrix = {matrix: pairs(name, number, lens, preset, (matrix,)) for matrix in MATRICES}
    assert view.totals == {matrix: len(found) for matrix, found in by_matrix.items()}
    assert view.pairs_total == sum(view.totals.values())
    assert view.pairs == [place for found in by_matrix.values() for place in found[:PAIRS_OF_MATRIX]]
    assert (view.page, view.pages, view.kind) == (1, 1, None)
    assert view.missing == tuple(sorted(set(range(SHAPES[name].n_layers)) - set(READY[name])))


@given(**questions, size=st.integers(1, 5), data=st.data())
def test_one_kind_in_pages(
    indexes: dict[str, Index], name: str, number: int, lens: str, size: int, data: st.DataObject
) -> None:
    kind = data.draw(st.sampled_from(SHAPES[name].kinds))
    expected = {end: places(name, number, lens, kind, end) for end in ENDS}
    longest = max(map(len, expected.values()))
    view = token_view(indexes[name], number, lens, kind=kind, size=size)
    assert view.pages == max(1, -(-longest // size))
    assert (view.pairs, view.pairs_total, view.kind) == ([], 0, kind)
    page = data.draw(st.integers(1, view.pages))
    part = slice((page - 1) * size, page * size)
    view = token_view(indexes[name], number, lens, kind=kind, page=page, size=size)
    assert [(role.end, role.total, list(role.places)) for role in view.roles] == [
        (end, len(expected[end]), expected[end][part]) for end in ENDS
    ]
    with pytest.raises(NotFound, match="page"):
        token_view(indexes[name], number, lens, kind=kind, page=view.pages + 1, size=size)


@given(**questions, preset=st.sampled_from(PRESETS), matrix=st.sampled_from(MATRICES), size=st.integers(1, 5))
def test_pairs_of_one_matrix_in_pages(
    indexes: dict[str, Index], name: str, number: int, lens: str, preset: str, matrix: str, size: int
) -> None:
    expected = pairs(name, number, lens, preset, (matrix,))
    pages = max(1, -(-len(expected) // size))
    shown: list[object] = []
    for page in range(1, pages + 1):
        view = token_view(indexes[name], number, lens, preset, matrix, page, size)
        assert (view.pages, view.pairs_total, view.roles) == (pages, len(expected), [])
        shown += view.pairs or ()
    assert shown == expected


@pytest.mark.parametrize(("number", "raw", "text"), [
    (0, "00", "\x00"), (0xE2, "e2", "\\xe2"), (256, "3c 73 63 72 69 70 74", "<script"), (D_VOCAB - 1, "", ""),
])  # fmt: skip
def test_any_token_has_a_page(index: Index, number: int, raw: str, text: str) -> None:
    view = token_view(index, number)
    assert (view.bytes, view.token) == (raw, {"id": number, "token": text})


def test_variants_differ_in_case_and_space(index: Index) -> None:
    texts = {text: number for number, text in enumerate(TEXTS)}
    view = token_view(index, texts[" Dog"])
    assert [variant["token"] for variant in view.variants] == [" dog", "dog"]


@pytest.mark.parametrize("number", [ord(" "), ord("\n"), 0xE2, D_VOCAB - 1, D_VOCAB - PADDING])
def test_blank_and_broken_tokens_have_no_variants(index: Index, number: int) -> None:
    assert token_view(index, number).variants == []


@pytest.mark.parametrize("name", SHAPES)
@pytest.mark.parametrize("as_long_as", [0, 100, 4096])
def test_many_places_are_looked_up_as_few_are(
    indexes: dict[str, Index], monkeypatch: pytest.MonkeyPatch, name: str, as_long_as: int
) -> None:
    """Layer by layer, row by row or whole arrays, instead of one by one."""
    numbers = range(0, D_VOCAB, 7)
    expected = [token_view(indexes[name], number, "cosine", "distinct") for number in numbers]
    monkeypatch.setattr(lookup_layers, "FEW", 0)
    monkeypatch.setattr(tensor_file, "AS_LONG_AS", as_long_as)
    assert [token_view(indexes[name], number, "cosine", "distinct") for number in numbers] == expected


def test_a_pair_with_itself_is_there_once(tmp_path: Path) -> None:
    manifest = write_index(tmp_path / "tiny", make_manifest(), (0,))
    arrays = {name: part.copy() for name, part in shard_arrays(manifest.shape).items()}
    arrays["vo.ids"][...], arrays["qk.ids"][...] = (40, 41), (40, 40)
    ids, counts = ({matrix: arrays[f"{matrix}.{part}"] for matrix in MATRICES} for part in ("ids", "count"))
    rewrite_shard(tmp_path / "tiny", manifest, 0, arrays | invert_pairs(ids, counts, D_VOCAB))
    view = token_view(Index.open(tmp_path / "tiny"), 40)
    assert {(p["side"], p["other"]["id"]) for p in view.pairs or () if p["matrix"] == "qk"} == {("from", 40)}
    assert view.totals["qk"] == arrays["qk.count"][:, 0, 0].sum()


def test_a_token_in_very_many_lists_is_a_hub(tmp_path: Path) -> None:
    built = quick_build(small_gpt2(tmp_path / "model", n_layers=1), tmp_path / "data")
    index = Index.open(built)
    lists = sum(map(index.shape.count, index.shape.kinds)) * len(ENDS)
    for number in range(index.shape.d_vocab):
        view = token_view(index, number)
        times = sum(role.total for role in view.roles) / (lists * index.manifest.k / index.shape.d_vocab)
        assert view.hub == (pytest.approx(times) if times > HUB_FACTOR else None)


def test_nearest_tokens(indexes: dict[str, Index], tmp_path: Path) -> None:
    """None until they are built, and None again if their file cannot be read: the page does without."""
    assert token_view(indexes["gpt2-like"], 40).nearest is None
    built = quick_build(small_gpt2(tmp_path / "model", n_layers=1), tmp_path / "data")
    index = Index.open(built)
    nearest = token_view(index, 40).nearest
    stored = Index.open(built).neighbours(40)
    assert nearest is not None
    assert stored is not None
    ids, scores = stored
    assert [(near["id"], near["score"]) for near in nearest] == list(zip(ids.tolist(), scores.tolist(), strict=True))
    (path,) = (built / entry.file for entry in [index.manifest.neighbours] if entry)
    os.truncate(path, 100)
    assert token_view(index, 40).nearest is None
    assert index.changed
    assert token_view(index.refreshed(), 40).nearest is None


@pytest.mark.parametrize("name", SHAPES)
def test_what_the_model_thinks_beforehand(indexes: dict[str, Index], name: str) -> None:
    index = indexes[name]
    rows = token_view(index, 40).beforehand
    assert [row["matrix"] for row in rows] == ["embedding", "unembedding"][: 1 if SHAPES[name].tied else 2]
    for row, norms, distances in zip(rows, index.norms, index.centred_norms, strict=True):
        assert (row["norm"], row["distance"]) == (norms[40], distances[40])
        assert row["norm_rank"] == sorted(norms.tolist(), reverse=True).index(norms[40]) + 1
        assert row["distance_rank"] == sorted(distances.tolist(), reverse=True).index(distances[40]) + 1
