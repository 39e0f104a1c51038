"""Make comparisons of small models for tests by the job itself, and compute what they hold in the direct way."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from safetensors.torch import load_file, save_file
from torch import Tensor

from lexiscope.precompute.compare.common_tokens import CommonTokens
from lexiscope.precompute.compare.job import CompareOptions, CompareProgress, compare
from lexiscope.precompute.index.manifest import Manifest
from lexiscope.precompute.index.stitching import STITCHING, StitchingRun, dump_runs
from lexiscope.precompute.shape import SIDES
from lexiscope.precompute.weights.architectures import describe
from lexiscope.precompute.weights.architectures.base import Model
from lexiscope.precompute.weights.checkpoint import Checkpoint
from tests.support.builds import Listener
from tests.support.site import GPT2, LLAMA

HOSTILE_FILE = '=<script>"&.csv'
LEAST = 100  # common tokens: the vocabularies of small models have some hundred


class CompareListener(Listener, CompareProgress):
    """Keep the messages of a comparison, and let a test look at its folder whenever a kind is ready."""

    def __init__(self) -> None:
        super().__init__()
        self.kinds: list[str] = []

    def unit_done(self, name: str) -> None:
        super().unit_done(name)
        self.kinds.append(name)
        self.look()


def quick_compare(a: Path, b: Path, data: Path, listener: CompareListener | None = None, **options: Any) -> Path:
    """Compare the checkpoints in two folders; return the folder of the comparison."""
    chosen = CompareOptions(**{"least_tokens": LEAST, "threads": 2} | options)
    model_a, model_b = (describe(Checkpoint.open(source)) for source in (a, b))
    return compare(model_a, model_b, data, chosen, listener or CompareListener())


def compare_site_models(data: Path) -> Path:
    """Add a comparison of the two models of the fixture `site_data` to a copy of its data folder, and two runs of
    stitching, one of them on a file with a hostile name."""
    a, b = (Manifest.load(data / name) for name in (GPT2, LLAMA))
    folder = quick_compare(Path(a.source), Path(b.source), data)
    control: dict[str, Any] = {"embedding": {"accuracy": 0.25, "loss": 2.5}}
    control |= {"by_layer": [{"layer": layer, "accuracy": 0.3, "loss": 2.0} for layer in range(a.shape.n_layers)]}
    runs = (
        stitching_run(a.weights_sha256, b.weights_sha256, a.shape.n_layers),
        stitching_run(
            a.weights_sha256, b.weights_sha256, a.shape.n_layers, texts=HOSTILE_FILE, measure="label", identity=control
        ),
    )
    (folder / STITCHING).write_bytes(dump_runs(runs))
    return folder


def stitching_run(a_weights: str, b_weights: str, n_layers: int, **fields: Any) -> StitchingRun:
    by_layer = [{"layer": layer, "accuracy": 0.1 * layer, "loss": 3.0 - layer} for layer in range(n_layers)]
    usual = {
        "texts": "lines.txt", "sha256": "0" * 64, "last": 1, "measure": "next", "count": 30, "skipped": 2,
        "predictions": 400, "length": 64, "by_layer": by_layer, "embedding": {"accuracy": 0.01, "loss": 9.0},
        "own": {"accuracy": 0.375, "loss": 1.5}, "chance": {"accuracy": 0.0625, "loss": 6.25},
        "a_weights_sha256": a_weights, "b_weights_sha256": b_weights,
    }  # fmt: skip
    return StitchingRun.model_validate(usual | fields)


def change_weights(folder: Path, change: Callable[[dict[str, Tensor]], None]) -> Path:
    tensors = load_file(folder / "model.safetensors")
    change(tensors)
    save_file(tensors, folder / "model.safetensors", metadata={"format": "pt"})
    return folder


def reorder_tokens(folder: Path, seed: int = 0) -> Path:
    """Give the same tokens other ids; the embedding stays, so that tokens have other rows."""
    path = folder / "tokenizer.json"
    document = json.loads(path.read_text())
    special = {entry["id"] for entry in document["added_tokens"]}
    vocabulary = document["model"]["vocab"]
    free = [token for token in vocabulary.values() if token not in special]
    other = dict(zip(free, np.random.default_rng(seed).permutation(free).tolist(), strict=True))
    document["model"]["vocab"] = {piece: other.get(token, token) for piece, token in vocabulary.items()}
    path.write_text(json.dumps(document))
    return folder


def direct_r(a: Model, b: Model, kind: str, common: CommonTokens) -> NDArray[np.float64]:
    """Project every vector of both to the common tokens, and correlate them: (n_A, n_B); 0 where one is constant."""
    projected = []
    for model, ids in ((a, common.a), (b, common.b)):
        W = (model.W_U if SIDES[kind] == "writes" else model.W_E).double().numpy()[ids]
        V = np.concatenate([model.vectors(layer, kind).double().numpy() for layer in range(model.shape.n_layers)])
        projected.append(V @ W.T)
    return correlations(*projected)


def direct_feature_r(a: Model, b: Model, kind: str) -> NDArray[np.float64]:
    """Correlate the vectors as they are, over their coordinates: (n_A, n_B)."""
    vectors = [
        np.concatenate([model.vectors(layer, kind).double().numpy() for layer in range(model.shape.n_layers)])
        for model in (a, b)
    ]
    return correlations(*vectors)


def correlations(X: NDArray[np.float64], Y: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return np.corrcoef of the rows of X with those of Y; a row counts as constant if its numbers differ only by
    rounding."""
    with np.errstate(invalid="ignore", divide="ignore"):
        r: NDArray[np.float64] = np.corrcoef(X, Y)[: len(X), len(X) :]
    for rows, axis in ((X, 0), (Y, 1)):
        constant = np.ptp(rows, axis=1) <= 1e-12 * np.abs(rows).max(axis=1)
        r[(constant, slice(None)) if axis == 0 else (slice(None), constant)] = 0
    return r


def layer_means(r: NDArray[np.float64], layers_a: int, layers_b: int) -> NDArray[np.float64]:
    n_a, n_b = r.shape
    blocks = np.abs(r).reshape(layers_a, n_a // layers_a, layers_b, n_b // layers_b)
    return np.asarray(blocks.mean(axis=(1, 3)))
