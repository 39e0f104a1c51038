"""Read one layer of an index: the lists of its vectors. A value that cannot be right raises ShardDamaged, and is never
shown as another token."""

from collections.abc import Sequence

import numpy as np

from lexiscope.precompute.index.layer.arrays import ShardArrays
from lexiscope.precompute.index.layer.checks import SIGNS, sound
from lexiscope.precompute.index.layer.heads import HeadReader
from lexiscope.precompute.index.layer.inverted import InvertedReader
from lexiscope.precompute.index.layer.lists import Similarity, VectorLists
from lexiscope.precompute.index.stored import Stored, position
from lexiscope.precompute.index.tensor_file import Array, Floats, TensorFile
from lexiscope.precompute.shape import ENDS

NOTABLE = np.float32(0.15)  # a similarity that chance hardly ever gives; JSON calls the share of these share_15


class Shard:
    """Read a layer. Vectors and their similarities are here; values of heads are in `heads`, lists by their tokens in
    `inverted`."""

    def __init__(self, file: TensorFile, stored: Stored, layer: int) -> None:
        self.file = file
        self.layer = layer
        self._stored = stored
        self._shape = stored.shape
        self._arrays = ShardArrays(file, stored, layer)
        self.heads = HeadReader(self._arrays)
        self.inverted = InvertedReader(self._arrays)

    def array(self, name: str) -> Array:
        """Return a whole array by its name in FORMAT.md, read from the file: not checked."""
        return self.file.array(name)

    def vectors(self, which: Sequence[tuple[str, int]], lens: str) -> tuple[Array, Floats]:
        """Return ids and scores (V, E, k): both lists of each of these vectors (kind, index), read and checked
        together."""
        shape, lens_at = self._shape, self._arrays.lens_at(lens)
        for kind, index in which:
            position("kind", kind, self._stored.kinds)
            self._arrays.check_range(kind, index, shape.count(kind))
        ids = np.stack([self.file.block(f"{kind}.ids", index, lens_at) for kind, index in which])
        scores: Floats = np.stack([self.file.block(f"{kind}.scores", index, lens_at) for kind, index in which])
        falling = scores * SIGNS
        if not sound(ids, falling, shape.d_vocab):
            for (kind, index), ends in zip(which, zip(ids, falling, strict=True), strict=True):
                self._arrays.check_ends(f"{kind} {index} ({lens}, ", *ends)
        return ids, scores

    def vector(self, kind: str, index: int, lens: str) -> VectorLists:
        ids, scores = self.vectors([(kind, index)], lens)
        return VectorLists(ids[0], scores[0], self.norm(kind, index), *self.coherences(kind, index, lens))

    def first_ids(self, kind: str, numbers: Array, lens: str, count: int, end: str = "top") -> Array:
        """Return the first tokens of these vectors' lists at one end: (n, count)."""
        lens_at, end_at = self._arrays.lens_at(lens), position("end", end, ENDS)
        starts = ((numbers * len(self._stored.lenses) + lens_at) * len(ENDS) + end_at) * self._stored.k
        ids = self.file.rows(f"{kind}.ids", starts, min(count, self._stored.k))
        wrong = (ids >= self._shape.d_vocab).any(axis=-1) | (ids[:, 1:] == ids[:, :-1]).any(axis=-1)
        for number in numbers[wrong][:1].tolist():
            self.vector(kind, number, lens)  # raises an error that says what is wrong
        return ids

    def norm(self, kind: str, index: int) -> float:
        norm = float(self._arrays.column(f"{kind}.norm")[index])
        if not 0 <= norm < np.inf:
            raise self._arrays.damage(f"the norm of {kind} {index} is {norm}")
        return norm

    def coherences(self, kind: str, index: int, lens: str) -> list[float]:
        """Return the coherence of a vector's top and of its bottom."""
        of_vector = self._arrays.column(f"{kind}.coherence")[index, self._arrays.lens_at(lens)]
        return self._arrays.cosines(f"the coherence of {kind} {index}", of_vector)

    def all_norms(self, kind: str) -> Floats:
        """Return the norms of the vectors of a kind, (n,), as stored: not checked."""
        return self._arrays.column(f"{kind}.norm")

    def all_coherences(self, kind: str, lens: str, end: str = "top") -> Floats:
        """Return the coherences of the vectors' lists at one end, (n,), as stored: not checked."""
        return self._arrays.column(f"{kind}.coherence")[:, self._arrays.lens_at(lens), position("end", end, ENDS)]

    def base_norm(self, kind: str, index: int) -> float:
        """Return the norm of the base's vector, in an index of a difference."""
        norm = float(self.all_base_norms(kind)[index])
        if not 0 <= norm < np.inf:
            raise self._arrays.damage(f"the norm of the base's {kind} {index} is {norm}")
        return norm

    def all_base_norms(self, kind: str) -> Floats:
        """Return the norms of the base's vectors, (n,), in an index of a difference, as stored: not checked."""
        return self._arrays.column(f"{kind}.base_norm")

    def similarity(self, neuron: int, lens: str) -> Similarity:
        """Return Sim_k of the top of a neuron's key with the top and with the bottom of its value."""
        self._arrays.check_range("neuron", neuron, self._shape.d_mlp)
        return self._similarity("ff", neuron, lens, f"neuron {neuron}")

    def subhead_similarity(self, matrix: str, head: int, subhead: int, lens: str) -> Similarity:
        """Return the similarities of the two vectors of a subhead: v and o (`vo`), or q and k (`qk`)."""
        self._arrays.check_range("head", head, self._shape.n_heads)
        self._arrays.check_range("subhead", subhead, self._shape.d_head)
        number = head * self._shape.d_head + subhead
        return self._similarity(matrix, number, lens, f"{matrix} of head {head}, subhead {subhead},")

    def all_similarities(self, compared: str, lens: str) -> Floats:
        """Return the similarities of all neurons (`ff`), or of all subheads, head after head (`vo`, `qk`), (n, E), as
        stored: not checked."""
        return self._similarity_column(f"{compared}.similarity", lens)

    def all_shuffled(self, compared: str, lens: str) -> Floats:
        """Return the similarities if the second list is that of another neuron or subhead, (n, E), as stored: not
        checked."""
        return self._similarity_column(f"{compared}.shuffled", lens)

    def shuffled(self, compared: str, lens: str) -> tuple[float, float, float]:
        """Return what chance gives: the mean of shuffled similarities with top and with bottom, and the share of those
        of which the larger is at least NOTABLE."""
        of_all = self.all_shuffled(compared, lens)
        if not ((of_all >= 0) & (of_all <= 1)).all():
            raise self._arrays.damage(f"{compared}.shuffled has a value that is no similarity")
        top, bottom = of_all.mean(axis=0, dtype=np.float64).tolist()
        return top, bottom, float((of_all.max(axis=1) >= NOTABLE).mean())

    def _similarity_column(self, name: str, lens: str) -> Floats:
        of_all = self._arrays.column(name)
        similarities: Floats = of_all.reshape(-1, *of_all.shape[-2:])[:, self._arrays.lens_at(lens)]
        return similarities

    def _similarity(self, compared: str, number: int, lens: str, what: str) -> Similarity:
        position("similarity", compared, self._stored.compared)
        top, bottom = self.all_similarities(compared, lens)[number].tolist()
        if not (0 <= top <= 1 and 0 <= bottom <= 1):
            raise self._arrays.damage(f"the similarity of {what} is {top} (top) and {bottom} (bottom)")
        return Similarity(top, bottom)
