"""Running a command of this program in another process: with the same packages, and only as long as this one runs.
What it is run for is for others."""

import sys
from collections.abc import Sequence


def command(words: Sequence[str]) -> list[str]:
    """`lexiscope WORDS`, whatever lies in the folder where this process was started."""
    code = f"import sys; sys.path[:] = {sys.path!r}; from app.cli import main; sys.exit(main({list(words)!r}))"
    return [sys.executable, "-c", code]
