"""Read the classification head of a checkpoint: one vector for each label, and those of the layer before the labels, as
rows that read the stream."""

from collections.abc import Mapping
from dataclasses import dataclass

import torch
from torch import Tensor

from lexiscope.precompute.errors import BadWeights
from lexiscope.precompute.weights.architectures.base import LABEL_TENSORS, Model
from lexiscope.precompute.weights.checkpoint import Checkpoint
from lexiscope.precompute.weights.difference import Difference, Parameters

# By kind, the tensors that may hold it; {} is what stands before the names of the model's own tensors.
TENSORS = {
    "classifier": LABEL_TENSORS,
    "dense": ("classifier.dense.weight", "pre_classifier.weight", "{}pooler.dense.weight"),
}
LONGEST_LABEL = 100  # characters


@dataclass(frozen=True)
class ClassifierHead:
    labels: tuple[str, ...]  # the labels of the rows of `classifier`
    vectors: Mapping[str, Tensor]  # by kind, (n, d_model); of a difference tuned - base, or the tuned model's
    base: Mapping[str, Tensor] | None = None  # of a difference: the base's vectors, if it has the same labels


def read_head(parameters: Parameters) -> ClassifierHead | None:
    """Read the head of a model, or of a difference; return None if there is none."""
    if not isinstance(parameters, Difference):
        return _read_head(parameters)
    tuned, base = _read_head(parameters.tuned), _read_head(parameters.base)
    if tuned is None or base is None or _sizes(tuned) != _sizes(base):
        return tuned
    changes = {kind: vectors - base.vectors[kind] for kind, vectors in tuned.vectors.items()}
    return ClassifierHead(tuned.labels, changes, base.vectors)


def _read_head(model: Model) -> ClassifierHead | None:
    checkpoint = model.checkpoint
    if not model.is_classifier:
        return None
    vectors: dict[str, Tensor] = {}
    for kind, names in TENSORS.items():
        known = (name.format(model.prefix) for name in names)
        if name := next((name for name in known if name in checkpoint.files), None):
            vectors[kind] = checkpoint.tensor(name).contiguous()
            if vectors[kind].ndim != 2 or vectors[kind].shape[1] != model.shape.d_model or not len(vectors[kind]):
                raise BadWeights(
                    f"{name} of {checkpoint.folder} has the shape {tuple(vectors[kind].shape)}, but a classification "
                    f"head reads {model.shape.d_model} numbers. Get the whole checkpoint again."
                )
    return ClassifierHead(_labels(checkpoint, len(vectors["classifier"])), vectors)


def _labels(checkpoint: Checkpoint, count: int) -> tuple[str, ...]:
    """Return the names of `count` labels by config.json's id2label, else LABEL_0 and so on, as `transformers` calls
    them."""
    stated = checkpoint.config.get("id2label")
    names = stated if isinstance(stated, dict) else {}
    return tuple(str(names.get(str(number), f"LABEL_{number}"))[:LONGEST_LABEL] for number in range(count))


def _sizes(head: ClassifierHead) -> dict[str, torch.Size]:
    return {kind: vectors.shape for kind, vectors in head.vectors.items()}
