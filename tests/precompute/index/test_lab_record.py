"""What was measured of a model, as it stands on disk: read whole, or an error of the tree."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from lexiscope.precompute.errors import ShardDamaged
from lexiscope.precompute.index.lab_record import LAB, LabRecord
from tests.support.labs import plausible_lab
from tests.support.synthetic import make_manifest

MANIFEST = make_manifest()
RECORD = plausible_lab(MANIFEST)


def test_a_record_is_read_as_it_was_written(tmp_path: Path) -> None:
    assert LabRecord.load(tmp_path) is None
    RECORD.save(tmp_path)
    assert LabRecord.load(tmp_path) == RECORD
    empty = LabRecord.of(MANIFEST)
    empty.save(tmp_path)
    assert LabRecord.load(tmp_path) == empty
    assert (empty.similarity, empty.inverse, empty.coverage) == (None, None, None)


def test_lenses() -> None:
    assert RECORD.similarity is not None
    assert RECORD.similarity.of_lens("dot") is RECORD.similarity
    assert RECORD.similarity.of_lens("cosine") == RECORD.similarity.lenses["cosine"]
    assert RECORD.coverage is not None
    assert RECORD.coverage.model_copy(update={"lenses": {}}).of_lens("cosine") is None


def test_a_record_of_other_weights_is_not_taken_for_this_model() -> None:
    assert RECORD.is_of(MANIFEST)
    assert not RECORD.is_of(MANIFEST.with_changes(weights_sha256="e" * 64))
    assert not RECORD.model_copy(update={"base_sha256": "0" * 64}).is_of(MANIFEST)


def _at(*path: str, value: Any) -> Callable[[dict[str, Any]], None]:
    def change(record: dict[str, Any]) -> None:
        *parents, last = path
        for name in parents:
            record = record[name]
        record[last] = value

    return change


@pytest.mark.parametrize(("change", "where"), [
    (_at("format", value=2), "format"),
    (_at("weights_sha256", value="../.."), "weights_sha256"),
    (_at("n_layers", value=10**9), "n_layers"),
    (_at("n_layers", value=1), "its beginning"),
    (_at("similarity", "ff", "matched", value=[0.5]), "similarity.ff"),
    (_at("similarity", "vo", "shuffled", value=[0.5, 1.5, 0.5]), "similarity.vo.shuffled.1"),
    (_at("similarity", "lenses", value={"other": {}}), "similarity.lenses.other"),
    (_at("similarity", "seed", value=-1), "similarity.seed"),
    (_at("inverse", "normal", "k", value=[10, 5]), "inverse.normal"),
    (_at("inverse", "ff_value", "transpose", value=[-2.0] * 9), "inverse.ff_value.transpose.0"),
    (_at("inverse", "hidden", "texts", "name", value="x" * 1000), "inverse.hidden.texts.name"),
    (_at("coverage", "w_o", "own_sd", value=[-0.1, 0, 0]), "coverage.w_o.own_sd.0"),
    (_at("coverage", "m", value=0), "coverage.m"),
    (_at("similarity", "layers", value=[2, 1, 0]), "its beginning"),
    (_at("similarity", "ff", "matched", value=["0.5", 0.5, 0.5]), "similarity.ff.matched.0"),
    (_at("coverage", "texts", value=None), "coverage.texts"),
])  # fmt: skip
def test_a_wrong_value_is_named(tmp_path: Path, change: Callable[[dict[str, Any]], None], where: str) -> None:
    record = json.loads(RECORD.model_dump_json())
    change(record)
    (tmp_path / LAB).write_text(json.dumps(record))
    with pytest.raises(ShardDamaged, match=rf"lab.json is damaged at {where}(\.|\s).*lexiscope lab {tmp_path.name}"):
        LabRecord.load(tmp_path)


@pytest.mark.parametrize("content", [
    b"", b"[]", b"{}", b"[" * 100_000, b"\xff\xfe", RECORD.model_dump_json().encode()[:-9],
    RECORD.model_dump_json().replace('"m":10', '"m":NaN').encode(), b" " * 5_000_000,
], ids=["empty", "list", "none", "deep", "bytes", "cut", "nan", "long"])  # fmt: skip
def test_a_damaged_file_is_named(tmp_path: Path, content: bytes) -> None:
    (tmp_path / LAB).write_bytes(content)
    with pytest.raises(ShardDamaged, match=r"lab.json is (damaged|longer) .*lexiscope lab"):
        LabRecord.load(tmp_path)


def test_a_folder_in_its_place_is_named(tmp_path: Path) -> None:
    (tmp_path / LAB).mkdir()
    with pytest.raises(ShardDamaged, match="cannot be read"):
        LabRecord.load(tmp_path)
