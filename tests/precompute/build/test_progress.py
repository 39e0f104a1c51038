"""What a person sees of a build: lines in a log, a bar on a terminal, nothing on stdout."""

import contextlib
import io
import os
import re
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from rich.console import Console

from lexiscope.precompute.build.progress import Progress, duration


class Clock:
    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Iterator[Clock]:
    clock = Clock()
    with monkeypatch.context() as patch:
        patch.setattr(time, "monotonic", clock)
        yield clock


def build_of_three(progress: Progress, clock: Clock, folder: Path) -> None:
    """Layers of 100 seconds; one of four was there before."""
    progress.start("tiny", 4, 1, 3)
    for layer in (3, 2, 0):
        for _ in range(10):
            clock.now += 10
            progress.step(0.1)
        progress.layer_done(layer)
    progress.finish(folder, 4, 4, nothing_done=False)


def test_plain_lines(clock: Clock) -> None:
    output = io.StringIO()
    folder = Path("data") / ("long" * 40)
    build_of_three(Progress(Console(file=output)), clock, folder)
    lines = output.getvalue().splitlines()
    assert lines[0] == "tiny: 1 of 4 layers are ready, 3 to build, upper layers first"
    assert "layer 3 is ready; 2 of 4 layers, 2 min a layer, about 3 min left" in lines
    assert "layer 2 is ready; 3 of 4 layers, 2 min a layer, about 2 min left" in lines
    assert "layer 0 is ready; 4 of 4 layers, 2 min a layer" in lines
    assert "1 of 4 layers, 2 min a layer, about 4 min left" in lines  # every half minute
    assert 9 <= len(lines) <= 14
    assert lines[-1] == f"{folder} is up to date: 4 of 4 layers are ready"


def test_first_moments_promise_nothing_and_an_index_that_is_there_needs_nothing(clock: Clock) -> None:
    output = io.StringIO()
    progress = Progress(Console(file=output))
    progress.start("tiny", 12, 0, 12)
    clock.now += 31
    progress.step(0.01)
    assert output.getvalue().splitlines()[-1] == "0 of 12 layers"
    progress.finish(Path("data/tiny"), 2, 3, nothing_done=True)
    last = output.getvalue().splitlines()[-1]
    assert last == "data/tiny was up to date already, nothing to do: 2 of 3 layers are ready"


def test_work_beside_layers_changes_no_estimate(clock: Clock) -> None:
    output = io.StringIO()
    progress = Progress(Console(file=output))
    progress.start("tiny", 3, 0, 3)
    clock.now += 10
    progress.layer_done(2)
    with progress.beside_layers("finding the nearest tokens of every token"):
        clock.now += 600
    clock.now += 10
    progress.layer_done(1)
    assert progress.pace() == "10 s a layer, about 10 s left"
    lines = output.getvalue().splitlines()
    assert lines[-2] == "finding the nearest tokens of every token"
    assert lines[-1] == "layer 1 is ready; 2 of 3 layers, 10 s a layer, about 10 s left"


def test_speaks_on_stderr_alone(clock: Clock, capfd: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    build_of_three(Progress(), clock, tmp_path)
    captured = capfd.readouterr()
    assert captured.out == ""
    assert "layer 3 is ready" in captured.err
    assert "\x1b" not in captured.err


def on_terminal(term: str, monkeypatch: pytest.MonkeyPatch) -> str:
    """What a build of three layers writes to a pseudo-terminal."""
    monkeypatch.setenv("TERM", term)
    master, slave = os.openpty()
    with os.fdopen(slave, "w") as file:
        progress = Progress(Console(file=file, width=100))
        progress.start("tiny", 4, 1, 3)
        for layer in (3, 2, 0):
            progress.step(1.0)
            progress.layer_done(layer)
        progress.finish(Path("data/tiny"), 4, 4, nothing_done=False)
        progress.stop()  # once more does no harm
    written = b""
    with contextlib.suppress(OSError):  # when all is read
        while part := os.read(master, 1 << 16):
            written += part
    os.close(master)
    return written.decode()


def test_bar_on_a_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    written = on_terminal("xterm", monkeypatch)
    text = re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]", "", written)
    assert "━" in text
    assert "4 of 4 layers" in text
    assert "s a layer" in text
    assert not re.search(r"(\d|-):(\d|-)+:(\d|-)+", text)  # no second estimate beside that of `pace`
    assert "layer 3 is ready" not in text
    assert text.rstrip().endswith("data/tiny is up to date: 4 of 4 layers are ready")
    assert written.rfind("\x1b[?25h") > written.rfind("\x1b[?25l")  # the cursor is back


def test_lines_on_a_terminal_that_cannot_move_its_cursor(monkeypatch: pytest.MonkeyPatch) -> None:
    assert "layer 3 is ready; 2 of 4 layers" in on_terminal("dumb", monkeypatch)


@pytest.mark.parametrize(
    ("seconds", "said"),
    [(0, "0.0 s"), (0.44, "0.4 s"), (9.94, "9.9 s"), (9.96, "10 s"), (99.4, "99 s"), (100, "2 min"), (8000, "2.2 h")],
)
def test_durations(seconds: float, said: str) -> None:
    assert duration(seconds) == said
