"""Run child processes of this program, which end when their parent does. One kind of them is the worker of a model:
read what it prints, check that it works, end it."""

import contextlib
import logging
import os
import subprocess
import sys
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from pathlib import Path

from pydantic import ValidationError

from lexiscope.app.live.connections import UNIX, WorkerAddress, plain_client
from lexiscope.app.settings import PREFIX, Settings
from lexiscope.precompute.live.wire.protocol import Health

READY, LOADING = "lexiscope worker is ready", "lexiscope worker is loading"  # lines that a worker prints about itself
LOADING_SILENCE_SECONDS = 60.0  # a worker that imports torch on a busy machine may be silent for so long
END_SECONDS = 3.0  # how long a worker may take to end by itself
# Settings of the server that its workers get, too.
PASSED_ON = (
    "prompt_tokens", "seeds_limit", "heads_limit", "sheet_rows", "queue", "visitor_queue", "request_seconds",
    "ask_seconds", "batch_wait_ms", "batch_size", "body_limit", "body_seconds", "log_level", "access_log",
)  # fmt: skip
LAST_LINES = 20
ERROR_PREFIX = "lexiscope: "  # a command prints why it ends in a line that begins so

logger = logging.getLogger("lexiscope")


def lexiscope_command(words: Sequence[str]) -> list[str]:
    """Return the command line `lexiscope WORDS`, which imports the packages of this process from whatever folder it is
    started in."""
    start = f"import sys; sys.path[:] = {sys.path!r}; from lexiscope.app.commands.cli import main"
    return [sys.executable, "-c", f"{start}; sys.exit(main({list(words)!r}))"]


def when_parent_ends(action: Callable[[], None]) -> None:
    """Call the action, in a thread, when standard input ends: the parent holds the other end of that pipe and never
    writes to it."""

    def wait() -> None:
        while os.read(sys.stdin.fileno(), 1024):
            pass
        action()

    threading.Thread(target=wait, daemon=True).start()


class WorkerProcess:
    """The process of a model's worker. `on_change` is called, from another thread, when the worker is ready and when it
    closes its output."""

    def __init__(self, model: str, settings: Settings, socket: Path, on_change: Callable[[], None]) -> None:
        self._model = model
        self._settings = settings
        self._socket = socket
        self._on_change = on_change
        self.ready = False
        self._closed_output = False
        self._last_heard = time.monotonic()
        self._last_lines: deque[str] = deque(maxlen=LAST_LINES)
        self._process = subprocess.Popen(
            lexiscope_command(self._words()),
            stdin=subprocess.PIPE,  # the worker ends when this pipe is closed
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            encoding="utf-8",
            errors="backslashreplace",
            env={**os.environ, **self._environment()},
            start_new_session=True,  # a session of its own, so that Ctrl-C reaches the server alone
        )
        self._reader = threading.Thread(target=self._read_output, daemon=True)
        self._reader.start()

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def running(self) -> bool:
        return self._process.poll() is None

    @property
    def ending(self) -> bool:
        """Return True if the worker has closed its output, so that it will not answer any more."""
        return self._closed_output

    def is_well(self) -> bool:
        """Return True if the worker has printed or answered something recently, and no computation takes longer than
        visitors wait."""
        silence = self._settings.worker_silence
        if not self.ready:
            return time.monotonic() - self._last_heard < max(silence, LOADING_SILENCE_SECONDS)
        health = check_health(self._socket, silence)
        return health is not None and not health.is_stuck(self._settings.request_seconds, silence)

    def terminate(self) -> None:
        with contextlib.suppress(ProcessLookupError):
            self._process.terminate()

    def end(self, grace: float) -> None:
        """Wait until the process has ended by itself; kill it after `grace` seconds."""
        try:
            self._process.wait(grace)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()

    def close(self) -> None:
        """Read what the process printed last; called after its end."""
        self._reader.join(END_SECONDS)
        assert self._process.stdin
        with contextlib.suppress(OSError):
            self._process.stdin.close()

    def why_it_ended(self) -> str:
        errors = [line.removeprefix(ERROR_PREFIX) for line in self._last_lines if line.startswith(ERROR_PREFIX)]
        return f": {errors[-1]}" if errors else f" (code {self._process.returncode})"

    def _words(self) -> list[str]:
        words = ["worker", "--child", "--model", self._model, "--data", str(self._settings.data)]
        return [*words, "--device", self._settings.device, "--socket", str(self._socket)]

    def _environment(self) -> dict[str, str]:
        passed_on = {PREFIX + name.upper(): str(getattr(self._settings, name)) for name in PASSED_ON}
        # Only this user can reach the socket, so no token is needed: the token is for workers on other machines.
        return {**passed_on, f"{PREFIX}WORKER_TOKEN": "", "PYTHONUNBUFFERED": "1"}

    def _read_output(self) -> None:
        assert self._process.stdout
        with self._process.stdout as output:
            for line in map(str.strip, output):
                self._last_heard = time.monotonic()
                if line == READY:
                    self.ready = True
                    self._on_change()
                elif line and line != LOADING:
                    self._last_lines.append(line)
                    logger.warning("worker of %s: %s", self._model, line)
        self._closed_output = True
        self._on_change()


def check_health(socket: Path, timeout: float) -> Health | None:
    """Ask a worker for its health; return None if it does not answer in time or is not healthy."""
    import httpx2

    try:
        with plain_client(WorkerAddress(f"{UNIX}{socket}"), timeout) as client:
            response = client.get("/health")
            return Health.model_validate_json(response.content) if response.is_success else None
    except (httpx2.HTTPError, ValidationError):
        return None
