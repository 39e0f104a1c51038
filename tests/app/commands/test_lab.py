"""`lexiscope lab` as a person types it."""

import json
import shutil
from pathlib import Path

import pytest

from lexiscope.app.commands import lab
from lexiscope.precompute.index import lab_record
from lexiscope.precompute.index.lab_record import LabRecord
from lexiscope.precompute.lab import runs
from lexiscope.precompute.live.panels import coverage
from tests.app.commands.conftest import Refused, Run
from tests.support.site import GPT2


@pytest.fixture
def data(site_data: Path, tmp_path: Path) -> Path:
    """The index of which layer 0 is not built."""
    shutil.copytree(site_data / GPT2, tmp_path / "data" / GPT2)
    (tmp_path / "lines.txt").write_text("the dog and the lion\n\nthe horses of Paris\n")
    return tmp_path / "data"


def test_the_address_is_that_of_the_index_and_not_of_the_name_that_was_asked_for(run: Run, data: Path) -> None:
    code, printed, said = run("lab", f"somebody/{GPT2}", "--data", data, "--only", "similarity")
    assert code == 0, said
    assert f" /{GPT2}/lab," in printed.splitlines()[-1]


@pytest.mark.slow
def test_all_measurements_of_a_model_that_is_not_finished(run: Run, data: Path) -> None:
    texts = data.parent / "lines.txt"
    code, printed, said = run("lab", GPT2, "--texts", texts, "--data", data, "--m", "2", "--tokens", "4", "--seed", "3")
    assert code == 0, said
    assert "0 of 2 texts are ready, 2 to measure coverage on" in said
    *lines, last = printed.splitlines()
    assert [line.split(":")[0] for line in lines] == [
        "similarity of keys and values", "keep-300 score of normal", "keep-300 score of ff_value",
        "keep-300 score of hidden", "coverage by FF values",
    ]  # fmt: skip
    assert f"/{GPT2}/lab" in last
    record = LabRecord.load(data / GPT2)
    assert record is not None
    assert record.coverage is not None
    assert record.coverage.w_v is not None
    assert (record.coverage.m, record.coverage.seed, record.coverage.texts.length) == (2, 3, 4)
    assert [share is None for share in record.coverage.w_v.own] == [True, False, False]
    code, _, said = run("lab", GPT2, "--data", data, "--seed", "3", "--texts", texts, "--m", "2", "--tokens", "4")
    assert (code, said.count("was measured already")) == (0, 3)


def test_similarity_needs_no_weights(run: Run, data: Path) -> None:
    manifest = data / GPT2 / "manifest.json"
    fields = json.loads(manifest.read_text())
    manifest.write_text(json.dumps(fields | {"source": "/gone/tiny-gpt2"}))
    code, _, said = run("lab", GPT2, "--data", data)
    assert (code, "/gone/tiny-gpt2" in said) == (1, True)
    record = LabRecord.load(data / GPT2)
    assert record is not None
    assert (record.similarity is None, record.inverse) == (False, None)


@pytest.mark.parametrize(("words", "complaint"), [
    (("lab", GPT2, "--only", "coverage"), "coverage of tiny-gpt2: this needs texts: add --texts FILE"),
    (("lab", "nobody"), "no index of 'nobody'"),
    (("lab", GPT2, "--texts", "lines.json"), "or a .csv with a column text"),
])  # fmt: skip
def test_what_cannot_be_measured(refused: Refused, data: Path, words: tuple[str, ...], complaint: str) -> None:
    assert complaint in refused(*words, "--data", data)


@pytest.mark.parametrize("words", [("--seed", "-1"), ("--seed", "99999999999"), ("--only", "figures"), ("--m", "0")])
def test_what_is_no_option(run: Run, words: tuple[str, ...]) -> None:
    assert run("lab", GPT2, *words)[0] == 2


def test_what_is_usual_is_what_the_measurements_have() -> None:
    """Said twice: a command imports little until it runs."""
    assert (lab.MEASUREMENTS, lab.LARGEST_SEED) == (lab_record.MEASUREMENTS, lab_record.LARGEST_SEED)
    assert (lab.ACTIVE_VECTORS, lab.LAB_TEXTS, lab.LAB_TOKENS) == (
        coverage.ACTIVE_VECTORS,
        runs.LAB_TEXTS,
        runs.LAB_TOKENS,
    )
