"""Read the heads of one layer from its file: their lists of pairs, the norms and singular values of their matrices."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from lexiscope.precompute.index.layer.arrays import ShardArrays
from lexiscope.precompute.index.layer.checks import SIGNS, sound
from lexiscope.precompute.index.layer.lists import Pairs
from lexiscope.precompute.index.stored import position
from lexiscope.precompute.index.tensor_file import Array, Floats
from lexiscope.precompute.shape import ENDS, PRESETS


class HeadReader(ShardArrays):
    def pairs(self, matrix: str, head: int, lens: str, preset: str, end: str) -> Pairs:
        at = position("end", end, ENDS)
        ids, scores, (top, _) = self.both_ends(matrix, head, lens, preset)
        entries = slice(top, None) if at else slice(top)
        return Pairs(ids[entries], scores[entries], self.pair_coherences(matrix, head, lens, preset)[at])

    def both_ends(
        self, matrix: str, head: int, lens: str, preset: str, first: int | None = None
    ) -> tuple[Array, Floats, tuple[int, int]]:
        """Return the pairs (n, 2) and scores (n,) of the top and then the bottom list, all or only the first ones, and
        how many are from each list."""
        position("matrix", matrix, self.stored.matrices)
        self.check_range("head", head, self.shape.n_heads)
        at = head, self.lens_at(lens), position("preset", preset, PRESETS)
        what = f"{matrix} of head {head}"
        counts: list[int] = self.column(f"{matrix}.count")[at].tolist()
        if (longest := max(counts)) > self.stored.pairs:
            raise self.damage(f"{what} claims {longest} pairs in a list of {self.stored.pairs}")
        ids = self.file.block(f"{matrix}.ids", *at)  # (ends, pairs, 2)
        scores: Floats = self.file.block(f"{matrix}.scores", *at)
        top, bottom = (min(count, first or count) for count in counts)
        if top == bottom:
            ids, scores = ids[:, :top], scores[:, :top]
            if sound(ids, scores * SIGNS, self.shape.d_vocab):
                return ids.reshape(-1, 2), scores.reshape(-1), (top, bottom)
        both, falling = ((part[0, :top], part[1, :bottom]) for part in (ids, scores * SIGNS))
        self.check_ends(f"{what} ({lens}, {preset}, ", both, falling)
        return np.concatenate(both), np.concatenate([scores[0, :top], scores[1, :bottom]]), (top, bottom)

    def best_pairs(self, matrix: str, head: int, lens: str, n: int) -> Array:
        """Return the first pairs, (n, 2) or fewer, of the top list of preset `all`, as stored: they are not checked."""
        ids, counts = self._first_pairs(matrix, lens, "all", n, [head])
        best: Array = ids[0, : counts[0]]
        return best

    def first_pairs(self, matrix: str, lens: str, preset: str, count: int) -> tuple[Array, Floats, Array]:
        """Return the first pairs of every head's top list: ids (n_heads, count, 2), scores (n_heads, count), and how
        many each list has (n_heads,); the ids and scores behind these are zeros."""
        ids, counts = self._first_pairs(matrix, lens, preset, count, range(self.shape.n_heads))
        scores = self.file.rows(
            f"{matrix}.scores", self._list_starts(lens, preset, range(self.shape.n_heads)), ids.shape[1]
        )
        in_all = self._of_lists(f"{matrix}.count", lens, preset)[:, 0]
        for head, number in enumerate(counts.tolist()):
            right = sound(ids[head, :number], scores[head, :number], self.shape.d_vocab)
            if not right or in_all[head] > self.stored.pairs:
                self.pairs(matrix, head, lens, preset, "top")  # raises an error that says what is wrong
        return ids, scores, counts

    def pair_coherences(self, matrix: str, head: int, lens: str, preset: str) -> list[float]:
        of_head = self._of_lists(f"{matrix}.coherence", lens, preset)[head]
        return self.cosines(f"the coherence of {matrix} of head {head}", of_head)

    def readabilities(self, matrix: str, head: int, lens: str, preset: str) -> list[float]:
        """Return how well people can read the pairs at the top, and at the bottom, of a head's matrix, by preset."""
        of_head = self._of_lists(f"{matrix}.readability", lens, preset)[head]
        return self.cosines(f"the readability of {matrix} of head {head}", of_head)

    def all_pair_counts(self, matrix: str) -> Array:
        """Return how many pairs each list has, (n_heads, lenses, presets, ends), as stored: not checked."""
        return self.column(f"{matrix}.count")

    def all_pair_coherences(self, matrix: str, lens: str, preset: str) -> Floats:
        """Return the coherences of the heads' top lists, (n_heads,), as stored: not checked."""
        return self._of_lists(f"{matrix}.coherence", lens, preset)[:, 0]

    def all_readabilities(self, matrix: str, lens: str, preset: str) -> Floats:
        """Return the readabilities of the heads' top lists, (n_heads,), as stored: not checked."""
        return self._of_lists(f"{matrix}.readability", lens, preset)[:, 0]

    def all_singular(self, matrix: str) -> Floats:
        """Return the singular values of the heads' matrices, (n_heads, d_head), largest first; 0 where there is no
        direction."""
        position("directions", matrix, self.stored.directions)
        singular = self.column(f"{matrix}.singular")
        if not ((singular >= 0) & (singular < np.inf)).all() or np.any(singular[:, 1:] > singular[:, :-1]):
            raise self.damage(f"{matrix}.singular has values that are no singular values, largest first")
        return singular

    def all_matrix_norms(self, matrix: str) -> tuple[Floats, Floats]:
        """Return the norms of the heads' matrices and of the base's matrices, (n_heads,) each, as stored: not checked.
        Only an index of a difference has them, also without pairs."""
        return self.column(f"{matrix}.norm"), self.column(f"{matrix}.base_norm")

    def _of_lists(self, name: str, lens: str, preset: str) -> Array:
        """Return the numbers that an array of the file has for the top and bottom lists of every head, (n_heads,
        ends)."""
        of_lists: Array = self.column(name)[:, self.lens_at(lens), position("preset", preset, PRESETS)]
        return of_lists

    def _list_starts(self, lens: str, preset: str, heads: Sequence[int]) -> NDArray[np.int64]:
        """Return the positions at which the top lists of pairs of these heads begin in the array of ids, counted in
        entries."""
        lens_at, preset_at = self.lens_at(lens), position("preset", preset, PRESETS)
        numbers = (np.array(heads, np.int64) * len(self.stored.lenses) + lens_at) * len(PRESETS) + preset_at
        return numbers * len(ENDS) * self.stored.pairs

    def _first_pairs(
        self, matrix: str, lens: str, preset: str, count: int, heads: Sequence[int]
    ) -> tuple[Array, NDArray[np.int64]]:
        """Return the ids of the first pairs of the heads' top lists, (heads, count, 2), and how many pairs each list
        has (heads,)."""
        count = min(count, self.stored.pairs)
        ids = self.file.rows(f"{matrix}.ids", 2 * self._list_starts(lens, preset, heads), 2 * count)
        counts = self._of_lists(f"{matrix}.count", lens, preset)[heads, 0]
        return ids.reshape(len(heads), count, 2), np.minimum(counts, count)
