"""`lexiscope labels` and `lexiscope reproduce`: faults of files of labels, and the paper's lists in the terminal."""

import json
from pathlib import Path

import pytest

from tests.app.commands.conftest import Refused, Run
from tests.support import planted
from tests.support.site import GPT2, LLAMA
from tests.support.site_labels import write_labels


def test_good_files(run: Run, site_data: Path) -> None:
    code, out, _ = run("labels", "check", "--data", site_data)
    assert code == 0
    assert f"site.json: ok, labels: 6 of {LLAMA}" in out
    assert "everything is as it should be" in out


def test_bad_files(run: Run, tmp_path: Path, site_data: Path) -> None:
    bad = write_labels(tmp_path, "bad.json", [
        {"address": f"{LLAMA}/vo/99/1", "title": "x"}, {"address": "gpt2/vo/99/1", "title": "\x1b[2J"},
        {"address": "unknown/vo/99/1", "title": "x"},
    ])  # fmt: skip
    code, out, _ = run("labels", "check", bad, tmp_path / "missing.json", "--data", site_data)
    assert code == 1
    assert f"  {bad}, entry 1, address: layer 99: {LLAMA} has layers 0 to" in out
    assert f"  {bad}, entry 2, title: it holds U+001B" in out
    assert "missing.json: it cannot be read (No such file or directory)" in out
    assert "entry 3" not in out
    assert "3 errors" in out
    assert "\x1b" not in out


def test_nothing_to_check(refused: Refused, tmp_path: Path) -> None:
    assert "no file of labels" in refused("labels", "check", "--data", tmp_path)
    (tmp_path / "labels").touch()
    assert "cannot be read" in refused("labels", "check", "--data", tmp_path)


pytestmark = pytest.mark.slow


def test_json(paper_data: Path, run: Run) -> None:
    code, out, _ = run("reproduce", planted.PLANTED, "--json", "--data", paper_data)
    assert code == 0
    compared = [row["address"] for row in json.loads(out)["printed"] if not row["why_not"]]
    assert compared[:3] == ["vo/16/6", "vo/16/2", "qk/16/13"]


def test_tables(paper_data: Path, run: Run) -> None:
    code, out, _ = run("reproduce", planted.PLANTED, "--data", paper_data)
    assert code == 0
    assert "gpt2-medium as printed, in gpt2-medium (dot)" in out
    assert "layer 21 is not built" in out
    assert f"/{planted.PLANTED}/head/16/2/vo" in out
    code, out, _ = run("reproduce", planted.PLANTED, "--list", "vo/16/2", "--data", paper_data)
    assert code == 0
    assert "␣Australians" in out


def test_a_model_without_lists(site_data: Path, run: Run) -> None:
    code, _, err = run("reproduce", GPT2, "--data", site_data)
    assert code == 1
    assert "the paper printed no lists of tiny-gpt2" in err
    assert "--as gpt2-medium" in err
    code, out, _ = run("reproduce", GPT2, "--as", "gpt2-medium", "--data", site_data)
    assert code == 0
    assert "vo/21/7" in out
