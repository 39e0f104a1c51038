"""Run `lexiscope worker --ray` with replicas that can be held up: `python -m tests.support.ray_replicas DATA FOLDER`.

The end of standard input acts as Ctrl-C. The replicas compute with the engine of tests/support/file_held_engine.py:
this process needs no torch, and imports none."""

import os
import signal
import sys
import threading
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from lexiscope.app.commands import ray_worker
from lexiscope.app.commands.cli import main
from lexiscope.precompute import ray_cluster
from tests.support.site import GPT2

if TYPE_CHECKING:
    from lexiscope.app.settings import Settings
    from lexiscope.app.worker.loading import LoadedModel
    from lexiscope.app.worker.ray_serve import WorkerArguments

ENVIRONMENT = {
    "RAY_USAGE_STATS_ENABLED": "0",
    "RAY_memory_monitor_refresh_ms": "0",  # other programs may fill the memory of this machine
}
REPLICAS = 2
OPTIONS = {
    "min-replicas": REPLICAS,
    "cpus-per-replica": 0.5,  # so that all fit on one core
    "port": 0,
}


def run(data: str, folder: str) -> int:
    keep_others_out = ray_cluster.keep_others_out

    def keep_others_out_and_hold_replicas() -> None:
        keep_others_out()  # before Ray is imported
        hold_replicas(folder)

    threading.Thread(target=interrupt_at_the_end_of_input, daemon=True).start()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ray_worker, "keep_others_out", keep_others_out_and_hold_replicas)
        patch.setattr(ray_worker, "START_SECONDS", 600)  # on a machine that is busy
        words = [word for name, value in OPTIONS.items() for word in (f"--{name}", str(value))]
        return main(["worker", "--ray", "--model", GPT2, "--data", data, *words])


def hold_replicas(folder: str) -> None:
    from lexiscope.app.worker import ray_serve

    plain = ray_serve.bound_application

    class HeldReplica(ray_serve.Replica):
        def load(self, arguments: "WorkerArguments", settings: "Settings") -> "LoadedModel":
            from tests.support.file_held_engine import load_held

            return load_held(settings.data / GPT2, Path(arguments.model))

    def held_application(arguments: "WorkerArguments", settings: "Settings") -> Any:
        return plain(arguments.model_copy(update={"model": folder}), settings, HeldReplica)

    pytest.MonkeyPatch().setattr(ray_serve, "bound_application", held_application)


def interrupt_at_the_end_of_input() -> None:
    sys.stdin.read()
    os.kill(os.getpid(), signal.SIGINT)


if __name__ == "__main__":
    sys.exit(run(*sys.argv[1:]))
