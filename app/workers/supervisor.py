"""The workers that this server runs itself: one per model, started when it is first needed, up to a number of them."""

import contextlib
import shutil
import tempfile
import threading
from pathlib import Path

from app.settings import Settings
from app.workers.errors import LiveFull
from app.workers.keeper import Keeper

LONGEST_FOLDER = 90  # bytes; the address of a Unix socket has 107 at most


class Supervisor:
    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._keepers: dict[str, Keeper] = {}  # the one used last is last
        self._sockets: Path | None = None  # a folder
        self._count = 0

    def keeper(self, model: str) -> Keeper:
        """The keeper of a model that exists; its worker is started unless it runs. Never waits."""
        keeper = self._keepers.pop(model, None) or self._new_keeper(model)
        self._keepers[model] = keeper
        return keeper

    def running(self) -> dict[str, Keeper]:
        return dict(self._keepers)

    def close(self) -> None:
        """Returns when all workers have ended."""
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
        self._count += 1  # never the socket of one that is just ending
        return Keeper(model, self._settings, self._sockets / f"{self._count}.sock")

    def _close_idle_worker(self, newcomer: str) -> None:
        """The one unused longest makes room."""
        idle = next((name for name, keeper in self._keepers.items() if not keeper.users), None)
        if idle is None:
            raise LiveFull(
                f"no worker can be started for {newcomer}: {self._settings.workers} other models have one that is "
                "busy (the setting workers)"
            )
        threading.Thread(target=self._keepers.pop(idle).close, daemon=True).start()


def _private_folder() -> Path:
    """Makes a folder that only this user can look into."""
    folder = Path(tempfile.mkdtemp(prefix="lexiscope-"))
    if len(bytes(folder)) > LONGEST_FOLDER:
        with contextlib.suppress(OSError):
            folder.rmdir()
        folder = Path(tempfile.mkdtemp(prefix="lexiscope-", dir="/tmp"))
    return folder
