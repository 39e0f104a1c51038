"""Commands that are interrupted leave as a shell expects, wherever the signal reaches them."""

import subprocess
import sys

import pytest

RUNS = """
import os, signal
from lexiscope.app.commands.command import exit_on_signals
with exit_on_signals("All is kept"):
    try:
        os.kill(os.getpid(), signal.{name})
    except KeyboardInterrupt as interrupt:
        {then}
"""


def outcome(name: str, then: str) -> tuple[int, str]:
    done = subprocess.run([sys.executable, "-c", RUNS.format(name=name, then=then)], capture_output=True, text=True)
    return done.returncode, done.stderr


@pytest.mark.parametrize(("name", "code", "then"), [
    ("SIGINT", 130, "raise"), ("SIGTERM", 143, "raise ValueError('as code in C does') from interrupt"),
    ("SIGHUP", 129, "raise"),
])  # fmt: skip
def test_signals(name: str, code: int, then: str) -> None:
    assert outcome(name, then) == (code, "Stopped. All is kept.\n")


def test_other_errors_pass() -> None:
    run = "from lexiscope.app.commands.command import exit_on_signals\n"
    run += "with exit_on_signals(''): raise ValueError('here')"
    done = subprocess.run([sys.executable, "-c", run], capture_output=True, text=True)
    assert done.returncode == 1
    assert done.stderr.endswith("ValueError: here\n")
