"""Frames over layers hold the lists of the index, entry by entry, whichever library makes them."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import lexiscope
from lexiscope.precompute.index.index import Index
from lexiscope.precompute.shape import DIRECTION_KINDS, ENDS, LENSES, MATRICES, PRESETS, SIDES
from tests.support.differences import DIFFERENCE
from tests.support.synthetic import GPT2, LLAMA, PAIRS, K, make_manifest, rewrite_shard, stored_arrays, write_index

TINY = {"tied": GPT2, "gated-untied": LLAMA, "grouped": replace(GPT2, n_kv_heads=1)}


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    data = tmp_path_factory.mktemp("data")
    for name, shape in TINY.items():
        write_index(data / name, make_manifest(shape, model=name))
    return data


def entries(index: Index, kind: str, layer: int, lens: str, end: str, k: int) -> Iterator[tuple[Any, ...]]:
    """Read list by list, by another way than frames are made."""
    for number in range(index.shape.count(kind)):
        head, at = (None, number) if kind.startswith("ff") else index.shape.head_and_subhead(kind, number)
        lists = index.shard(layer).vector(kind, number, lens)
        if lists.norm == 0 and (index.stored.difference or kind in DIRECTION_KINDS):
            continue  # its page says that there is nothing to list
        ids, scores = (part[ENDS.index(end)][:k].tolist() for part in (lists.ids, lists.scores))
        for rank, (token, score) in enumerate(zip(ids, scores, strict=True), 1):
            yield layer, kind, head, at, lens, end, rank, token, index.tokens.text(token), score


def pair_entries(
    index: Index, matrix: str, layer: int, lens: str, preset: str, end: str, k: int
) -> Iterator[tuple[Any, ...]]:
    text = index.tokens.text
    for head in range(index.shape.n_heads):
        pairs = index.shard(layer).heads.pairs(matrix, head, lens, preset, end)
        listed = zip(pairs.ids[:k].tolist(), pairs.scores[:k].tolist(), strict=True)
        for rank, ((one, to), score) in enumerate(listed, 1):
            yield layer, matrix, head, lens, preset, end, rank, one, text(one), to, text(to), score


def rows(frame: pd.DataFrame) -> list[tuple[Any, ...]]:
    columns = [[None if value is pd.NA else value for value in frame[name]] for name in frame]
    return sorted(zip(*columns, strict=True), key=repr)


@settings(max_examples=40)
@given(
    name=st.sampled_from(sorted(TINY)), kinds=st.sets(st.sampled_from([*SIDES]), min_size=1, max_size=3),
    layers=st.sets(st.integers(0, 2), min_size=1), lens=st.sampled_from([*LENSES, "both"]),
    end=st.sampled_from([*ENDS, None]), k=st.integers(1, K),
)  # fmt: skip
def test_frames_of_vectors(
    data: Path, name: str, kinds: set[str], layers: set[int], lens: Any, end: Any, k: int
) -> None:
    model, index = lexiscope.open(name, data=data), Index.open(data / name)
    for prefix, of in (("ff_", model.neurons), ("w_", model.subheads), (("vo_", "qk_"), model.directions)):
        chosen = [kind for kind in kinds if kind.startswith(prefix) and kind in index.shape.kinds]
        if not chosen:
            continue
        frame = of(layers, kinds=chosen, lens=lens, end=end, k=k).to_pandas()
        expected = [
            row
            for layer in layers for kind in chosen
            for of_lens in (LENSES if lens == "both" else [lens])
            for of_end in ([end] if end else ENDS)
            for row in entries(index, kind, layer, of_lens, of_end, k)
        ]  # fmt: skip
        assert rows(frame) == sorted(expected, key=repr)


@settings(max_examples=40)
@given(
    name=st.sampled_from(sorted(TINY)), matrix=st.sampled_from(MATRICES), layer=st.integers(0, 2),
    lens=st.sampled_from(LENSES), preset=st.sampled_from([*PRESETS, None]), end=st.sampled_from([*ENDS, None]),
    k=st.integers(1, PAIRS),
)  # fmt: skip
def test_frames_of_pairs(
    data: Path, name: str, matrix: Any, layer: int, lens: Any, preset: Any, end: Any, k: int
) -> None:
    model, index = lexiscope.open(name, data=data), Index.open(data / name)
    frame = model.pairs(matrix, layer, lens=lens, preset=preset, end=end, k=k).to_pandas()
    expected = [
        row
        for of_preset in ([preset] if preset else PRESETS)
        for of_end in ([end] if end else ENDS)
        for row in pair_entries(index, matrix, layer, lens, of_preset, of_end, k)
    ]
    assert rows(frame) == sorted(expected, key=repr)


@pytest.mark.parametrize("of", ["vectors", "subheads", "pairs"])
def test_polars_and_arrow_have_the_same(data: Path, of: str) -> None:
    model = lexiscope.open("gated-untied", data=data)
    asked = {
        "vectors": lambda: model.neurons([0, 2], kinds=["ff_key", "ff_up"], lens="both", k=3),
        "subheads": lambda: model.subheads(1, k=2),
        "pairs": lambda: model.pairs("qk"),
    }[of]()
    frame, polars, arrow = asked.to_pandas(), asked.to_polars(), asked.to_arrow()
    assert polars.columns == arrow.column_names == frame.columns.tolist()
    for name in frame:
        plain = [None if pd.isna(value) else value for value in frame[name]]
        assert polars[name].to_list() == plain, name
        assert arrow[name].to_pylist() == plain, name
    assert [str(kind) for kind in (frame["kind" if of != "pairs" else "matrix"].dtype, frame["score"].dtype)] == [
        "category", "float32",
    ]  # fmt: skip


def test_what_did_not_change_has_no_rows(difference_data: Path) -> None:
    model, index = lexiscope.open(DIFFERENCE, data=difference_data), Index.open(difference_data / DIFFERENCE)
    frame = model.neurons(kinds=["ff_value"], end="top", k=3).to_pandas()
    listed = set(zip(frame["layer"].tolist(), frame["index"].tolist(), strict=True))
    changed = {
        (layer, neuron)
        for layer in index.layers
        for neuron in range(index.shape.d_mlp)
        if model.neuron(layer, neuron).view.value.top  # type: ignore[union-attr]
    }
    assert listed == changed
    assert len(changed) < len(index.layers) * index.shape.d_mlp
    pairs = model.pairs("vo", lens="dot", preset="all").to_pandas()
    for layer in index.layers:
        for head in range(index.shape.n_heads):
            there = bool(len(pairs[(pairs["layer"] == layer) & (pairs["head"] == head)]))
            assert there == bool(model.head(layer, head).vo(lens="dot").top)


@pytest.mark.parametrize(("ask", "error", "said"), [
    (lambda m: m.neurons(99), lexiscope.NotFound, "layer 99: tied has layers 0 to 3"),
    (lambda m: m.neurons([]), lexiscope.BadRequest, "there are no layers to read: ready are 0-3"),
    (lambda m: m.neurons(kinds=["w_q"]), lexiscope.BadRequest, "kind 'w_q': here there are ff_key, ff_up, ff_value"),
    (lambda m: m.neurons(kinds=["ff_up"]), lexiscope.NotFound, "kind 'ff_up'"),
    (lambda m: m.neurons(lens="euclid"), lexiscope.BadRequest, "lens = 'euclid': there are dot, cosine, both"),
    (lambda m: m.neurons(end="middle"), lexiscope.BadRequest, "end = 'middle'"),
    (lambda m: m.neurons(k=0), lexiscope.BadRequest, "k = 0: give a whole number from 1 on"),
    (lambda m: m.neurons(k=2.5), lexiscope.BadRequest, r"k = 2\.5: give a whole number from 1 on"),
    (lambda m: m.neurons("2-3"), lexiscope.BadRequest, "layers = '2-3': give a layer, a list of them, or a range"),
    (lambda m: m.neurons(slice(2, 3)), lexiscope.BadRequest, "layers = slice"),
    (lambda m: m.pairs("vo", [1.5]), lexiscope.BadRequest, r"layers = 1\.5: give a whole number from 0 on"),
    (lambda m: m.neurons(kinds=7), lexiscope.BadRequest, "kinds = 7: give a text, or a list of texts"),
    (lambda m: m.neurons(k=11), lexiscope.BadRequest, "k = 11: lists of tied hold 10"),
    (lambda m: m.pairs("ov"), lexiscope.BadRequest, "matrix = 'ov': there are vo and qk"),
    (lambda m: m.pairs("vo", preset="nouns"), lexiscope.BadRequest, "preset = 'nouns'"),
])  # fmt: skip
def test_what_is_not_there(data: Path, ask: Any, error: type[Exception], said: str) -> None:
    with pytest.raises(error, match=said):
        ask(lexiscope.open("tied", data=data))


@pytest.mark.parametrize("name", ["ff_key", "qk"])
def test_a_damaged_layer_is_named(tmp_path: Path, name: str) -> None:
    manifest = write_index(tmp_path / "tiny", make_manifest())
    arrays = stored_arrays(manifest.stored, seed=1)
    arrays[f"{name}.scores"][0, ..., 0] = np.nan
    rewrite_shard(tmp_path / "tiny", manifest, 1, arrays)
    model = lexiscope.open("tiny", data=tmp_path)
    lists = model.pairs("qk") if name == "qk" else model.neurons(kinds=[name])
    with pytest.raises(lexiscope.IndexFault, match=r"layer-1.safetensors is damaged: .* has a score that is no number"):
        lists.to_pandas()
