"""The container: golden bytes, round trips, and files that lie."""

import errno
import hashlib
import json
import os
import resource
import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from numpy.typing import NDArray

from precompute.errors import BuildError, DiskFull, LexiscopeError, NewerFormat, ShardDamaged
from precompute.files import PARTIAL
from precompute.index.container import (
    ALIGNMENT,
    DTYPES,
    MAGIC,
    MAX_HEADER,
    PREAMBLE,
    VERSION,
    Container,
    write_container,
)

GOLDEN_HEADER = (
    b'{"about":{"layer":3,"model":"tiny"},"arrays":'
    b'{"a.ids":{"dtype":"uint16","offset":0,"shape":[3]},"b":{"dtype":"float32","offset":64,"shape":[1,2]}}}'
)
GOLDEN = b"".join(
    [
        b"lexiscope shard\n",
        bytes.fromhex("01000000 c0000000"),  # version 1, 192 bytes of header
        bytes.fromhex("4801000000000000"),  # 328 bytes in all
        bytes.fromhex("7eb18bd0325f6e7fef14fc54d06394e8e5a5db28f21ecfc16544e515c7643e85"),
        GOLDEN_HEADER.ljust(192),
        bytes.fromhex("0100 0200 ffff") + bytes(58),
        bytes.fromhex("0000803f 000020c0"),
    ]
)
GOLDEN_ARRAYS: dict[str, NDArray[Any]] = {
    "b": np.array([[1.0, -2.5]], np.float32),
    "a.ids": np.array([1, 2, 65535], np.uint16),
}
SHAPES = hnp.array_shapes(min_dims=0, max_dims=4, min_side=0, max_side=5)
ARRAYS = st.dictionaries(
    st.from_regex(r"[a-z0-9_]{1,4}(\.[a-z0-9_]{1,4})?", fullmatch=True),
    st.sampled_from(list(DTYPES)).flatmap(lambda dtype: hnp.arrays(dtype, SHAPES)),
    max_size=5,
)
ONE_FOLDER = settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)


def same(left: NDArray[Any], right: NDArray[Any]) -> bool:
    return left.shape == right.shape and left.dtype == right.dtype and left.tobytes() == right.tobytes()


def forge(path: Path, header: Any, data: bytes = b"", **preamble: Any) -> Path:
    """A container that says whatever it is told to, with checksums that agree."""
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    text += b" " * (-len(text) % ALIGNMENT)
    said = {
        "magic": MAGIC,
        "version": VERSION,
        "header_length": len(text),
        "n_bytes": PREAMBLE.size + len(text) + len(data),
        "sha256": hashlib.sha256(text).digest(),
    } | preamble
    path.write_bytes(PREAMBLE.pack(*said.values()) + text + data)
    return path


def describing(**arrays: Any) -> dict[str, Any]:
    return {"about": {}, "arrays": arrays}


def entry(dtype: Any = "uint8", offset: Any = 0, shape: Any = (4,), **more: Any) -> dict[str, Any]:
    return {"dtype": dtype, "offset": offset, "shape": shape, **more}


def test_golden_bytes(tmp_path: Path) -> None:
    path = tmp_path / "golden.lxs"
    sha256, n_bytes = write_container(path, GOLDEN_ARRAYS, {"model": "tiny", "layer": 3})
    assert path.read_bytes() == GOLDEN
    assert (sha256, n_bytes) == (hashlib.sha256(GOLDEN).hexdigest(), len(GOLDEN))
    assert os.listdir(tmp_path) == ["golden.lxs"]


def test_golden_bytes_are_read(tmp_path: Path) -> None:
    (tmp_path / "golden.lxs").write_bytes(GOLDEN)
    container = Container.open(tmp_path / "golden.lxs")
    assert container.about == {"model": "tiny", "layer": 3}
    assert container.n_bytes == len(GOLDEN)
    assert container.arrays.keys() == GOLDEN_ARRAYS.keys()
    assert all(same(container.arrays[name], array) for name, array in GOLDEN_ARRAYS.items())


@ONE_FOLDER
@given(arrays=ARRAYS, about=st.dictionaries(st.text(), st.text() | st.integers(), max_size=3))
def test_round_trip(tmp_path: Path, arrays: dict[str, NDArray[Any]], about: dict[str, str | int]) -> None:
    path = tmp_path / "a.lxs"
    first = write_container(path, arrays, about)
    again = write_container(tmp_path / "b.lxs", dict(reversed(arrays.items())), about)
    assert again == first
    container = Container.open(path)
    assert container.about == about
    assert container.arrays.keys() == arrays.keys()
    for name, array in arrays.items():
        read = container.arrays[name]
        assert same(read, array)
        assert not read.flags.writeable
        assert read.ctypes.data % ALIGNMENT == 0 or not read.size


def test_arrays_are_views_of_the_file_in_any_order_of_memory(tmp_path: Path) -> None:
    array = np.arange(24, dtype=np.uint32).reshape(4, 6)
    for given_array in (array, np.asfortranarray(array), np.repeat(array, 2, axis=1)[:, ::2], array.astype(">u4")):
        write_container(tmp_path / "a.lxs", {"a": given_array}, {})
        read = Container.open(tmp_path / "a.lxs").arrays["a"]
        assert np.array_equal(read, array)
        assert not read.flags.owndata


def test_an_open_container_outlives_its_file_and_its_replacement(tmp_path: Path) -> None:
    path = tmp_path / "a.lxs"
    write_container(path, {"a": np.arange(5, dtype=np.uint8)}, {})
    container = Container.open(path)
    write_container(path, {"a": np.zeros(5, np.uint8)}, {})
    path.unlink()
    assert container.arrays["a"].tolist() == [0, 1, 2, 3, 4]


@ONE_FOLDER
@given(position=st.integers(0, 64 + 192 - 1), bits=st.integers(1, 255))
def test_no_changed_byte_of_the_header_goes_unnoticed(tmp_path: Path, position: int, bits: int) -> None:
    changed = bytearray(GOLDEN)
    changed[position] ^= bits
    (tmp_path / "a.lxs").write_bytes(changed)
    with pytest.raises(LexiscopeError, match=r"a\.lxs"):
        Container.open(tmp_path / "a.lxs")


@ONE_FOLDER
@given(data=st.data())
def test_a_header_with_any_contents_is_read_right_or_refused(tmp_path: Path, data: st.DataObject) -> None:
    """The same flips under a checksum that agrees with them, as someone who means it would make them."""
    header = bytearray(GOLDEN_HEADER)
    for _ in range(data.draw(st.integers(1, 3))):
        header[data.draw(st.integers(0, len(header) - 1))] = data.draw(st.integers(0, 255))
    path = forge(tmp_path / "a.lxs", bytes(header), GOLDEN[64 + 192 :])
    try:
        container = Container.open(path)
    except LexiscopeError:
        return
    described = json.loads(header)["arrays"]
    for name, array in container.arrays.items():
        said = described[name]
        assert same(
            array, np.frombuffer(GOLDEN, said["dtype"], array.size, 256 + said["offset"]).reshape(said["shape"])
        )


@pytest.mark.parametrize("length", [0, 1, 15, 16, 63, 64, 100, 255, 256, 300, len(GOLDEN) - 1])
def test_a_truncated_file(tmp_path: Path, length: int) -> None:
    (tmp_path / "a.lxs").write_bytes(GOLDEN[:length])
    with pytest.raises(ShardDamaged, match=r"a\.lxs is cut short"):
        Container.open(tmp_path / "a.lxs")


def deep(depth: int) -> bytes:
    return b'{"about":' + b"[" * depth + b"]" * depth + b',"arrays":{}}'


@pytest.mark.parametrize(
    ("header", "data", "said"),
    [
        (describing(a=entry(), b=entry()), bytes(4), "not its own"),
        (describing(a=entry(), b=entry(offset=3)), bytes(8), "not its own"),
        (describing(a=entry(offset=64)), bytes(68), "not its own"),
        (describing(a=entry(offset=-64)), bytes(4), "not its own"),
        (describing(a=entry(offset=1 << 62)), bytes(4), "not its own"),
        (describing(a=entry(offset=False)), bytes(4), "not its own"),
        (describing(a=entry(shape=[5])), bytes(4), "not its own"),
        (describing(a=entry(shape=[1 << 40, 1 << 40])), bytes(4), "not its own"),
        (describing(a=entry(shape=[0, 1 << 70])), b"", "damaged"),
        (describing(a=entry(shape=[0, 1 << 62, 1 << 62])), b"", "damaged"),
        (describing(a=entry()), bytes(5), "after its last array"),
        (describing(), bytes(1), "after its last array"),
        (describing(a=entry(shape=[-4])), bytes(4), "shape"),
        (describing(a=entry(shape=[-2, -2])), bytes(4), "shape"),
        (describing(a=entry(shape=[4.0])), bytes(4), "shape"),
        (describing(a=entry(shape=[True])), bytes(1), "shape"),
        (describing(a=entry(shape=[1] * 9)), bytes(1), "shape"),
        (describing(a=entry(shape="4")), bytes(4), "not described"),
        (describing(a=entry(offset="0")), bytes(4), "not described"),
        (describing(a=entry(dtype=None)), bytes(4), "not described"),
        (describing(a=entry(more=1)), bytes(4), "not described"),
        (describing(a=[]), b"", "not described"),
        (describing(a=entry(dtype="object", shape=[1])), bytes(8), "of type 'object'"),
        (describing(a=entry(dtype="<u4", shape=[1])), bytes(4), "of type"),
        (describing(**{"../a": entry()}), bytes(4), "an array '../a'"),
        (describing(**{"\ud800\x1b": entry()}), bytes(4), "an array"),
        ({"about": {}}, b"", "not a description"),
        ({"about": [], "arrays": {}}, b"", "not a description"),
        ({"about": {"a": 1.5}, "arrays": {}}, b"", "not a description"),
        ({"about": {"a": None}, "arrays": {}}, b"", "not a description"),
        ({"about": {}, "arrays": {}, "more": 1}, b"", "not a description"),
        ([], b"", "not a description"),
        (b"", b"", "not JSON"),
        (b"\x80\x02pickle", b"", "not UTF-8"),
        (b'{"about":{"a":1,"a":2},"arrays":{}}', b"", "twice"),
        (b'{"about":{"a":NaN},"arrays":{}}', b"", "NaN"),
        (b'{"about":{"a":-Infinity},"arrays":{}}', b"", "Infinity"),
        (b'{"about":{"a":' + b"9" * 5000 + b'},"arrays":{}}', b"", "damaged"),
        (deep(100_000), b"", "nested too deeply"),
    ],
)
def test_a_header_that_lies(tmp_path: Path, header: Any, data: bytes, said: str) -> None:
    path = forge(tmp_path / "lies.lxs", header, data)
    with pytest.raises(ShardDamaged, match=said) as caught:
        Container.open(path)
    assert str(path) in str(caught.value)
    assert f"`lexiscope precompute {tmp_path.name}`" in str(caught.value)


@pytest.mark.parametrize(
    ("preamble", "error", "said"),
    [
        ({"magic": b"\x93NUMPY\x01\x00........"}, ShardDamaged, "not a Lexiscope shard"),
        ({"version": 0}, ShardDamaged, "no format version 0"),
        ({"version": 2}, NewerFormat, "version 2; this Lexiscope reads versions up to 1. Upgrade lexiscope"),
        ({"version": 0xFFFFFFFF}, NewerFormat, "Upgrade"),
        ({"header_length": 0xFFFFFFC0}, ShardDamaged, "claims a header of 4294967232 bytes"),
        ({"header_length": MAX_HEADER + 64}, ShardDamaged, "claims a header"),
        ({"header_length": 128}, ShardDamaged, "claims a header"),
        ({"header_length": 63}, ShardDamaged, "claims a header"),
        ({"header_length": 0}, ShardDamaged, "checksum"),
        ({"sha256": bytes(32)}, ShardDamaged, "checksum"),
        ({"n_bytes": 5}, ShardDamaged, "too long: 128 bytes instead of 5"),
        ({"n_bytes": 1 << 63}, ShardDamaged, "cut short"),
    ],
)
def test_a_preamble_that_lies(tmp_path: Path, preamble: dict[str, Any], error: type[Exception], said: str) -> None:
    path = forge(tmp_path / "lies.lxs", describing(), **preamble)
    with pytest.raises(error, match=said) as caught:
        Container.open(path)
    assert str(path) in str(caught.value)


def test_a_header_length_is_believed_only_within_the_limit(tmp_path: Path) -> None:
    path = forge(tmp_path / "long.lxs", json.dumps(describing()).encode() + b" " * (MAX_HEADER + 64))
    with pytest.raises(ShardDamaged, match="claims a header"):
        Container.open(path)


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda _: None, "is missing. Run `lexiscope precompute"),
        (lambda path: path.mkdir(), "not a regular file"),
        (lambda path: os.mkfifo(path), "not a regular file"),
        (lambda path: path.symlink_to(path), "cannot be read: Too many levels of symbolic links. Check"),
    ],
)
def test_files_that_cannot_be_read(tmp_path: Path, make: Callable[[Path], None], said: str) -> None:
    make(tmp_path / "a.lxs")
    with pytest.raises(ShardDamaged, match=said):
        Container.open(tmp_path / "a.lxs")


@pytest.mark.parametrize(
    ("code", "error", "said"),
    [
        (errno.ENOSPC, DiskFull, "no space left .* free some and run the same command again"),
        (errno.EDQUOT, DiskFull, "no space left"),
        (errno.EROFS, BuildError, "cannot write .*Read-only"),
    ],
)
@pytest.mark.parametrize("call", ["fsync", "replace"])
def test_a_failed_write_leaves_the_old_file_and_nothing_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, call: str, code: int, error: type[Exception], said: str
) -> None:
    path = tmp_path / "a.lxs"
    write_container(path, {"a": np.zeros(3, np.uint8)}, {})
    before = path.read_bytes()

    def fail(*_: Any) -> None:
        raise OSError(code, os.strerror(code))

    monkeypatch.setattr(os, call, fail)
    with pytest.raises(error, match=said) as caught:
        write_container(path, {"a": np.ones(3, np.uint8)}, {})
    assert str(path) in str(caught.value)
    assert {file.name: file.read_bytes() for file in tmp_path.iterdir()} == {"a.lxs": before}


def test_a_full_disk(tmp_path: Path) -> None:
    """The real error of the system, from a limit on the size of files."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (10_000, before[1]))
    try:
        with pytest.raises(DiskFull, match="File too large"):
            write_container(tmp_path / "a.lxs", {"a": np.zeros(1 << 20, np.uint8)}, {})
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert list(tmp_path.iterdir()) == []


def test_an_interrupted_write_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupt(*_: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(os, "fsync", interrupt)
    with pytest.raises(KeyboardInterrupt):
        write_container(tmp_path / "a.lxs", {"a": np.zeros(3, np.uint8)}, {})
    assert list(tmp_path.iterdir()) == []


def test_what_a_killed_writer_left_is_replaced(tmp_path: Path) -> None:
    (tmp_path / f"a.lxs{PARTIAL}").write_bytes(b"half of a shard" * 1000)
    write_container(tmp_path / "a.lxs", {"a": np.zeros(3, np.uint8)}, {})
    assert [path.name for path in tmp_path.iterdir()] == ["a.lxs"]
    assert Container.open(tmp_path / "a.lxs").arrays["a"].tolist() == [0, 0, 0]


def test_a_missing_folder_is_named(tmp_path: Path) -> None:
    with pytest.raises(BuildError, match=r"/no was removed"):
        write_container(tmp_path / "no" / "a.lxs", {}, {})


def test_a_link_in_the_way_is_replaced_not_followed(tmp_path: Path) -> None:
    (tmp_path / "precious").write_text("keep me")
    for name in ("a.lxs", f"a.lxs{PARTIAL}"):
        (tmp_path / name).symlink_to(tmp_path / "precious")
    write_container(tmp_path / "a.lxs", {"a": np.zeros(3, np.uint8)}, {})
    assert (tmp_path / "precious").read_text() == "keep me"
    assert Container.open(tmp_path / "a.lxs").arrays["a"].tolist() == [0, 0, 0]
    assert not (tmp_path / "a.lxs").is_symlink()


@pytest.mark.parametrize(
    ("name", "array"),
    [
        ("a", np.zeros(3)),
        ("a", np.array(["x"])),
        ("a", np.array([None])),
        ("A b", np.zeros(3, np.uint8)),
        ("", np.zeros(3, np.uint8)),
        ("a", np.zeros([1] * 9, np.uint8)),
    ],
)
def test_what_has_no_place_in_a_container(tmp_path: Path, name: str, array: NDArray[Any]) -> None:
    with pytest.raises(TypeError, match="no place"):
        write_container(tmp_path / "a.lxs", {name: array}, {})


def test_a_header_that_would_not_be_read_is_not_written(tmp_path: Path) -> None:
    with pytest.raises(TypeError, match="header"):
        write_container(tmp_path / "a.lxs", {}, {"a": "x" * MAX_HEADER})
    assert list(tmp_path.iterdir()) == []


def test_the_preamble_is_as_long_as_the_alignment() -> None:
    assert PREAMBLE.size == ALIGNMENT == struct.calcsize("<16sIIQ32s")
