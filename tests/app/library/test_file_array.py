"""Arrays read from files give what mapped ones give, whatever is asked; files that shrink are named, never touched."""

import gc
import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.library import file_array
from app.library.file_array import FileArray, FileShard, OpenFile, unmapped
from precompute.errors import ShardDamaged
from precompute.index.container import Container, write_container
from precompute.index.index import Index
from precompute.shape import ENDS, LENSES, MATRICES, PRESETS
from tests.support.lists import SHAPES
from tests.support.synthetic import D_VOCAB, make_manifest, write_index

ARRAY = np.arange(5 * 2 * 3 * 4, dtype=np.float32).reshape(5, 2, 3, 4)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("files")
    arrays = {
        "a.ids": ARRAY,
        "a.norm": ARRAY[0],
        "b.none": np.empty((0, 4), np.uint16),
        "c.last": ARRAY[1].astype("u1"),
    }
    write_container(path / "some.lxs", arrays, {})
    return path


@pytest.fixture(scope="module")
def arrays(folder: Path) -> Any:
    return unmapped(Container.open(folder / "some.lxs"))[0].arrays


@pytest.mark.parametrize("name", ["a.ids", "a.norm", "b.none", "c.last"])
def test_whole_arrays(folder: Path, arrays: Any, name: str) -> None:
    stored = Container.open(folder / "some.lxs").arrays[name]
    assert np.array_equal(np.asarray(arrays[name]), stored)
    assert (arrays[name].shape, arrays[name].dtype, len(arrays[name])) == (stored.shape, stored.dtype, len(stored))


KEYS = [
    3, (4, 1), (4, 1, 2), (4, 1, 2, 3), slice(1, 3), slice(None), slice(2, 99), slice(3, 1), slice(None, None, 2),
    (1, slice(1)), (1, 1, slice(1, 3)), (1, 1, 2, slice(2, 4)), (slice(None), 1, 0), (slice(None), 1, 0, slice(2)),
    np.array([3, 0, 3]), (np.array([3, 0]), 1, 2), (np.array([3, 0]), 1, np.array([2, 1], np.uint8), 0),
    (np.array([1, 2]), 1, 0, slice(2)), (np.array([1, 2]), 1, slice(1, 2), slice(2)), (1, 0, np.array([2, 0])),
    (np.array([], np.int64), 0, 1), (np.array([[1], [2]]), np.array([0, 1])),
]  # fmt: skip


@pytest.mark.parametrize("key", KEYS, ids=repr)
def test_parts(arrays: Any, key: Any) -> None:
    found = arrays["a.ids"][key]
    assert np.array_equal(found, ARRAY[key])
    assert found.shape == ARRAY[key].shape


@given(st.lists(st.tuples(st.integers(0, 4), st.integers(0, 1), st.integers(0, 2), st.integers(0, 3))))
def test_any_places(arrays: Any, places: list[tuple[int, ...]]) -> None:
    key = tuple(np.array(column, np.int64) for column in zip(*places, strict=True)) or (np.array([], np.int64),) * 4
    assert np.array_equal(arrays["a.ids"][key], ARRAY[key])


@pytest.mark.parametrize("key", [5, -1, (0, 2), (np.array([5]), 0), (np.array([-1]), 0), (np.array([0]), 2)], ids=repr)
def test_places_outside(arrays: Any, key: Any) -> None:
    with pytest.raises(IndexError):
        arrays["a.ids"][key]


@pytest.mark.parametrize("name", SHAPES)
def test_a_shard_says_the_same(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    write_index(tmp_path / name, make_manifest(SHAPES[name], name), (0,))
    mapped = Index.open(tmp_path / name).shard(0)
    shard, shape = FileShard(mapped), SHAPES[name]

    def same(method: str, *arguments: Any) -> None:
        expected, found = (getattr(kind, method)(*arguments) for kind in (mapped, shard))
        for field in getattr(expected, "__slots__", ()):
            assert np.array_equal(getattr(found, field), getattr(expected, field))
        assert type(found) is type(expected)

    rows = np.array([2, 0, 2, 1])
    for array in ("ff_key.ids", "vo.scores", "paired.place", "inverted.rank", "qk.count"):
        assert shard.part(array, 3, 8) == mapped.part(array, 3, 8) != b""
        assert shard.part(array, 3, 3) == b""
    names, which, rows = ("ff_key.ids", "ff_value.ids", "w_q.ids"), np.array([0, 2, 2, 1]), np.array([2, 0, 2, 1])
    for width in (1, 2):
        expected = mapped.rows(names, which, rows, width)
        monkeypatch.setattr(file_array, "AS_LONG_AS", 0 if width == 1 else 4096)
        assert np.array_equal(shard.rows(names, which, rows, width), expected)
        for row, at, number in zip(expected, which, rows, strict=True):
            assert np.array_equal(row, mapped.array(names[at]).ravel()[width * number : width * (number + 1)])
    for lens in LENSES:
        for kind in shape.kinds:
            same("vector", kind, shape.count(kind) - 1, lens)
        same("similarity", 1, lens)
        for end in ENDS:
            for matrix in MATRICES:
                for preset in PRESETS:
                    same("pairs", matrix, shape.n_heads - 1, lens, preset, end)
            for token in range(D_VOCAB):
                same("listed", token, lens, end)
                same("paired", token, lens, end)


def test_a_file_that_shrinks_is_named(tmp_path: Path) -> None:
    """A map of it would end the process."""
    write_index(tmp_path / "tiny", make_manifest(), (0,))
    shard = FileShard(Index.open(tmp_path / "tiny").shard(0))
    path = tmp_path / "tiny" / "layer-0.g1.lxs"
    os.truncate(path, 100)
    with pytest.raises(ShardDamaged, match=r"layer-0.g1.lxs was cut short while it was served"):
        shard.vector("ff_key", 0, "dot")
    with pytest.raises(ShardDamaged, match="cut short"):
        shard.listed(3, "dot", "top")
    with pytest.raises(ShardDamaged, match="cut short"):
        shard.part("ff_key.ids", 0, 1)
    with pytest.raises(ShardDamaged, match="cut short"):
        shard.rows(["ff_key.ids"], np.array([0, 0]), np.array([0, 3]), 1)


def test_no_such_file(tmp_path: Path) -> None:
    with pytest.raises(ShardDamaged, match="is missing"):
        OpenFile(tmp_path / "none.lxs")


def test_files_are_closed_with_their_last_reader(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(bytes(8))
    file = OpenFile(tmp_path / "file")
    descriptor = file.descriptor
    array = FileArray(file, 0, np.dtype("<u2"), (4,))
    del file
    assert array[1] == 0
    assert os.fstat(descriptor).st_size == 8
    del array
    gc.collect()
    with pytest.raises(OSError, match="Bad file descriptor"):
        os.fstat(descriptor)
