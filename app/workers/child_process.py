"""Commands of this program as child processes, which end when the process that started them does."""

import os
import sys
import threading
from collections.abc import Callable, Sequence


def lexiscope_command(words: Sequence[str]) -> list[str]:
    """`lexiscope WORDS` with the packages of this process, whatever lies in the folder where it was started."""
    code = f"import sys; sys.path[:] = {sys.path!r}; from app.cli import main; sys.exit(main({list(words)!r}))"
    return [sys.executable, "-c", code]


def when_parent_ends(action: Callable[[], None]) -> None:
    """Calls the action, in a thread, when standard input ends: the parent holds its other side and never writes."""

    def wait() -> None:
        while os.read(sys.stdin.fileno(), 1024):
            pass
        action()

    threading.Thread(target=wait, daemon=True).start()
