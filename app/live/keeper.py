"""Run the workers that belong to this server. A Keeper keeps the worker of one model running: a thread starts it,
watches it, restarts it after growing pauses and finally ends it, while the event loop only reads `state`. The
Supervisor decides which models have a worker: one is started when it is first needed, up to a maximum number."""

import contextlib
import logging
import re
import shutil
import tempfile
import threading
import time
from dataclasses import dataclass
from pathlib import Path

from lexiscope.app.live.connections import UNIX, WorkerAddress
from lexiscope.app.live.process import END_SECONDS, WorkerProcess
from lexiscope.app.settings import Settings
from lexiscope.precompute.live.wire.errors import LiveFull

FIRST_PAUSE, LONGEST_PAUSE = 1.0, 60.0  # seconds between the end of a worker and the start of the next
LONGEST_FOLDER = 90  # most bytes in the path of the sockets' folder; the address of a Unix socket has 107 at most

logger = logging.getLogger("lexiscope")


@dataclass(frozen=True)
class WorkerState:
    address: WorkerAddress | None = None  # the address at which the worker listens, once it is ready
    reason: str = ""  # why the worker is not ready
    failed: bool = False  # True if the worker could not even start, so that waiting for it is in vain
    retry_at: float = 0.0  # when the worker is started again, by time.monotonic()

    @property
    def word(self) -> str:
        if self.address:
            return "ready"
        return "down" if self.retry_at else "loading"


class Keeper:
    """Keep the worker of one model running. `state` is replaced as a whole, so that any thread can read it at any
    time."""

    def __init__(self, model: str, settings: Settings, socket: Path) -> None:
        self.model = model
        reason = f"the worker of {model} is loading the model, once for all live pages"
        self.state = self._loading = WorkerState(reason=reason)
        self.users = 0  # requests under way, counted by the event loop
        self._settings = settings
        self._socket = socket
        self._starts = 0
        self._process: WorkerProcess | None = None
        self._lock = threading.Lock()  # held while a process is started, so that none starts once the keeper is closing
        self._closing = False
        self._news = threading.Event()  # set when the worker is ready, has ended or is to end
        self._thread = threading.Thread(target=self._keep_running, name=f"worker of {model}", daemon=True)
        self._thread.start()

    @property
    def pid(self) -> int | None:
        process = self._process
        return process.pid if process else None

    def restart(self, address: WorkerAddress) -> None:
        """End the process that listens at the address, unless it has already ended; another one is then started."""
        if self.state.address == address and self._process:
            self._process.terminate()

    def close(self) -> None:
        """End the process, and wait until it has ended."""
        with self._lock:
            self._closing = True
        self._news.set()
        if self._process:
            self._process.terminate()
        self._thread.join()

    def _keep_running(self) -> None:
        pause = FIRST_PAUSE
        while not self._closing:
            ready_at, why = self._run_once()
            if self._closing:
                return
            if ready_at and time.monotonic() - ready_at >= LONGEST_PAUSE:
                pause = FIRST_PAUSE
            what = "has ended" if ready_at else "cannot start"
            reason = f"the worker of {self.model} {what}{why}"
            logger.warning("%s; it is started again in %g s", reason, pause)
            self.state = WorkerState(
                reason=without_folders(reason), failed=not ready_at, retry_at=time.monotonic() + pause
            )
            self._wait_for_news(pause)
            pause = min(2 * pause, LONGEST_PAUSE)
            if ready_at:  # if the worker could not even start, visitors still read the reason
                self.state = self._loading

    def _run_once(self) -> tuple[float | None, str]:
        """Start the worker and wait until it ends; return the time at which it was ready, if ever, and why it ended."""
        try:
            process = self._start()
        except OSError as error:  # this process may open no more files or start no more processes
            return None, f": {error.strerror}"
        return (self._watch(process), process.why_it_ended()) if process else (None, "")

    def _start(self) -> WorkerProcess | None:
        with self._lock:
            if self._closing:
                return None
            self._news.clear()
            self._starts += 1
            self._process = WorkerProcess(self.model, self._settings, self._socket, self._news.set)
            return self._process

    def _watch(self, process: WorkerProcess) -> float | None:
        """Wait for the end of the process; return the time at which it was ready, if ever."""
        ready_at: float | None = None
        while process.running:
            if process.ready and not ready_at:
                ready_at = time.monotonic()
                self.state = WorkerState(WorkerAddress(f"{UNIX}{self._socket}", self._starts))
            if self._closing or process.ending:
                process.end(END_SECONDS)
            elif not process.is_well():
                logger.warning("the worker of %s gives no sign of life and is ended", self.model)
                process.end(0)
            else:
                self._wait_for_news(self._settings.worker_silence / 2)
        if ready_at:
            reason = f"the worker of {self.model} has ended"
            self.state = WorkerState(reason=reason, retry_at=time.monotonic() + FIRST_PAUSE)
        process.close()
        return ready_at

    def _wait_for_news(self, seconds: float) -> None:
        if not self._closing:
            self._news.wait(seconds)
            self._news.clear()


class Supervisor:
    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._keepers: dict[str, Keeper] = {}  # keepers by model, the least recently used first
        self._sockets: Path | None = None  # the folder of the workers' sockets
        self._count = 0

    def keeper(self, model: str) -> Keeper:
        """Return the keeper of a model that exists. Its worker is started unless it runs already; this function never
        waits."""
        keeper = self._keepers.pop(model, None) or self._new_keeper(model)
        self._keepers[model] = keeper
        return keeper

    def running(self) -> dict[str, Keeper]:
        return dict(self._keepers)

    def close(self) -> None:
        """End all workers, and wait until their processes have ended."""
        keepers, self._keepers = self._keepers, {}
        closing = [threading.Thread(target=keeper.close) for keeper in keepers.values()]
        for thread in closing:
            thread.start()
        for thread in closing:
            thread.join()
        if self._sockets:
            shutil.rmtree(self._sockets, ignore_errors=True)
            self._sockets = None

    def _new_keeper(self, model: str) -> Keeper:
        if len(self._keepers) >= self._settings.workers:
            self._close_idle_worker(model)
        self._sockets = self._sockets or _private_folder()
        self._count += 1  # each worker gets a new number, so that none gets the socket of one that is just ending
        return Keeper(model, self._settings, self._sockets / f"{self._count}.sock")

    def _close_idle_worker(self, newcomer: str) -> None:
        """Close the worker that was unused longest, to make room for another model's worker."""
        idle = next((name for name, keeper in self._keepers.items() if not keeper.users), None)
        if idle is None:
            raise LiveFull(
                f"no worker can be started for {newcomer}: {self._settings.workers} other models have one that is "
                "busy (the setting workers)"
            )
        threading.Thread(target=self._keepers.pop(idle).close, daemon=True).start()


def _private_folder() -> Path:
    """Create a folder that only this user can look into."""
    folder = Path(tempfile.mkdtemp(prefix="lexiscope-"))
    if len(bytes(folder)) > LONGEST_FOLDER:
        with contextlib.suppress(OSError):
            folder.rmdir()
        folder = Path(tempfile.mkdtemp(prefix="lexiscope-", dir="/tmp"))
    return folder


def without_folders(text: str) -> str:
    """Return the text with only the last part of every absolute path, because the folders of this machine are
    private."""
    return re.sub(r"(?<![\w:/.])(?:/[^\s/'\"`]+)*/(?=[^\s/'\"`])", "", text)
