"""`lexiscope reproduce`: the paper's lists in the terminal and as JSON, with ranks from the weights."""

import json
import shutil
from pathlib import Path

import pytest

from app.cli import main
from precompute.index.manifest import Manifest
from tests.support import planted
from tests.support.site import GPT2

pytestmark = pytest.mark.slow


def run(capsys: pytest.CaptureFixture[str], *words: str | Path) -> tuple[int, str, str]:
    code = main(["reproduce", *map(str, words)])
    return code, *capsys.readouterr()


def test_lists_and_ranks(paper_data: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = run(capsys, planted.PLANTED, "--json", "--data", paper_data)
    assert code == 0
    found = json.loads(out)
    (lookup,) = (each for each in found["lookups"] if each["ranks"])
    assert [(spelt["spelling"], spelt["rank"]) for spelt in lookup["ranks"]] == [("spaced", 3), ("bare", 1)]
    assert [head["address"] for head in found["heads"] if not head["why_not"]] == ["vo/16/6", "vo/16/2", "qk/16/13"]
    (number,) = (each for each in found["numbers"] if each["id"] == "lookup_rank_programming")
    assert number["ours"] == "3 (spaced), 1 (bare)"


def test_tables(paper_data: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = run(capsys, planted.PLANTED, "--no-weights", "--data", paper_data)
    assert code == 0
    words = " ".join(out.split())
    assert "printed pairs of heads are among our first 50" in words
    assert "arxiv.org/abs/2209.02535" in words
    assert "layer 21 is not built" in words
    code, out, _ = run(capsys, planted.PLANTED, "--no-weights", "--list", "vo/16/2", "--data", paper_data)
    assert code == 0
    assert "␣Australians" in out


def test_without_the_weights_it_says_so(paper_data: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    copy = shutil.copytree(paper_data / planted.PLANTED, tmp_path / planted.PLANTED)
    Manifest.load(copy).with_changes(source=str(tmp_path / "gone")).save(copy)
    code, out, _ = run(capsys, planted.PLANTED, "--data", tmp_path)
    assert code == 0
    assert "ranks of looked-up neurons are left out, because they need the weights" in " ".join(out.split())


def test_a_model_without_lists(site_data: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, _, err = run(capsys, GPT2, "--data", site_data)
    assert code == 1
    assert "the paper printed no lists of tiny-gpt2" in err
    assert "--as gpt2-medium" in err
    code, out, _ = run(capsys, GPT2, "--as", "gpt2-medium", "--data", site_data)
    assert code == 0
    assert "None of the 39 printed lists can be compared" in " ".join(out.split())
