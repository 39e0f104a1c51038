"""Files of an index: golden bytes, what safetensors itself makes of them, round trips, and files that lie."""

import errno
import hashlib
import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from numpy.typing import NDArray
from safetensors import safe_open
from safetensors.numpy import save

from lexiscope.precompute.errors import BuildError, DiskFull, LexiscopeError, NewerFormat, ShardDamaged
from lexiscope.precompute.index import tensor_file
from lexiscope.precompute.index.tensor_file import DTYPES, MAX_HEADER, TensorFile, write_tensors
from tests.support.small_disk import small_disk

GOLDEN_HEADER = (
    b'{"__metadata__":{"format":"3","layer":"3","model":"tiny"},'
    b'"b":{"dtype":"F32","shape":[1,2],"data_offsets":[0,8]},"a.ids":{"dtype":"U16","shape":[3],"data_offsets":[8,14]}}'
)
GOLDEN = b"".join(
    [
        bytes.fromhex("b000000000000000"),  # 176 bytes of header
        GOLDEN_HEADER.ljust(176),
        bytes.fromhex("0000803f 000020c0"),
        bytes.fromhex("0100 0200 ffff"),
    ]
)
GOLDEN_ARRAYS: dict[str, NDArray[Any]] = {
    "a.ids": np.array([1, 2, 65535], np.uint16),
    "b": np.array([[1.0, -2.5]], np.float32),
}
GOLDEN_METADATA = {"model": "tiny", "layer": "3", "format": "3"}
SHAPES = hnp.array_shapes(min_dims=0, max_dims=4, min_side=0, max_side=5)
ARRAYS = st.dictionaries(
    st.from_regex(r"[a-z0-9_]{1,4}(\.[a-z0-9_]{1,4})?", fullmatch=True),
    st.sampled_from(list(DTYPES)).flatmap(lambda dtype: hnp.arrays(dtype, SHAPES)),
    max_size=5,
)
ONE_FOLDER = settings(suppress_health_check=[HealthCheck.function_scoped_fixture])


def same(left: NDArray[Any], right: NDArray[Any]) -> bool:
    return left.shape == right.shape and left.dtype == right.dtype and left.tobytes() == right.tobytes()


def forge(path: Path, header: Any, data: bytes = b"", length: int | None = None) -> Path:
    """A file that says whatever it is told to."""
    text = header if isinstance(header, bytes) else json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    path.write_bytes((len(text) if length is None else length).to_bytes(8, "little") + text + data)
    return path


def header(metadata: Any = None, **arrays: Any) -> dict[str, Any]:
    return {"__metadata__": {} if metadata is None else metadata, **arrays}


def entry(dtype: Any = "U8", shape: Any = (4,), offsets: Any = (0, 4), **more: Any) -> dict[str, Any]:
    return {"dtype": dtype, "shape": shape, "data_offsets": offsets, **more}


def test_golden_bytes(tmp_path: Path) -> None:
    path = tmp_path / "a.safetensors"
    assert write_tensors(path, GOLDEN_ARRAYS, GOLDEN_METADATA) == (hashlib.sha256(GOLDEN).hexdigest(), len(GOLDEN))
    assert path.read_bytes() == GOLDEN
    assert os.listdir(tmp_path) == ["a.safetensors"]
    file = TensorFile(path)
    assert (file.metadata, file.n_bytes) == (GOLDEN_METADATA, len(GOLDEN))
    assert file.tensors.keys() == GOLDEN_ARRAYS.keys()
    assert all(same(file.array(name), array) for name, array in GOLDEN_ARRAYS.items())


@ONE_FOLDER
@given(arrays=ARRAYS, metadata=st.dictionaries(st.text("ab_ {"), st.text("ab '"), max_size=3))
def test_round_trip_and_what_safetensors_itself_reads_and_writes(
    tmp_path: Path, arrays: dict[str, NDArray[Any]], metadata: dict[str, str]
) -> None:
    path = tmp_path / "a.safetensors"
    first = write_tensors(path, arrays, metadata)
    assert write_tensors(tmp_path / "b.safetensors", dict(reversed(arrays.items())), metadata) == first
    file = TensorFile(path)
    assert file.metadata == metadata
    assert file.tensors.keys() == arrays.keys()
    with safe_open(path, "np") as opened:
        assert set(opened.keys()) == set(arrays)
        assert (opened.metadata() or {}) == metadata
        for name, array in arrays.items():
            assert same(file.array(name), array)
            assert same(opened.get_tensor(name), array)
    if len(metadata) == 1:  # with more, safetensors puts them in any order
        assert path.read_bytes() == save(arrays, metadata)


@pytest.mark.parametrize("as_long_as", [0, 1, 4096])
def test_parts_of_an_array(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, as_long_as: int) -> None:
    monkeypatch.setattr(tensor_file, "AS_LONG_AS", as_long_as)
    array = np.arange(2 * 3 * 4, dtype=np.uint32).reshape(2, 3, 4)
    write_tensors(tmp_path / "a", {"a": array, "first": np.ones(5, np.float32)}, {})
    file = TensorFile(tmp_path / "a")
    assert np.frombuffer(file.read("a", 5, 9), "<u4").tolist() == [5, 6, 7, 8]
    assert np.array_equal(file.block("a", 1, 2), array[1, 2])
    assert np.array_equal(file.block("a", 1), array[1])
    assert file.block("a", 1, 2, 3) == 23
    assert np.array_equal(file.run("a", 1, 2), array[1:2])
    assert file.run("a", 1, 1).shape == (0, 3, 4)
    assert file.rows("a", np.array([22, 0, 5]), 2).tolist() == [[22, 23], [0, 1], [5, 6]]
    assert file.rows("a", np.empty(0, np.int64), 2).shape == (0, 2)
    assert file.rows("a", np.array([5]), 0).shape == (1, 0)
    assert not file.block("a", 0).flags.writeable


def test_arrays_in_any_order_of_memory(tmp_path: Path) -> None:
    array = np.arange(24, dtype=np.uint32).reshape(4, 6)
    for given_array in (array, np.asfortranarray(array), np.repeat(array, 2, axis=1)[:, ::2], array.astype(">u4")):
        write_tensors(tmp_path / "a", {"a": given_array}, {})
        assert np.array_equal(TensorFile(tmp_path / "a").array("a"), array)


def harm(path: Path) -> None:
    path.write_bytes(b"")


@pytest.mark.parametrize("change", [harm, os.utime, os.unlink, lambda path: os.replace(path.with_name("b"), path)])
def test_an_open_file_notices_that_it_changed(tmp_path: Path, change: Callable[[Path], None]) -> None:
    for name in ("a", "b"):
        write_tensors(tmp_path / name, {"a": np.arange(5, dtype=np.uint8)}, {})
    file = TensorFile(tmp_path / "a")
    assert not file.is_changed()
    change(tmp_path / "a")
    assert file.is_changed()


def test_a_file_that_is_cut_short_under_its_reader(tmp_path: Path) -> None:
    write_tensors(tmp_path / "a", {"a": np.arange(5, dtype=np.uint8)}, {})
    file = TensorFile(tmp_path / "a")
    os.truncate(tmp_path / "a", file.n_bytes - 1)
    for read in (lambda: file.array("a"), lambda: file.read("a", 0, 5), lambda: file.rows("a", np.array([4]), 1)):
        with pytest.raises(ShardDamaged, match="a was cut short while it was read"):
            read()
    assert file.read("a", 0, 4) == bytes([0, 1, 2, 3])


@ONE_FOLDER
@given(position=st.integers(0, 8 + 176 - 1), bits=st.integers(1, 255))
def test_a_changed_byte_of_the_header_is_refused_or_in_a_name(tmp_path: Path, position: int, bits: int) -> None:
    """Which names a file may hold is for those who open it."""
    changed = bytearray(GOLDEN)
    changed[position] ^= bits
    (tmp_path / "a").write_bytes(changed)
    try:
        file = TensorFile(tmp_path / "a")
    except LexiscopeError:
        return
    assert (set(file.tensors), file.metadata) != (set(GOLDEN_ARRAYS), GOLDEN_METADATA) or any(
        file.tensors[name].dtype != array.dtype for name, array in GOLDEN_ARRAYS.items()
    )


@pytest.mark.parametrize("length", [0, 1, 7, 8, 100, 183, 184, 190, len(GOLDEN) - 1])
def test_a_truncated_file(tmp_path: Path, length: int) -> None:
    (tmp_path / "a").write_bytes(GOLDEN[:length])
    with pytest.raises(ShardDamaged, match="a is cut short"):
        TensorFile(tmp_path / "a")


def deep(depth: int) -> bytes:
    return b'{"__metadata__":' + b"[" * depth + b"]" * depth + b"}"


NOT_OURS = "not one that Lexiscope writes"


@pytest.mark.parametrize(("said", "data", "why"), [
    (header(a=entry(), b=entry()), bytes(8), NOT_OURS),  # one over the other
    (header(a=entry(), b=entry(offsets=[3, 7])), bytes(8), NOT_OURS),
    (header(a=entry(offsets=[1, 5])), bytes(5), NOT_OURS),  # a gap
    (header(a=entry(offsets=[0, 1 << 62])), bytes(4), NOT_OURS),
    (header(a=entry(offsets=[False, 4])), bytes(4), NOT_OURS),
    (header(a=entry(shape=[5])), bytes(4), NOT_OURS),
    (header(a=entry(dtype="F32")), bytes(4), NOT_OURS),
    (header(b=entry(offsets=[0, 4]), a=entry(offsets=[4, 8])), bytes(8), NOT_OURS),  # out of order
    (json.dumps(header(a=entry())).encode(), bytes(4), NOT_OURS),  # with spaces
    (header({"b": "", "a": ""}), b"", NOT_OURS),
    (header(a=entry()), bytes(5), "too long"),
    (header(a=entry(shape=[1 << 40, 1 << 40])), bytes(4), "too large"),
    (header(a=entry(shape=[-4])), bytes(4), "no shape"),
    (header(a=entry(shape=[4.0])), bytes(4), "no shape"),
    (header(a=entry(shape=[1] * 9, offsets=[0, 1])), bytes(1), "no shape"),
    (header(a=entry(shape="4")), bytes(4), "does not describe"),
    (header(a=entry(dtype="F7")), bytes(4), "does not describe"),
    (header(a=entry(more=1)), bytes(4), NOT_OURS),
    (header(a=[]), b"", "does not describe"),
    ({"a": entry()}, bytes(4), "not a description"),
    (header({"a": 1}), b"", "not a description"),
    ([], b"", "not a description"), (b"", b"", "not JSON"), (b"\x80\x02pickle", b"", "not UTF-8"),
    (b'{"__metadata__":{"a":"1","a":"2"}}', b"", "twice"),
    (b'{"__metadata__":{},"a":NaN}', b"", "NaN"),
    (deep(100_000), b"", "nested too deeply"),
])  # fmt: skip
def test_a_header_that_lies(tmp_path: Path, said: Any, data: bytes, why: str) -> None:
    path = forge(tmp_path / "lies", said, data)
    with pytest.raises(ShardDamaged, match=why) as caught:
        TensorFile(path)
    assert str(path) in str(caught.value)
    assert f"`lexiscope precompute {tmp_path.name}`" in str(caught.value)


@pytest.mark.parametrize("length", [MAX_HEADER + 1, 1 << 40, (1 << 64) - 1])
def test_a_header_length_is_believed_only_within_the_limit(tmp_path: Path, length: int) -> None:
    with pytest.raises(ShardDamaged, match=f"claims a header of {length} bytes"):
        TensorFile(forge(tmp_path / "long", header(), bytes(MAX_HEADER + 64), length))


@pytest.mark.parametrize("version", ["4", "999999999"])
def test_a_file_of_a_newer_format(tmp_path: Path, version: str) -> None:
    with pytest.raises(NewerFormat, match=f"format {version}; this Lexiscope reads format 3. Upgrade lexiscope"):
        TensorFile(forge(tmp_path / "new", header({"format": version}, a=entry(dtype="BF16")), bytes(4)))


@pytest.mark.parametrize(("make", "said"), [
    (lambda _: None, "is missing. Run `lexiscope precompute"),
    (lambda path: path.mkdir(), "not a regular file"),
    (lambda path: os.mkfifo(path), "not a regular file"),
    (lambda path: path.symlink_to(path), "cannot be read: Too many levels of symbolic links. Check"),
])  # fmt: skip
def test_files_that_cannot_be_read(tmp_path: Path, make: Callable[[Path], None], said: str) -> None:
    make(tmp_path / "a")
    with pytest.raises(ShardDamaged, match=said):
        TensorFile(tmp_path / "a")


@pytest.mark.parametrize(
    "starts", [[], [7], [3, 0, 3, 5], [1999, 1000, 1500], [0, 9_999_996, 5], [*range(0, 10_000_000, 5_000)]]
)
def test_rows_that_are_close_or_far_apart(tmp_path: Path, starts: list[int]) -> None:
    numbers = np.arange(10_000_000, dtype=np.uint32)
    path = tmp_path / "a"
    write_tensors(path, {"before": np.zeros(3, np.uint8), "n": numbers.reshape(1000, 10_000)}, {})
    found = TensorFile(path).rows("n", np.array(starts, np.int64), 4)
    assert found.tolist() == [[start, start + 1, start + 2, start + 3] for start in starts]


ZEROS = {"a": np.zeros(3, np.uint8)}


@pytest.mark.parametrize(("code", "error", "said"), [
    (errno.ENOSPC, DiskFull, "no space left .* free some and run the same command again"),
    (errno.EDQUOT, DiskFull, "no space left"),
    (errno.EROFS, BuildError, "cannot write .*Read-only"),
])  # fmt: skip
@pytest.mark.parametrize("call", ["fsync", "replace"])
def test_a_failed_write_leaves_the_old_file_and_nothing_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, call: str, code: int, error: type[Exception], said: str
) -> None:
    path = tmp_path / "a"
    write_tensors(path, ZEROS, {})
    before = path.read_bytes()

    def fail(*_: Any) -> None:
        raise OSError(code, os.strerror(code))

    monkeypatch.setattr(os, call, fail)
    with pytest.raises(error, match=said) as caught:
        write_tensors(path, {"a": np.ones(3, np.uint8)}, {})
    assert str(path) in str(caught.value)
    assert {file.name: file.read_bytes() for file in tmp_path.iterdir()} == {"a": before}


def test_a_full_disk(tmp_path: Path) -> None:
    """The real error of the system, from a limit on the size of files."""
    with small_disk(10_000), pytest.raises(DiskFull, match="File too large"):
        write_tensors(tmp_path / "a", {"a": np.zeros(1 << 20, np.uint8)}, {})
    assert list(tmp_path.iterdir()) == []


def test_an_interrupted_write_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupt(*_: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(os, "fsync", interrupt)
    with pytest.raises(KeyboardInterrupt):
        write_tensors(tmp_path / "a", ZEROS, {})
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("array", [np.zeros(3), np.array(["x"]), np.array([None]), np.zeros(3, np.int32)])
def test_other_types_are_not_written(tmp_path: Path, array: NDArray[Any]) -> None:
    with pytest.raises(TypeError, match="a is of type"):
        write_tensors(tmp_path / "a", {"a": array}, {})


def test_a_header_that_would_not_be_read_is_not_written(tmp_path: Path) -> None:
    with pytest.raises(TypeError, match="header"):
        write_tensors(tmp_path / "a", {}, {"a": "x" * MAX_HEADER})
    assert list(tmp_path.iterdir()) == []
