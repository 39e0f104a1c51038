"""Bring the weights to a task on a cluster. The weights of a Hub model come from the Hub cache of the task's machine,
at the same commit. Weights in files of the machine that starts the tasks go through Ray's object store, tensor by
tensor. No disk is shared.

The store holds one copy of a layer's tensors, put there with its task and removed when the layer is written (and once
those of all layers, for lines of chance); tensors that belong to no layer stay as long as the build lasts. A machine
fetches only what its tasks read.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import ray
import torch

from lexiscope.precompute.weights import hub
from lexiscope.precompute.weights.architectures import describe
from lexiscope.precompute.weights.architectures.base import Model
from lexiscope.precompute.weights.checkpoint import Checkpoint
from lexiscope.precompute.weights.difference import Difference, Parameters

CHUNK_BYTES = 256 << 20  # bytes of one object: never more than this of a tensor is in memory twice


@dataclass(frozen=True)
class StoredTensor:
    shape: tuple[int, ...]
    dtype: torch.dtype
    chunks: tuple[Any, ...]  # references to its bytes in the object store

    @classmethod
    def put(cls, tensor: torch.Tensor) -> "StoredTensor":
        data = tensor.contiguous().flatten().view(torch.uint8).numpy()
        starts = range(0, len(data), CHUNK_BYTES)
        chunks = tuple(ray.put(data[start : start + CHUNK_BYTES]) for start in starts)
        return cls(tuple(tensor.shape), tensor.dtype, chunks)

    def get(self) -> torch.Tensor:
        """Return a copy of the tensor, because tensors in the store cannot be written to."""
        tensor = torch.empty(self.shape, dtype=self.dtype)
        data = tensor.flatten().view(torch.uint8).numpy()
        start = 0
        for chunk in self.chunks:
            some = ray.get(chunk)
            data[start : start + len(some)] = some
            start += len(some)
        return tensor


Tensors: TypeAlias = dict[str, StoredTensor]


@dataclass(frozen=True)
class StoredCheckpoint(Checkpoint):
    """A checkpoint of another machine. Its folder and files are paths of that machine, which errors name."""

    shapes: Mapping[str, tuple[int, ...]] = field(default_factory=dict, repr=False, hash=False)
    tensors: Tensors = field(default_factory=dict, repr=False, hash=False)  # tensors that belong to no layer
    of_layer: Tensors = field(default_factory=dict, repr=False, hash=False)  # of the layer that is being made

    def tensor_shape(self, name: str) -> tuple[int, ...]:
        self._file(name)  # raises an error if there is no such tensor
        return self.shapes[name]

    def stored_tensor(self, name: str) -> torch.Tensor:
        self._file(name)
        return (self.of_layer.get(name) or self.tensors[name]).get()


@dataclass(frozen=True)
class HubWeights:
    repo_id: str
    commit: str
    name: str

    def open(self) -> Checkpoint:
        folder, commit = hub.download(self.repo_id, self.commit, lambda _: None)
        return Checkpoint.open(folder, name=self.name, source=self.repo_id, revision=commit)


Weights: TypeAlias = HubWeights | StoredCheckpoint


def models_of(parameters: Parameters) -> tuple[Model, ...]:
    """Return the model, or, of a difference, the tuned model and the base."""
    return (parameters.tuned, parameters.base) if isinstance(parameters, Difference) else (parameters,)


def put_weights(model: Model) -> Weights:
    """Return what a task needs to open the model. If the model is in files of this machine, put all tensors that belong
    to no layer, and all vectors, into the object store."""
    checkpoint = model.checkpoint
    if checkpoint.revision:
        return HubWeights(checkpoint.source, checkpoint.revision, checkpoint.name)
    blocks = tuple(_block(model, layer) for layer in range(model.shape.n_layers))
    shapes = {name: checkpoint.tensor_shape(name) for name in sorted(checkpoint.names())}
    # Norms and biases, too: attention of an encoder's layer reads the norm of the layer before.
    shared = (name for name, shape in shapes.items() if len(shape) == 1 or not name.startswith(blocks))
    return StoredCheckpoint(
        **{name: getattr(checkpoint, name) for name in ("name", "source", "revision", "folder", "config", "files")},
        shapes=shapes,
        tensors=_put(checkpoint, shared),
    )


def put_layers(model: Model, layers: Iterable[int]) -> Tensors:
    """Put the tensors of layers into the object store and return references to them; a Hub model needs none."""
    if model.checkpoint.revision:
        return {}
    blocks = tuple(_block(model, layer) for layer in layers)
    names = (name for name in model.checkpoint.names() if name.startswith(blocks))
    return _put(model.checkpoint, names)


def open_parameters(weights: tuple[Weights, ...], name: str) -> Parameters:
    """Open the model, or the difference, on a task's machine."""
    model, *base = (describe(each.open() if isinstance(each, HubWeights) else each) for each in weights)
    return Difference(model, base[0], name, check=False) if base else model


def lend_layer(parameters: Parameters, layer: tuple[Tensors, ...]) -> None:
    """Let an opened model read the tensors of one layer (or all), in place of those of the task before."""
    for model, tensors in zip(models_of(parameters), layer, strict=True):
        if isinstance(model.checkpoint, StoredCheckpoint):
            model.checkpoint.of_layer.clear()
            model.checkpoint.of_layer.update(tensors)


def _block(model: Model, layer: int) -> str:
    """Return the prefix of the names of a layer's tensors."""
    return f"{model.prefix}{model.block.format(layer)}."


def _put(checkpoint: Checkpoint, names: Iterable[str]) -> Tensors:
    return {name: StoredTensor.put(checkpoint.stored_tensor(name)) for name in names}
