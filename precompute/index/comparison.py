"""Read a comparison of two models: layer similarities, assignments, matches of vectors, the kernel, stitching runs.

A file is opened when it is first needed; a damaged or missing one raises an error of its own, and the others can be
read."""

import os
from pathlib import Path
from typing import Any, Literal, NamedTuple, Self, TypeAlias

import numpy as np

from lexiscope.precompute.errors import NotBuilt, NotFound, ShardDamaged
from lexiscope.precompute.files import Stamp, damaged, stamp_of
from lexiscope.precompute.index.comparison_record import KERNEL, ComparedModel, ComparisonRecord
from lexiscope.precompute.index.layout import misfits
from lexiscope.precompute.index.origin import MODEL_NAME
from lexiscope.precompute.index.stitching import STITCHING, read_runs
from lexiscope.precompute.index.tensor_file import Array, Floats, TensorFile
from lexiscope.precompute.rebuild_command import COMPARISON, COMPARISONS, compare_command_for
from lexiscope.precompute.shape import SIDES

Side: TypeAlias = Literal["a", "b"]
Match: TypeAlias = tuple[int, int, float]  # layer and index of a vector of the other model, and r
Stamps: TypeAlias = tuple[Stamp | None, Stamp | None]  # stamps of comparison.json and of stitching.json


class MatchedPair(NamedTuple):
    """A vector of A and its best match in B."""

    a_layer: int
    a_index: int
    b_layer: int
    b_index: int
    r: float


class Comparison:
    """A comparison as it was when it was opened; `is_changed` says whether files were added or replaced since."""

    def __init__(self, folder: Path, record: ComparisonRecord, stamp: Stamps) -> None:
        self.folder = folder
        self.record = record
        self.stamp = stamp
        self._files: dict[str, TensorFile] = {}

    @classmethod
    def open(cls, folder: Path) -> Self:
        record, stamp = ComparisonRecord.load_stamped(folder)
        if (record.a.model, record.b.model) != (folder.parent.name, folder.name):
            raise damaged(folder / COMPARISON, f"compares {record.a.model} with {record.b.model}")
        return cls(folder, record, (stamp, stamp_of(folder / STITCHING)))

    def is_changed(self) -> bool:
        return self.stamp != (stamp_of(self.folder / COMPARISON), stamp_of(self.folder / STITCHING))

    @property
    def a(self) -> ComparedModel:
        return self.record.a

    @property
    def b(self) -> ComparedModel:
        return self.record.b

    @property
    def tokens(self) -> int:
        """Return how many tokens both models have."""
        return self.record.tokens

    @property
    def kinds(self) -> tuple[str, ...]:
        """Return the kinds of vectors that are compared already; `record.kinds` are those that can be."""
        return tuple(kind for kind in self.record.kinds if kind in self.record.files)

    def similarity(self, kind: str) -> Floats:
        """Return the mean |r| over all pairs of a vector of one layer and one of the other, (layers of A, layers of
        B)."""
        return self._checked(kind, "similarity")

    def assignment(self, kind: str) -> list[tuple[int, int]]:
        """Return pairs (layer of A, layer of B), in the order of A's layers: the one-to-one assignment with the largest
        sum of similarities."""
        return self._assignment(kind, "assignment")

    def feature_space(self, kind: str) -> Floats | None:
        """Return the mean |r| of the vectors as they are, over their d_model coordinates, (layers of A, layers of B);
        None if d_model differs."""
        return self._checked(kind, "feature_space") if self.record.has_feature_space else None

    def feature_assignment(self, kind: str) -> list[tuple[int, int]] | None:
        return self._assignment(kind, "feature_assignment") if self.record.has_feature_space else None

    def chance(self, kind: str) -> float | None:
        """Return the similarity that random vectors have; None if it was not measured."""
        return self.record.chance.get(SIDES[kind])

    def feature_chance(self) -> float | None:
        """Return the similarity that random vectors have in feature space; None if it was not measured."""
        return self.record.chance.get("feature_space")

    def matches(self, side: Side, kind: str, layer: int, index: int) -> list[Match]:
        """Return the vectors of the other model that are most similar to this vector of the model `side`: by |r|, best
        first."""
        model, other = (self.a, self.b) if side == "a" else (self.b, self.a)
        file, count = self._file(kind), model.kinds[kind]
        if not (0 <= layer < model.n_layers and 0 <= index < count):
            raise NotFound(
                f"{kind} {index} of layer {layer}: {model.model} has layers 0 to {model.n_layers - 1}, each with "
                f"{kind} 0 to {count - 1}"
            )
        row = layer * count + index
        layers, indexes, r = (file.block(f"{side}.{part}", row) for part in ("layer", "index", "r"))
        self._check_matches(file, layers, indexes, r, other.n_layers, other.kinds[kind])
        return [*zip(layers.tolist(), indexes.tolist(), r.tolist(), strict=True)]

    def all_matches(self, side: Side, kind: str) -> tuple[Array, Array, Floats]:
        """Return the layers, indexes and correlations r of the matches of all vectors of the model `side`, (n, matches)
        each, layer after layer."""
        file, other = self._file(kind), self.b if side == "a" else self.a
        layers, indexes, r = (file.array(f"{side}.{part}") for part in ("layer", "index", "r"))
        self._check_matches(file, layers.T, indexes.T, r.T, other.n_layers, other.kinds[kind])
        return layers, indexes, r

    def strongest(self, kind: str, n: int) -> list[MatchedPair]:
        """Return the n vectors of A that have the best matches in B, each with its match: by |r|, ties by layer and
        index."""
        count = self.a.kinds[kind]
        layers, indexes, r = (part[:, 0] for part in self.all_matches("a", kind))
        best = np.argsort(-np.abs(r), kind="stable")[:n].tolist()
        return [MatchedPair(at // count, at % count, int(layers[at]), int(indexes[at]), float(r[at])) for at in best]

    def kernel(self) -> Floats:
        """Return the kernel K_AB, (d_A, d_B): states of A, as rows, times K_AB are states of B."""
        return self._checked(KERNEL, "kernel")

    def stitching(self) -> list[dict[str, Any]]:
        """Return what `lexiscope stitch` measured with these weights, as StitchingRun records; empty if nothing was
        measured."""
        weights = self.a.weights_sha256, self.b.weights_sha256
        runs = read_runs(self.folder)
        return [run.model_dump() for run in runs if (run.a_weights_sha256, run.b_weights_sha256) == weights]

    def _file(self, name: str) -> TensorFile:
        """Return the open file of a kind, or of the kernel."""
        file = self._files.get(name)
        if file is None or file.is_changed():
            file = self._files[name] = self._open(name)
        return file

    def _open(self, name: str) -> TensorFile:
        if name not in self.record.files:
            if name not in (*self.record.kinds, KERNEL):
                raise NotFound(f"{name} is not compared: {self.a.model} and {self.b.model} do not both have it")
            raise NotBuilt(f"{name} is not compared yet: `{compare_command_for(self.folder)}` goes on with it")
        return open_comparison_file(self.folder, self.record, name)

    def _checked(self, name: str, array: str) -> Floats:
        file = self._file(name)
        values = file.array(array)
        if not np.isfinite(values).all():
            raise damaged(file.path, f"is damaged: {array} holds what is no number")
        return values

    def _assignment(self, kind: str, array: str) -> list[tuple[int, int]]:
        file = self._file(kind)
        pairs = file.array(array)
        columns = zip(pairs.T.tolist(), (self.a.n_layers, self.b.n_layers), strict=True)
        if any(len(set(column)) < len(column) or max(column) >= most for column, most in columns):
            raise damaged(file.path, f"is damaged: {array} does not assign layers one to one")
        return [(a, b) for a, b in pairs.tolist()]

    def _check_matches(
        self, file: TensorFile, layers: Array, indexes: Array, r: Floats, n_layers: int, count: int
    ) -> None:
        """Raise ShardDamaged unless these can be matches of one vector, (matches,), or of n vectors, (matches, n)."""
        size = np.abs(r)
        in_order = (size[:-1] >= size[1:]).all() and (size <= 1).all()
        if not (in_order and (layers < n_layers).all() and (indexes < count).all()):
            raise damaged(file.path, "is damaged: its matches are not in order, or of vectors that do not exist")


def open_comparison_file(folder: Path, record: ComparisonRecord, name: str) -> TensorFile:
    """Open a file; raise ShardDamaged unless it belongs to this comparison and holds what it should."""
    path = folder / (record.files[name].file if name in record.files else f"{name}.safetensors")
    file = TensorFile(path)
    if file.metadata != record.metadata:
        raise damaged(path, f"belongs to another comparison: {dict(file.metadata)!a} instead of {record.metadata}")
    arrays = {array: (tensor.dtype, tensor.shape) for array, tensor in file.tensors.items()}
    for error in misfits(arrays, record.layout(name)):
        raise damaged(path, f"does not fit {COMPARISON}: {error}")
    return file


def comparison_folders(data: Path) -> list[Path]:
    """Return the folders of comparisons in a data folder, by the names of the two models; nothing is opened."""
    try:
        folders = sorted((data / COMPARISONS).glob("*/*"))
    except OSError as error:
        raise ShardDamaged(f"cannot list the comparisons in {data / COMPARISONS}: {error.strerror}") from error
    named = [path for path in folders if MODEL_NAME.fullmatch(path.name) and MODEL_NAME.fullmatch(path.parent.name)]
    # Opening a comparison tells what is wrong with it.
    return [path for path in named if os.path.lexists(path / COMPARISON)]
