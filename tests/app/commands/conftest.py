"""Commands as a person types them."""

from collections.abc import Callable
from pathlib import Path

import pytest

from lexiscope.app.commands.cli import main

Run = Callable[..., tuple[int, str, str]]
Refused = Callable[..., str]


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Run:
    """Words, or one line of them -> exit code, what was printed, and what was said on standard error."""
    monkeypatch.setenv("COLUMNS", "200")

    def run(*words: str | Path) -> tuple[int, str, str]:
        line = str(words[0]).split() if len(words) == 1 else [str(word) for word in words]
        try:
            code = main(line)
        except SystemExit as stop:  # argparse
            code = stop.code if isinstance(stop.code, int) else 1
        printed = capsys.readouterr()
        assert "Traceback" not in printed.err
        return code, printed.out, printed.err

    return run


@pytest.fixture
def refused(run: Run) -> Refused:
    """What a command says that ends with code 1."""

    def refused(*words: str | Path) -> str:
        code, _, err = run(*words)
        assert code == 1, err
        return err

    return refused
