"""`lexiscope reproduce`: the paper's lists in the terminal and as JSON."""

import json
from pathlib import Path

import pytest

from tests.app.commands.conftest import Run
from tests.support import planted
from tests.support.site import GPT2

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
