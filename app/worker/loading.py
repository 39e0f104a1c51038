"""Load the model of a worker: the engine that computes, the model's name, and the name of its weights."""

import contextlib
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from lexiscope.precompute.errors import BadWeights, IndexFault
from lexiscope.precompute.index.manifest import Manifest
from lexiscope.precompute.live.wire.protocol import weights_name, weights_name_of

if TYPE_CHECKING:
    from lexiscope.precompute.live.engine import Engine
    from lexiscope.precompute.weights.checkpoint import Checkpoint


@dataclass(frozen=True)
class LoadedModel:
    engine: "Engine"
    name: str
    weights: str  # the name that protocol.weights_name gives them


def load_model(asked: str, data: Path, device: str, threads: int | None) -> LoadedModel:
    """Load a model; `asked` is whatever `lexiscope worker --model` accepts."""
    from lexiscope.app.weights import find_weights
    from lexiscope.precompute.live.engine import Engine
    from lexiscope.precompute.weights.difference import Difference

    found = find_weights(asked, data)
    # For a difference of two models, the checkpoint is that of the tuned model, under the name of the difference.
    checkpoint, base = (found.checkpoint, found.base.checkpoint) if isinstance(found, Difference) else (found, None)
    with ThreadPoolExecutor(1) as beside:
        hashing = beside.submit(_checked_weights, checkpoint, base, data)
        engine = Engine.load(found, device, threads)
        return LoadedModel(engine, checkpoint.name, hashing.result())


def _checked_weights(checkpoint: "Checkpoint", base: "Checkpoint | None", data: Path) -> str:
    """Return the name of the weights; raise BadWeights if there is an index of this model that was made from others."""
    weights = weights_name(checkpoint.weights_hash(), base.weights_hash() if base else None)
    with contextlib.suppress(IndexFault):
        manifest = Manifest.load(data / checkpoint.name)
        if weights != weights_name_of(manifest):
            sources = f"{checkpoint.source} or {base.source}" if base else checkpoint.source
            raise BadWeights(
                f"{sources} holds other weights than the index {data / checkpoint.name} was made from: put those back, "
                f"or rebuild the index: `lexiscope precompute {manifest.model} --force`"
            )
    return weights
