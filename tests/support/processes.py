"""Start our commands as processes, the way people start them."""

import os
import re
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

ROOT = Path(__file__).parents[2]
RUN = "import sys; from lexiscope.app.commands.cli import main; sys.exit(main())"


@contextmanager
def running(*words: str | Path, **environment: str) -> Iterator["subprocess.Popen[str]"]:
    """Run `lexiscope WORDS` until the end of the block."""
    process = subprocess.Popen(
        [sys.executable, "-W", "error", "-c", RUN, *map(str, words)],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=ROOT,
        env={**os.environ, "PYTHONUNBUFFERED": "1", **environment},
    )  # fmt: skip
    try:
        yield process
    finally:
        process.terminate()
        with suppress(subprocess.TimeoutExpired):
            process.wait(10)
        process.kill()
        process.communicate()


@contextmanager
def serving(*words: str | Path, **environment: str) -> Iterator[tuple["subprocess.Popen[str]", str]]:
    """Run a server in a process, and yield the process and its address."""
    with running("serve", "--port", "0", *words, **environment) as process:
        assert process.stdout
        line = process.stdout.readline()
        assert line.startswith("Lexiscope is at http://127.0.0.1:"), line + process.communicate()[1]
        yield process, line.split()[3]


def get(url: str) -> tuple[int, bytes]:
    with urllib.request.urlopen(url, timeout=120) as answer:
        return answer.status, answer.read()


def alive(pid: int) -> bool:
    try:
        return not re.search(r"^State:\s+[ZX]", Path(f"/proc/{pid}/status").read_text(), re.MULTILINE)
    except (FileNotFoundError, ProcessLookupError):
        return False
