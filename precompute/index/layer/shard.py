"""Read one layer of an index: the lists of its vectors. A token id or score that is impossible raises ShardDamaged, and
is never shown as if it were another token."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from lexiscope.precompute.index.layer.arrays import ShardArrays
from lexiscope.precompute.index.layer.checks import SIGNS, sound
from lexiscope.precompute.index.layer.heads import HeadReader
from lexiscope.precompute.index.layer.lists import Similarity, VectorLists
from lexiscope.precompute.index.stored import Stored, position
from lexiscope.precompute.index.tensor_file import Array, Floats, TensorFile
from lexiscope.precompute.shape import ENDS

NOTABLE = np.float32(0.15)  # a similarity that chance hardly ever gives; JSON calls the share of these share_15


class Shard(ShardArrays):
    """One layer of an index. Vectors and their similarities are read here, values of heads in `heads`; lookup/ finds
    tokens."""

    def __init__(self, file: TensorFile, stored: Stored, layer: int) -> None:
        super().__init__(file, stored, layer)
        self.heads = HeadReader(file, stored, layer)
        self._by_chance: dict[tuple[str, str], tuple[float, float, float]] = {}  # what `shuffled` has returned

    def array(self, name: str) -> Array:
        """Return a whole array by its name in docs/format.md, as it is in the file: not checked."""
        return self.file.array(name)

    def vectors(self, which: Sequence[tuple[str, int]], lens: str) -> tuple[Array, Floats]:
        """Return ids and scores (vectors, ends, k) of both lists of each of these vectors (kind, index), which are read
        and checked together."""
        shape, lens_at = self.shape, self.lens_at(lens)
        for kind, index in which:
            position("kind", kind, self.stored.kinds)
            self.check_range(kind, index, shape.count(kind))
        ids = np.stack([self.file.block(f"{kind}.ids", index, lens_at) for kind, index in which])
        scores: Floats = np.stack([self.file.block(f"{kind}.scores", index, lens_at) for kind, index in which])
        falling = scores * SIGNS
        if not sound(ids, falling, shape.d_vocab):
            for (kind, index), ends in zip(which, zip(ids, falling, strict=True), strict=True):
                self.check_ends(f"{kind} {index} ({lens}, ", *ends)
        return ids, scores

    def vector(self, kind: str, index: int, lens: str) -> VectorLists:
        ids, scores = self.vectors([(kind, index)], lens)
        return VectorLists(ids[0], scores[0], self.norm(kind, index), *self.coherences(kind, index, lens))

    def first_ids(self, kind: str, numbers: Array, lens: str, count: int, end: str = "top") -> Array:
        """Return the first tokens of these vectors' lists at one end: (n, count)."""
        lens_at, end_at = self.lens_at(lens), position("end", end, ENDS)
        starts = ((numbers * len(self.stored.lenses) + lens_at) * len(ENDS) + end_at) * self.stored.k
        ids = self.file.rows(f"{kind}.ids", starts, min(count, self.stored.k))
        wrong = (ids >= self.shape.d_vocab).any(axis=-1) | (ids[:, 1:] == ids[:, :-1]).any(axis=-1)
        for number in numbers[wrong][:1].tolist():
            self.vector(kind, number, lens)  # raises an error that says what is wrong
        return ids

    def norm(self, kind: str, index: int) -> float:
        return self._checked_norm(self.all_norms(kind), kind, index)

    def coherences(self, kind: str, index: int, lens: str) -> list[float]:
        """Return the coherence of the top and of the bottom list of a vector."""
        of_vector = self.column(f"{kind}.coherence")[index, self.lens_at(lens)]
        return self.cosines(f"the coherence of {kind} {index}", of_vector)

    def all_norms(self, kind: str) -> Floats:
        """Return the norms of the vectors of a kind, (n,), as stored: not checked."""
        return self.column(f"{kind}.norm")

    def all_coherences(self, kind: str, lens: str, end: str = "top") -> Floats:
        """Return the coherences of the vectors' lists at one end, (n,), as stored: not checked."""
        return self.column(f"{kind}.coherence")[:, self.lens_at(lens), position("end", end, ENDS)]

    def base_norm(self, kind: str, index: int) -> float:
        """Return the norm of the base's vector, in an index of a difference."""
        return self._checked_norm(self.all_base_norms(kind), f"the base's {kind}", index)

    def all_base_norms(self, kind: str) -> Floats:
        """Return the norms of the base's vectors, (n,), in an index of a difference, as stored: not checked."""
        return self.column(f"{kind}.base_norm")

    def similarity(self, neuron: int, lens: str) -> Similarity:
        """Return the similarity (Sim_k) of the top of a neuron's key with the top and with the bottom of its value."""
        self.check_range("neuron", neuron, self.shape.d_mlp)
        return self._similarity("ff", neuron, lens, f"neuron {neuron}")

    def subhead_similarity(self, matrix: str, head: int, subhead: int, lens: str) -> Similarity:
        """Return the similarities of the two vectors of a subhead: v and o (`vo`), or q and k (`qk`)."""
        self.check_range("head", head, self.shape.n_heads)
        self.check_range("subhead", subhead, self.shape.d_head)
        number = head * self.shape.d_head + subhead
        return self._similarity(matrix, number, lens, f"{matrix} of head {head}, subhead {subhead},")

    def all_similarities(self, compared: str, lens: str) -> Floats:
        """Return the similarities of all neurons (`ff`), or of all subheads, head after head (`vo`, `qk`), (n, ends),
        as stored: not checked."""
        return self._similarity_column(f"{compared}.similarity", lens)

    def all_shuffled(self, compared: str, lens: str) -> Floats:
        """Return the similarities with the second list taken from another neuron or subhead, (n, ends), as stored: not
        checked."""
        return self._similarity_column(f"{compared}.shuffled", lens)

    def shuffled(self, compared: str, lens: str) -> tuple[float, float, float]:
        """Return what chance gives: the mean of shuffled similarities with the top and with the bottom, and the share
        of neurons or subheads in which the larger of the two is at least NOTABLE. It is computed once."""
        if (compared, lens) in self._by_chance:
            return self._by_chance[compared, lens]
        of_all = self.all_shuffled(compared, lens)
        if not ((of_all >= 0) & (of_all <= 1)).all():
            raise self.damage(f"{compared}.shuffled has a value that is no similarity")
        top, bottom = of_all.mean(axis=0, dtype=np.float64).tolist()
        share = float((of_all.max(axis=1) >= NOTABLE).mean())
        return self._by_chance.setdefault((compared, lens), (top, bottom, share))

    def all_lists_of_tokens(self, lens: str) -> NDArray[np.int64]:
        """Return how many lists of vectors, of all kinds and at both ends, hold each token, (d_vocab,)."""
        return sum((np.diff(self._token_offsets(lens, end)) for end in ENDS), np.zeros(self.shape.d_vocab, np.int64))

    def lists_of_tokens(self, lens: str, end: str) -> NDArray[np.int64]:
        """Return how many lists of vectors hold each token, (d_vocab,). Only kinds of vectors that count for hubs are
        included."""
        return np.diff(self._token_offsets(lens, end)) - self._lists_that_do_not_count(lens, end, self.stored.k)

    def lists_by_first_tokens(self, lens: str, count: int) -> NDArray[np.int64]:
        """Return how many lists of vectors, at both ends, have each token among their first `count` tokens, (d_vocab,).
        Only kinds of vectors that count for hubs are included."""
        lists = np.zeros(self.shape.d_vocab, np.int64)
        for end in ENDS:
            offsets = self._token_offsets(lens, end)
            among_first = self.file.run("inverted.rank", offsets[0], offsets[-1]) < count
            # For each entry, how many entries before it are among the first of their lists.
            up_to = np.concatenate([[0], np.cumsum(among_first)])
            lists += np.diff(up_to[offsets - offsets[0]]) - self._lists_that_do_not_count(lens, end, count)
        return lists

    def _lists_that_do_not_count(self, lens: str, end: str, count: int) -> NDArray[np.int64]:
        """Return how many lists have each token among their first tokens, (d_vocab,), of the kinds that are inverted
        but do not count for hubs."""
        d_vocab, lists = self.shape.d_vocab, np.zeros(self.shape.d_vocab, np.int64)
        for kind in self.stored.kinds:
            if kind not in self.stored.counted_kinds:
                with_norm = self.column(f"{kind}.norm") > 0
                ids = self.file.array(f"{kind}.ids")[with_norm, self.lens_at(lens), ENDS.index(end), :count]
                if ids.max(initial=0) >= d_vocab:
                    raise self.damage(f"the lists of {kind} hold token {ids.max()} of {d_vocab}")
                lists += np.bincount(ids.ravel(), minlength=d_vocab)
        return lists

    def _token_offsets(self, lens: str, end: str) -> NDArray[np.int64]:
        """Return where the entries of each token begin in the inverted lists, which lead from tokens to vectors:
        (d_vocab + 1,)."""
        at = self.lens_at(lens), position("end", end, ENDS)
        offsets = self.file.block("inverted.offsets", *at).astype(np.int64)
        if offsets[-1] > self.file.tensors["inverted.rank"].size or np.any(offsets[1:] < offsets[:-1]):
            raise self.damage("inverted.offsets do not rise from token to token")
        return offsets

    def _checked_norm(self, norms: Floats, what: str, index: int) -> float:
        norm = float(norms[index])
        if not 0 <= norm < np.inf:
            raise self.damage(f"the norm of {what} {index} is {norm}")
        return norm

    def _similarity_column(self, name: str, lens: str) -> Floats:
        of_all = self.column(name)
        similarities: Floats = of_all.reshape(-1, *of_all.shape[-2:])[:, self.lens_at(lens)]
        return similarities

    def _similarity(self, compared: str, number: int, lens: str, what: str) -> Similarity:
        position("similarity", compared, self.stored.compared)
        top, bottom = self.all_similarities(compared, lens)[number].tolist()
        if not (0 <= top <= 1 and 0 <= bottom <= 1):
            raise self.damage(f"the similarity of {what} is {top} (top) and {bottom} (bottom)")
        return Similarity(top, bottom)
