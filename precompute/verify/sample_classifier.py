"""Check the lists of a classification head against the weights: those of every label, and a sample of those of the
layer before the labels."""

from collections.abc import Iterator

import numpy as np

from lexiscope.precompute.errors import LexiscopeError, ShardDamaged
from lexiscope.precompute.index.index import Index
from lexiscope.precompute.verify.brute_force import BruteForce, Float64
from lexiscope.precompute.verify.brute_lists import LAST_BIT, SMALLEST_FLOAT32, lists_error
from lexiscope.precompute.verify.sums import Result
from lexiscope.precompute.weights.architectures.base import Model
from lexiscope.precompute.weights.classifier_head import TENSORS
from lexiscope.precompute.weights.difference import Difference, Parameters


def check_classifier(
    index: Index, model: Parameters, brute: BruteForce, sample: int, rng: np.random.Generator
) -> Iterator[Result]:
    entry = index.manifest.classifier
    assert entry
    for kind, count in entry.counts.items():
        numbers = range(count) if kind == "classifier" else np.sort(rng.choice(count, min(sample, count), False))
        for number in map(int, numbers):
            error: LexiscopeError | None
            try:
                wrong = _error(index, model, brute, kind, number)
                remedy = f"Delete {index.folder / entry.file} and run `{index.manifest.rebuild_command}` again"
                error = ShardDamaged(f"{wrong} is not what the weights give. {remedy}") if wrong else None
            except ShardDamaged as damage:
                error = damage
            yield f"classification head: {kind} {number}", error


def _error(index: Index, model: Parameters, brute: BruteForce, kind: str, number: int) -> str | None:
    """Say what is wrong with the lists of one vector; return None if nothing is."""
    entry, stored = index.manifest.classifier, index.classifier()
    assert entry
    tuned, base = (model.tuned, model.base) if isinstance(model, Difference) else (model, None)
    vector = _row(tuned, kind, number)
    if base and entry.subtracted:
        of_base = _row(base, kind, number)
        vector = (vector - of_base).astype(np.float32)
        if not _near(float(np.linalg.norm(of_base.astype(np.float64))), stored.base_norm(kind, number) or 0.0):
            return f"the norm of the base's {kind} {number}"
    exact = vector.astype(np.float64)
    for lens in index.stored.lenses:
        lists = stored.vector(kind, number, lens)
        scores: Float64 = brute.embedding("ff_key", lens) @ exact  # (d_vocab,)
        off, no_hubs = 1e-12 * float(np.abs(scores).max()), np.zeros(len(scores), np.bool_)
        directions, name = brute.embedding("ff_key", "cosine"), f"{kind} {number}"
        if wrong := lists_error(name, lens, lists, scores, off, no_hubs, directions, bool(exact.any())):
            return wrong
        if not _near(float(np.linalg.norm(exact)), lists.norm):
            return f"the norm of {kind} {number}"
    return None


def _row(model: Model, kind: str, number: int) -> np.ndarray[tuple[int], np.dtype[np.float32]]:
    """Return one vector of the head, read straight from the checkpoint."""
    names = [name.format(model.prefix) for name in TENSORS[kind]]
    name = next(name for name in names if name in model.checkpoint.files)
    row: np.ndarray[tuple[int], np.dtype[np.float32]] = model.checkpoint.tensor(name)[number].numpy()
    return row


def _near(exact: float, stored: float) -> bool:
    return abs(stored - exact) <= LAST_BIT * stored + SMALLEST_FLOAT32
