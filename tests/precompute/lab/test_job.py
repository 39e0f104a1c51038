"""lab.json is the same however often the job was killed; of other weights, texts or seeds it is measured anew."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from lexiscope.precompute.errors import BadRequest, ShardDamaged
from lexiscope.precompute.index.lab_record import LAB, LabRecord
from lexiscope.precompute.lab.coverage import PARTIAL_COVERAGE
from lexiscope.precompute.live.texts import Texts
from tests.support.labs import LabListener, quick_lab
from tests.support.site import DIFFERENCE

TEXTS = Texts("some.txt", "0" * 64, ("the dog and the lion", "a horse", "the lions saw the dogs", "Paris"), None)


@pytest.fixture
def index(lab_index: Callable[[str], Path], tmp_path: Path) -> Path:
    folder = lab_index("gpt2")
    return Path(shutil.copytree(folder, tmp_path / "data" / folder.name))


@pytest.fixture(scope="module")
def undisturbed(lab_index: Callable[[str], Path], tmp_path_factory: pytest.TempPathFactory) -> bytes:
    folder = Path(shutil.copytree(lab_index("gpt2"), tmp_path_factory.mktemp("lab") / lab_index("gpt2").name))
    record = quick_lab(folder, texts=TEXTS)
    assert record == LabRecord.load(folder)
    assert not (folder / PARTIAL_COVERAGE).exists()
    return (folder / LAB).read_bytes()


class Killed(LabListener):
    """Ends the job when so many units of work are done."""

    def __init__(self, units: int) -> None:
        super().__init__()
        self.left = units

    def _count(self) -> None:
        self.left -= 1
        if not self.left:
            raise KeyboardInterrupt

    def units_done(self, count: int) -> None:
        super().units_done(count)
        self._count()

    def unit_done(self, name: str) -> None:
        super().unit_done(name)
        self._count()


# three layers, three samples, four texts to draw from, four to measure
@pytest.mark.slow
@pytest.mark.parametrize("units", [2, 4, 9, 13])
def test_killed_it_goes_on(index: Path, undisturbed: bytes, units: int) -> None:
    with pytest.raises(KeyboardInterrupt):
        quick_lab(index, Killed(units), texts=TEXTS)
    listener = LabListener()
    quick_lab(index, listener, texts=TEXTS)
    assert (index / LAB).read_bytes() == undisturbed
    assert ("similarity of lists was measured already" in listener.text.getvalue()) == (units > 3)
    if units == 4:
        assert "1 of 3 samples are ready" in listener.text.getvalue()
    if units > 10:
        assert f"{units - 10} of 4 texts are ready" in listener.text.getvalue()


@pytest.mark.parametrize("content", [b"", b"{}", b'{"made_from": 1}', b"\xff" * 100])
def test_a_damaged_remainder_is_not_looked_at(index: Path, undisturbed: bytes, content: bytes) -> None:
    (index / PARTIAL_COVERAGE).write_bytes(content)
    record = quick_lab(index, only=("coverage",), texts=TEXTS)
    assert json.loads(record.model_dump_json())["coverage"] == json.loads(undisturbed)["coverage"]


def test_a_remainder_of_something_else_is_not_gone_on_with(index: Path, undisturbed: bytes) -> None:
    with pytest.raises(KeyboardInterrupt):
        quick_lab(index, Killed(6), texts=TEXTS, only=("coverage",), seed=1)
    assert (index / PARTIAL_COVERAGE).exists()
    record = quick_lab(index, texts=TEXTS, only=("coverage",))
    assert json.loads(record.model_dump_json())["coverage"] == json.loads(undisturbed)["coverage"]


@pytest.mark.slow
def test_what_was_measured_is_not_measured_again(index: Path) -> None:
    chosen: dict[str, Any] = {"texts": TEXTS, "only": ("similarity", "coverage")}
    first, listener = quick_lab(index, **chosen), LabListener()
    stamp = (index / LAB).stat().st_mtime_ns
    assert quick_lab(index, listener, **chosen) == first
    assert (index / LAB).stat().st_mtime_ns == stamp
    assert listener.text.getvalue().count("was measured already") == 2
    for changes in ({"seed": 1}, {"m": 3}, {"length": 4}, {"limit": 2}, {"force": True}):
        again = quick_lab(index, **chosen | changes).coverage
        assert (index / LAB).stat().st_mtime_ns > stamp, changes
        assert (again == first.coverage) == ("force" in changes)


def test_without_texts_what_needs_none(index: Path) -> None:
    listener = LabListener()
    record = quick_lab(index, listener)
    assert record.inverse is not None
    assert (record.similarity is None, record.inverse.hidden, record.coverage) == (False, None, None)
    assert listener.text.getvalue().count("add --texts FILE") == 2
    with pytest.raises(BadRequest, match=r"coverage of .*--texts FILE"):
        quick_lab(index, only=("coverage",))
    with_texts = quick_lab(index, texts=TEXTS, only=("inverse",)).inverse
    assert with_texts is not None
    assert with_texts.hidden is not None
    assert with_texts.normal == record.inverse.normal
    assert quick_lab(index).inverse == with_texts  # nothing is lost


def test_a_difference_does_not_run(site_data: Path, tmp_path: Path) -> None:
    folder, listener = Path(shutil.copytree(site_data / DIFFERENCE, tmp_path / DIFFERENCE)), LabListener()
    record = quick_lab(folder, listener, texts=TEXTS)
    assert record.inverse is not None
    assert (record.inverse.ff_value is None, record.inverse.hidden, record.coverage) == (False, None, None)
    assert "the difference of two models, which cannot run" in listener.text.getvalue()
    assert record.base_sha256 is not None
    with pytest.raises(BadRequest, match="cannot run"):
        quick_lab(folder, texts=TEXTS, only=("coverage",))


def test_a_record_of_other_weights_is_replaced(index: Path) -> None:
    record = quick_lab(index, only=("similarity",))
    stale = record.model_copy(update={"weights_sha256": "e" * 64})
    stale.save(index)
    listener = LabListener()
    assert quick_lab(index, listener, only=("similarity",)) == record
    assert "is of other weights" in listener.text.getvalue()


def test_a_damaged_record_is_named_and_replaced_on_demand(index: Path) -> None:
    (index / LAB).write_bytes(b"{")
    with pytest.raises(ShardDamaged, match=r"lab\.json is damaged"):
        quick_lab(index, only=("similarity",))
    assert quick_lab(index, only=("similarity",), force=True) == LabRecord.load(index)


def test_memory_does_not_grow_with_texts(index: Path) -> None:
    """What is kept between texts has one size: that of its file, but for the digits of numbers."""
    sizes = []
    for units in (5, 12):
        many = Texts("many.txt", "0" * 64, ("the dog and the lion",) * 4 if units == 5 else ("the dog",) * 10, None)
        with pytest.raises(KeyboardInterrupt):
            quick_lab(index, Killed(units), texts=many, only=("coverage",))
        sizes.append(len(json.loads((index / PARTIAL_COVERAGE).read_bytes())["sums"]))
    assert sizes[0] == sizes[1] > 0
