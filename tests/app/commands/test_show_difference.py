"""`lexiscope show` and `lexiscope models` say that something is a difference, and how large it is."""

import json
from pathlib import Path

import pytest

from tests.app.commands.conftest import Run
from tests.support.site import DIFFERENCE, LLAMA


@pytest.mark.parametrize(
    ("what", "said"),
    [
        (("ff", "1", "5"), "|Δ|/|base|"),
        (("ff", "1", "0"), "unchanged"),
        (("vo", "1", "3"), "unchanged"),
        (("head", "1", "2"), "change of its matrices"),
        (("layer", "1"), "of the key"),
        (("layer", "0"), "nothing in this layer changed"),
    ],
)
def test_show(run: Run, site_data: Path, what: tuple[str, ...], said: str) -> None:
    _, shown, _ = run("show", DIFFERENCE, *what, "--data", str(site_data))
    assert f"difference: tiny-tuned − {LLAMA}" in shown
    assert said in shown
    code, out, err = run("show", DIFFERENCE, *what, "--json", "--data", str(site_data))
    assert code == 0, err
    content = json.loads(out)
    assert content["minus"]["model"] == LLAMA


def test_models(run: Run, site_data: Path) -> None:
    (line,) = [line for line in run("models", "--data", str(site_data))[1].splitlines() if DIFFERENCE in line]
    assert f"tiny-tuned − {LLAMA}" in line
