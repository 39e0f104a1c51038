"""The command line: `lexiscope run`, with the weights here or on a server."""

import csv
import io
import json
import sys
from pathlib import Path

import pyarrow.parquet
import pytest

from tests.app.commands.conftest import Refused, Run
from tests.support.site import GPT2, TEXT

pytestmark = pytest.mark.slow


def test_files_here_and_there_hold_the_same_rows(run: Run, site_data: Path, tmp_path: Path, live_url: str) -> None:
    here, there = tmp_path / "here.csv", tmp_path / "there.parquet"
    assert run("run", GPT2, TEXT, "--data", site_data, "-o", here) == (0, "", "")
    assert run("run", GPT2, TEXT, "--server", live_url, "-o", there) == (0, "", "")
    written = list(csv.DictReader(io.StringIO(here.read_text("utf-8"), newline="")))
    table = pyarrow.parquet.read_table(there).to_pylist()
    assert len(written) == len(table) == 3 * 4 * 5 + 300
    for cells, row in zip(written[:60], table, strict=False):
        assert cells["sends"] == " | ".join(row["sends"])
        assert float(cells["moved"]) == pytest.approx(row["moved"], rel=1e-4)


def test_other_panels_and_filters(run: Run, site_data: Path, tmp_path: Path) -> None:
    path = tmp_path / "rows.json"
    assert run("run", GPT2, TEXT, "--data", site_data, "-o", path, "--layer", "1", "--least", ".5")[0] == 0
    assert {row["layer"] for row in json.loads(path.read_bytes())["sheet"]["heads"]} == {1}
    code, out, _ = run("run", GPT2, TEXT, "--data", site_data, "--panel", "evolution,sheet", "--of", "heads")
    assert code == 0
    assert "prediction at position 4" in out
    assert "heads of a run of tiny-gpt2" in out
    path = tmp_path / "neurons.csv"
    assert run("run", GPT2, TEXT, "--data", site_data, "--panel", "neurons", "-o", path)[0] == 0
    assert path.read_text("utf-8").startswith("panel,layer,part,")


@pytest.mark.parametrize(("words", "said"), [
    (("no-such-model", TEXT), "no-such-model"),
    ((GPT2, ""), "there is no text"),
    ((GPT2, TEXT, "--panel", "spreadsheet"), "spreadsheet"),
    ((GPT2, TEXT, "--panel", "sheet", "--sort", "size"), "sort = 'size': there are layer"),
    ((GPT2, TEXT, "--panel", "sheet", "--layer", "3"), "layer = 3: there are 0 to 2"),
    ((GPT2, TEXT, "--server", "http://127.0.0.1:9"), "no server answers"),
])  # fmt: skip
def test_what_cannot_be_run(refused: Refused, site_data: Path, words: tuple[str, ...], said: str) -> None:
    assert said in refused("run", *words, "--data", site_data)


def test_files_that_cannot_be(run: Run, site_data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    code, _, err = run("run", GPT2, TEXT, "--data", site_data, "-o", tmp_path / "sheet.xls")
    assert (code, ".csv, .parquet" in err) == (2, True)
    code, _, err = run("run", GPT2, TEXT, "--data", site_data, "-o", tmp_path / "x.parquet", "--panel", "neurons")
    assert (code, "of the sheet" in err) == (2, True)
    code, _, err = run("run", GPT2, TEXT, "--data", site_data, "-o", tmp_path / "nowhere" / "sheet.csv")
    assert (code, "there is no folder" in err) == (2, True)
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    code, _, err = run("run", GPT2, TEXT, "--data", site_data, "-o", tmp_path / "x.parquet")
    assert (code, "lexiscope[parquet]" in err) == (1, True)
