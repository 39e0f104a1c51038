"""The workers that this server runs itself: one per model, started when it is first needed, up to a number of them.
How one is kept alive is for keeper.py."""

import contextlib
import shutil
import tempfile
import threading
from pathlib import Path

from app.settings import Settings
from app.workers.errors import LiveFull
from app.workers.keeper import Keeper

_LONGEST_PATH = 90  # bytes; a socket's address holds 107


class Supervisor:
    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._keepers: dict[str, Keeper] = {}  # the one used last is last
        self._folder: Path | None = None  # for the sockets
        self._count = 0

    def keeper(self, model: str) -> Keeper:
        """Of a model that exists; its worker is started unless it runs. Never waits."""
        keeper = self._keepers.pop(model, None) or self._new(model)
        self._keepers[model] = keeper
        return keeper

    def running(self) -> dict[str, Keeper]:
        return dict(self._keepers)

    def close(self) -> None:
        """Returns when all have ended."""
        keepers, self._keepers = self._keepers, {}
        enders = [threading.Thread(target=keeper.close) for keeper in keepers.values()]
        for ender in enders:
            ender.start()
        for ender in enders:
            ender.join()
        if self._folder:
            shutil.rmtree(self._folder, ignore_errors=True)
            self._folder = None

    def _new(self, model: str) -> Keeper:
        if len(self._keepers) >= self._settings.workers:
            idle = next((name for name, keeper in self._keepers.items() if not keeper.users), None)
            if idle is None:
                raise LiveFull(
                    f"no worker can be started for {model}: {self._settings.workers} other models have one that is "
                    "busy (the setting workers)"
                )
            threading.Thread(target=self._keepers.pop(idle).close, daemon=True).start()
        self._folder = self._folder or _private_folder()
        self._count += 1  # never the socket of one that is just ending
        return Keeper(model, self._settings, self._folder / f"{self._count}.sock")


def _private_folder() -> Path:
    """Only this user can reach what is in it."""
    folder = Path(tempfile.mkdtemp(prefix="lexiscope-"))
    if len(bytes(folder)) > _LONGEST_PATH:
        with contextlib.suppress(OSError):
            folder.rmdir()
        folder = Path(tempfile.mkdtemp(prefix="lexiscope-", dir="/tmp"))
    return folder
