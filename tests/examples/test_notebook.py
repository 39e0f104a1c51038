"""examples/notebook/first_look.ipynb runs from its first cell to its last, on a small model."""

import json
import os
from pathlib import Path
from typing import Any

import nbclient
import nbformat
import pytest

from tests.support.site import LLAMA

NOTEBOOK = Path(__file__).parents[2] / "examples" / "notebook" / "first_look.ipynb"
PARAMETERS = f"""MODEL, LAYER, NEURON, HEAD = "{LLAMA}", 1, 3, 2
WORDS = ["horse", "dog", "lion"]
TEXT = "the dog and"
"""


def test_it_is_committed_without_outputs() -> None:
    cells = json.loads(NOTEBOOK.read_text(encoding="utf-8"))["cells"]
    assert all(not cell["outputs"] and cell["execution_count"] is None for cell in cells if cell["cell_type"] == "code")


@pytest.mark.slow
@pytest.mark.filterwarnings("default")  # those of the kernel's client are not ours
def test_it_runs(site_data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LEXISCOPE_DATA", str(site_data))
    monkeypatch.setenv("IPYTHONDIR", str(tmp_path))
    monkeypatch.setenv("PYTHONPATH", os.fspath(NOTEBOOK.parents[2]))
    notebook: Any = nbformat.read(NOTEBOOK, as_version=4)  # type: ignore[no-untyped-call]
    code = [cell for cell in notebook.cells if cell.cell_type == "code"]
    assert code[0].source.startswith('MODEL = "demo"')
    code[0].source = PARAMETERS
    nbclient.NotebookClient(notebook, timeout=300, kernel_name="python3").execute()
    shown = [output.data for cell in code for output in cell.outputs if output.output_type == "execute_result"]
    tables = [data["text/html"] for data in shown if "text/html" in data]
    assert len(tables) >= 12
    assert sum('class="lexiscope"' in table for table in tables) >= 9
    assert all("<script" not in table for table in tables)
    assert "layer 1000000: tiny-llama has layers 0 to" in code[-1].outputs[0].text
