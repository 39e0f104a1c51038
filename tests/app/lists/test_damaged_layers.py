"""A layer whose numbers cannot be: its own pages say so, pages about all layers leave it out and show the others."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from lexiscope.precompute.errors import ShardDamaged
from lexiscope.precompute.index.index import Index
from lexiscope.precompute.index.lookup import layers as lookup_layers
from tests.support.lists import all_listings
from tests.support.synthetic import D_VOCAB, GPT2, K, make_manifest, rewrite_shard, shard_arrays, write_index
from tests.support.views import head_view, layer_view, model_view, search_view, token_view

pytestmark = pytest.mark.slow

Damage = Callable[..., Index]


@pytest.fixture
def damaged(tmp_path: Path) -> Damage:
    """An index of layers 0 and 1, of which the second holds a value that it cannot have."""

    def damage(array: str, value: float, at: Any = ...) -> Index:
        manifest = write_index(tmp_path / "tiny", make_manifest(), (0, 1))
        arrays = {name: part.copy() for name, part in shard_arrays(GPT2, seed=1).items()}
        arrays[array][at] = np.array(value).astype(arrays[array].dtype)
        rewrite_shard(tmp_path / "tiny", manifest, 1, arrays)
        return Index.open(tmp_path / "tiny")

    return damage


@pytest.mark.parametrize(("array", "value"), [
    ("ff_key.ids", D_VOCAB), ("ff_value.ids", D_VOCAB), ("ff_value.norm", np.inf), ("ff_value.norm", -1),
    ("ff_value.norm", np.nan), ("ff.similarity", 2), ("ff.similarity", np.nan),
])  # fmt: skip
def test_a_layer(damaged: Damage, array: str, value: float) -> None:
    index = damaged(array, value, 3)
    with pytest.raises(ShardDamaged, match=r"layer-1\.safetensors is damaged"):
        layer_view(index, 1)
    assert layer_view(index, 0).total == GPT2.d_mlp


@pytest.mark.parametrize(("array", "at", "value"), [
    ("inverted.offsets", (0, 0, 5), 2**32 - 1), ("inverted.offsets", (0, 0, 200), 0), ("inverted.vector", ..., 65535),
    ("inverted.vector", 0, 0), ("inverted.rank", ..., K), ("inverted.rank", 5, 255),
])  # fmt: skip
def test_a_layer_and_a_token(damaged: Damage, array: str, at: Any, value: int) -> None:
    index, errors = damaged(array, value, at), []
    for token in range(D_VOCAB):
        try:
            layer_view(index, 1, token=token)
        except ShardDamaged as error:
            errors.append(str(error))
    assert errors
    assert all("point at what is not there" in error for error in errors)
    assert layer_view(index, 0, token=0).layer == 0


def test_a_head(damaged: Damage) -> None:
    index = damaged("w_o.ids", D_VOCAB, -1)
    with pytest.raises(ShardDamaged, match=r"w_o 7 \(dot, top\) lists token"):
        head_view(index, 1, 1)
    assert head_view(index, 1, 0).head == 0


@pytest.mark.parametrize(("array", "value"), [("vo.ids", D_VOCAB), ("qk.count", 10**6), ("ff_value.ids", D_VOCAB)])
def test_a_model(damaged: Damage, array: str, value: int) -> None:
    view = model_view(damaged(array, value))
    rows = {row.layer: row for row in view.rows}
    assert (rows[0].ready, rows[0].fault, rows[2].fault) == (True, None, None)
    if array != "ff_value.ids":  # which the maps do not show
        assert not rows[1].ready
        assert "layer-1.safetensors is damaged" in str(rows[1].fault)
    assert {card["layer"] for card in view.neurons or ()} <= {0}


@pytest.mark.parametrize(("array", "value"), [
    ("inverted.offsets", 2**32 - 1), ("inverted.vector", 60000), ("ff_key.ids", D_VOCAB),
    ("paired.offsets", 2**32 - 1), ("paired.place", 60000), ("paired.rank", 60000), ("vo.ids", D_VOCAB), ("vo.ids", 0),
    ("vo.count", 0), ("vo.scores", np.nan),
])  # fmt: skip
def test_a_search(damaged: Damage, array: str, value: float) -> None:
    view = search_view(damaged(array, value), "e", size=1000)
    assert view.missing == (1, 2, 3)
    assert {match["layer"] for match in view.matches} == {0}


@pytest.mark.parametrize(("array", "at", "value"), [
    ("inverted.offsets", (0, 0, 41), 2**32 - 1), ("inverted.vector", ..., 60000), ("inverted.vector", ..., 1),
    ("inverted.rank", ..., 200), ("paired.offsets", (0, 0, 41), 2**32 - 1), ("paired.place", ..., 60000),
    ("paired.place", (slice(None), 3), 2), ("paired.rank", ..., 2**32 - 1), ("ff_key.scores", ..., np.nan),
    ("ff_value.ids", ..., D_VOCAB), ("vo.ids", ..., D_VOCAB), ("qk.scores", ..., np.inf), ("vo.count", ..., 2**32 - 1),
])  # fmt: skip
@pytest.mark.parametrize("few", [0, 256])
def test_a_token(damaged: Damage, monkeypatch: pytest.MonkeyPatch, array: str, at: Any, value: float, few: int) -> None:
    monkeypatch.setattr(lookup_layers, "FEW", few)
    index = damaged(array, value, at)
    views = {number: token_view(index, number) for number in range(30, 60)}
    left_out = [number for number, view in views.items() if 1 in view.missing]
    assert left_out or array == "vo.count"  # a count that is too large hides nothing that is listed
    for number in left_out[:3]:
        expected = [e for e in all_listings(GPT2, (0,)) if (e.token, e.lens) == (number, "dot")]
        assert sum(role.total for role in views[number].roles) == len(expected)


def test_a_layer_that_cannot_be_opened(tmp_path: Path) -> None:
    write_index(tmp_path / "tiny", make_manifest(), (0, 1))
    (tmp_path / "tiny" / "layer-1.safetensors").write_bytes(b"")
    rows = {row.layer: row for row in model_view(Index.open(tmp_path / "tiny")).rows}
    assert "layer-1.safetensors" in str(rows[1].fault)
    assert (rows[0].fault, rows[2].fault) == (None, None)


def test_nothing_is_built_yet(tmp_path: Path) -> None:
    write_index(tmp_path / "tiny", make_manifest(), ())
    index = Index.open(tmp_path / "tiny")
    search, token, model = search_view(index, "dog e"), token_view(index, 40), model_view(index)
    assert (search.total, search.missing, token.missing) == (0, (0, 1, 2, 3), (0, 1, 2, 3))
    assert search.words[0].tokens
    assert not any(role.total for role in token.roles)
    assert token_view(index, 40, kind="vo").pages == 1
    assert not any(row.ready for row in model.rows)
    assert (model.neurons, model.agreeing, model.heads) == ((), (), ())
