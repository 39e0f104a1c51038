"""One model's worker process: started, watched, started again after growing pauses, ended with the server.
All of it in a thread of its own; nothing here waits in the event loop. Which models have one is for supervisor.py."""

import contextlib
import logging
import os
import signal
import subprocess
import threading
import time
from collections import deque
from dataclasses import dataclass
from pathlib import Path

from app.settings import PREFIX, Settings
from app.workers import child_process
from app.workers.connections import UNIX, Place
from app.workers.pulse import busy_seconds

READY, ALIVE = "lexiscope worker is ready", "lexiscope worker is loading"  # what it prints when it is, or is not yet
FIRST_PAUSE, LONGEST_PAUSE = 1.0, 60.0
LOADING_SILENCE = 60.0  # importing torch may keep a busy machine from all else
GRACE = 3.0  # seconds that a worker has to end
PASSED_ON = ("prompt_tokens", "seeds_limit", "queue", "request_seconds", "batch_wait_ms", "batch_size", "log_level")

logger = logging.getLogger("lexiscope")


@dataclass(frozen=True)
class State:
    place: Place | None = None  # where it listens, once it is ready
    said: str = ""  # why it is not
    failed: bool = False  # it could not even start: waiting for it is in vain
    retry_at: float = 0.0  # when it is started again, by time.monotonic()


class Keeper:
    """`state` is replaced as a whole, so that it can be read at any time."""

    def __init__(self, model: str, settings: Settings, socket: Path) -> None:
        self.model = model
        self._loading = State(said=f"the worker of {model} is loading the model")
        self.state = self._loading
        self.users = 0  # requests under way, counted by the event loop
        self._settings = settings
        self._socket = socket
        self._process: subprocess.Popen[str] | None = None
        self._lock = threading.Lock()
        self._changed = threading.Event()  # it is ready, has ended, or is to end
        self._closing = False
        self._heard = 0.0
        self._last_words: deque[str] = deque(maxlen=20)
        self._thread = threading.Thread(target=self._run, name=f"worker of {model}", daemon=True)
        self._thread.start()

    @property
    def pid(self) -> int | None:
        process = self._process
        return process.pid if process else None

    def renew(self, place: Place) -> None:
        """Ends the process that listens there, if it still does: another one is started."""
        if self.state.place == place and self._process:
            self._signal(signal.SIGTERM)

    def close(self) -> None:
        """Ends the process; returns when it is gone."""
        with self._lock:
            self._closing = True
        self._changed.set()
        self._signal(signal.SIGTERM)
        self._thread.join()

    def _run(self) -> None:
        pause, generation = FIRST_PAUSE, 0
        while (process := self._start()) is not None:
            generation += 1
            ready_at = self._watch(process, generation)
            if self._closing:
                return
            if ready_at and time.monotonic() - ready_at >= LONGEST_PAUSE:
                pause = FIRST_PAUSE
            said = f"the worker of {self.model} {'has ended' if ready_at else 'cannot start'}{self._why(process)}"
            logger.warning("%s; it is started again in %g s", said, pause)
            self.state = State(said=said, failed=ready_at is None, retry_at=time.monotonic() + pause)
            self._changed.clear()
            if not self._closing:
                self._changed.wait(pause)
            pause = min(2 * pause, LONGEST_PAUSE)
            if not self.state.failed:  # one that could not start will hardly do so now: nobody is to wait for it
                self.state = self._loading

    def _start(self) -> "subprocess.Popen[str] | None":
        words = ["worker", "--child", "--model", self.model, "--data", str(self._settings.data)]
        words += ["--device", self._settings.device, "--socket", str(self._socket)]
        chosen = {PREFIX + name.upper(): str(getattr(self._settings, name)) for name in PASSED_ON}
        with self._lock:
            if self._closing:
                return None
            self._last_words.clear()
            self._changed.clear()
            self._heard = time.monotonic()
            self._process = subprocess.Popen(
                child_process.lexiscope_command(words),
                stdin=subprocess.PIPE,  # its end is the worker's end
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                encoding="utf-8",
                errors="backslashreplace",
                env={**os.environ, **chosen, "PYTHONUNBUFFERED": "1"},
                start_new_session=True,  # Ctrl-C is for the server
            )
        return self._process

    def _watch(self, process: "subprocess.Popen[str]", generation: int) -> float | None:
        """Until the process has ended; the time at which it was ready."""
        ready, ended = threading.Event(), threading.Event()
        reader = threading.Thread(target=self._listen, args=(process, ready, ended), daemon=True)
        reader.start()
        ready_at: float | None = None
        while process.poll() is None:
            if ready_at is None and ready.is_set():
                ready_at = time.monotonic()
                self.state = State(Place(f"{UNIX}{self._socket}", generation))
            if self._closing or ended.is_set():
                _end(process)
            elif not self._alive(ready_at is not None):
                logger.warning("the worker of %s gives no sign of life and is ended", self.model)
                process.kill()
                process.wait()
            else:
                self._changed.wait(self._settings.worker_silence / 2)
                self._changed.clear()
        if ready_at:
            self.state = State(said=f"the worker of {self.model} has ended", retry_at=time.monotonic() + FIRST_PAUSE)
        reader.join(GRACE)
        assert process.stdin
        with contextlib.suppress(OSError):
            process.stdin.close()
        return ready_at

    def _alive(self, ready: bool) -> bool:
        silence = self._settings.worker_silence
        if not ready:
            return time.monotonic() - self._heard < max(silence, LOADING_SILENCE)
        busy = busy_seconds(self._socket, silence)
        # Whoever asked has long been told that it took too long.
        return busy is not None and busy < 2 * self._settings.request_seconds + silence

    def _listen(self, process: "subprocess.Popen[str]", ready: threading.Event, ended: threading.Event) -> None:
        assert process.stdout
        with process.stdout:
            for line in process.stdout:
                self._heard = time.monotonic()
                text = line.strip()
                if text == READY:
                    ready.set()
                    self._changed.set()
                elif text and text != ALIVE:
                    self._last_words.append(text)
                    logger.warning("worker of %s: %s", self.model, text)
        ended.set()
        self._changed.set()

    def _why(self, process: "subprocess.Popen[str]") -> str:
        prefix = "lexiscope: "  # of what a command says when it gives up
        said = [text.removeprefix(prefix) for text in self._last_words if text.startswith(prefix)]
        return f": {said[-1]}" if said else f" (code {process.returncode})"

    def _signal(self, number: signal.Signals) -> None:
        with self._lock, contextlib.suppress(ProcessLookupError):
            if self._process and self._process.poll() is None:
                self._process.send_signal(number)


def _end(process: "subprocess.Popen[str]") -> None:
    """It was told to end, or has closed its output: then it has a little time."""
    try:
        process.wait(GRACE)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
