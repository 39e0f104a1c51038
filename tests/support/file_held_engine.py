"""Compute for the replicas of tests/support/ray_replicas.py: prompts wait while FOLDER has a file `hold`; FOLDER/begun
and FOLDER/given-up get a file for each prompt, named after the replica's process."""

import os
import time
from collections.abc import Callable, Sequence
from itertools import count
from pathlib import Path
from typing import Any

from lexiscope.app.worker.loading import LoadedModel
from lexiscope.precompute.errors import LexiscopeError
from lexiscope.precompute.index.manifest import Manifest
from lexiscope.precompute.live.engine import Engine
from lexiscope.precompute.live.wire.answers import PromptAnswer
from lexiscope.precompute.live.wire.asks import PromptAsk
from lexiscope.precompute.live.wire.errors import Cancelled
from lexiscope.precompute.weights.checkpoint import Checkpoint


class FileHeldEngine(Engine):
    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self.folder = Path()
        self._number = count()

    def prompts(
        self,
        asks: Sequence[PromptAsk],
        step: Callable[[str, float], None] = lambda *_: None,
        cancelled: Callable[[], bool] = lambda: False,
    ) -> list[PromptAnswer | LexiscopeError]:
        name = f"{os.getpid()}-{next(self._number)}"
        (self.folder / "begun" / name).touch()
        while (self.folder / "hold").exists():
            if cancelled():
                (self.folder / "given-up" / name).touch()
                raise Cancelled
            time.sleep(0.01)
        return super().prompts(asks, step, cancelled)


def load_held(index: Path, folder: Path) -> LoadedModel:
    """Load the model of an index."""
    manifest = Manifest.load(index)
    engine = FileHeldEngine.load(Checkpoint.open(Path(manifest.source)), "cpu", 1)
    assert isinstance(engine, FileHeldEngine)
    engine.folder = folder
    return LoadedModel(engine, manifest.model, manifest.weights_sha256)
