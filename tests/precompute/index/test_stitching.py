"""Runs of stitching as they stand on disk: read whole, or an error of the tree."""

import json
from pathlib import Path

import orjson
import pytest

from lexiscope.precompute.errors import ShardDamaged
from lexiscope.precompute.index.stitching import STITCHING, dump_runs, read_runs
from tests.support.comparisons import stitching_run

RUN = stitching_run("a" * 64, "b" * 64, n_layers=2, measure="label")


def test_runs_are_read_as_they_were_written(tmp_path: Path) -> None:
    assert read_runs(tmp_path) == ()
    (tmp_path / STITCHING).write_bytes(dump_runs((RUN, RUN)))
    assert read_runs(tmp_path) == (RUN, RUN)


@pytest.mark.parametrize("content", [
    b"", b"{}", dump_runs((RUN,))[:-9], b'[{"texts": 1}]', b"[" * 100_000,
    orjson.dumps([RUN.model_dump() | {"by_layer": [{"layer": 0, "accuracy": 7, "loss": 1}]}]),
    dump_runs((RUN,)).replace(b"1.5", b"NaN"),
    orjson.dumps([RUN.model_dump() | {"by_layer": []}]),
    orjson.dumps([RUN.model_dump() | {"by_layer": [{"layer": 5, "accuracy": 0.5, "loss": 1}]}]),
    json.dumps([RUN.model_dump() | {"count": 10**30}]).encode(),
    orjson.dumps([RUN.model_dump() | {"texts": "x" * 1000}]),
    orjson.dumps([RUN.model_dump()] * 101),
], ids=["empty", "other", "cut", "type", "deep", "range", "nan", "none", "gap", "count", "name", "runs"])  # fmt: skip
def test_a_damaged_file_is_named(tmp_path: Path, content: bytes) -> None:
    (tmp_path / STITCHING).write_bytes(content)
    with pytest.raises(ShardDamaged, match=r"stitching.json is damaged .*lexiscope stitch"):
        read_runs(tmp_path)


def test_a_file_that_is_far_too_long_is_named(tmp_path: Path) -> None:
    (tmp_path / STITCHING).write_bytes(dump_runs((RUN,)) + b" " * 2_000_000)
    with pytest.raises(ShardDamaged, match="longer than"):
        read_runs(tmp_path)


def test_a_folder_in_its_place_is_named(tmp_path: Path) -> None:
    (tmp_path / STITCHING).mkdir()
    with pytest.raises(ShardDamaged, match="cannot be read"):
        read_runs(tmp_path)
