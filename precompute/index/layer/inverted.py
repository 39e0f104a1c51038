"""Find the lists of one layer that hold a token, in the layer's file: `inverted` are the lists of vectors, `paired`
those of heads' pairs. lookup/ does so over all layers at once."""

import numpy as np
from numpy.typing import NDArray

from lexiscope.precompute.index.layer.arrays import ShardArrays
from lexiscope.precompute.index.layer.lists import Listed, Paired
from lexiscope.precompute.index.stored import position
from lexiscope.precompute.index.tensor_file import Array
from lexiscope.precompute.shape import ENDS, MATRICES, PRESETS


class InvertedReader:
    def __init__(self, arrays: ShardArrays) -> None:
        self._arrays = arrays
        self._file = arrays.file
        self._stored = arrays.stored
        self._shape = arrays.shape
        # Where each kind begins among all vectors.
        self._starts = np.cumsum([0, *map(self._shape.count, self._stored.kinds)])

    def listed(self, token: int, lens: str, end: str) -> Listed:
        lens_at, end_at = self._arrays.lens_at(lens), position("end", end, ENDS)
        vector, rank = self._inverted("inverted", ("vector", "rank"), token, lens_at, end_at)
        kind = np.searchsorted(self._starts, vector, side="right") - 1
        if len(kind) and kind.max() >= len(self._stored.kinds):
            raise self._arrays.damage(f"the inverted list of token {token} points at no list")
        index = vector - self._starts[kind]
        score = np.empty(len(vector), np.float32)
        for at, name in enumerate(self._stored.kinds):
            chosen = np.flatnonzero(kind == at)
            self._check_bounds(token, name, (rank[chosen], self._stored.k))
            lists = (index[chosen] * len(self._stored.lenses) + lens_at) * len(ENDS) + end_at
            entry = lists * self._stored.k + rank[chosen]
            score[chosen] = self._score_at(name, entry, entry, token)
        return Listed(kind, index, rank, score)

    def paired(self, token: int, lens: str, end: str) -> Paired:
        lens_at, end_at = self._arrays.lens_at(lens), position("end", end, ENDS)
        place, rank = self._inverted("paired", ("place", "rank"), token, lens_at, end_at)
        head, matrix, preset, side = place.reshape(-1, 4).T
        if len(matrix) and matrix.max() >= len(MATRICES):
            raise self._arrays.damage(f"the inverted pairs of token {token} point at no list")
        score = np.empty(len(rank), np.float32)
        sizes = (self._shape.n_heads, len(self._stored.lenses), len(PRESETS), len(ENDS), self._stored.pairs)
        for at, name in enumerate(MATRICES):
            chosen = np.flatnonzero(matrix == at)
            of_head, of_preset, of_side, of_rank = (column[chosen] for column in (head, preset, side, rank))
            limits = zip((of_head, of_preset, of_side, of_rank), (sizes[0], sizes[2], 2, sizes[4]), strict=True)
            self._check_bounds(token, name, *limits)
            if np.any(of_rank >= self._arrays.column(f"{name}.count")[of_head, lens_at, of_preset, end_at]):
                raise self._arrays.damage(f"an inverted list of token {token} points behind the pairs of {name}")
            lists = ((of_head.astype(np.int64) * sizes[1] + lens_at) * sizes[2] + of_preset) * sizes[3] + end_at
            entry = lists * self._stored.pairs + of_rank
            score[chosen] = self._score_at(name, entry, 2 * entry + of_side, token)
        return Paired(matrix, head, side, preset, rank, score)

    def lists_of_tokens(self, lens: str, end: str) -> NDArray[np.int64]:
        """Return in how many lists of vectors, of the kinds that count for hubs, each token stands: (d_vocab,)."""
        return np.diff(self._token_offsets(lens, end)) - self._lists_that_do_not_count(lens, end, self._stored.k)

    def lists_by_first_tokens(self, lens: str, count: int) -> NDArray[np.int64]:
        """Return in how many of the same lists, both ends, each token is among the first `count`: (d_vocab,)."""
        lists = np.zeros(self._shape.d_vocab, np.int64)
        for end in ENDS:
            offsets = self._token_offsets(lens, end)
            among_first = self._file.run("inverted.rank", offsets[0], offsets[-1]) < count
            # How many entries among the first there are before each entry.
            up_to = np.concatenate([[0], np.cumsum(among_first)])
            lists += np.diff(up_to[offsets - offsets[0]]) - self._lists_that_do_not_count(lens, end, count)
        return lists

    def _lists_that_do_not_count(self, lens: str, end: str, count: int) -> NDArray[np.int64]:
        """Return in how many lists of other kinds, which are inverted, too, each token is among the first:
        (d_vocab,)."""
        d_vocab, lists = self._shape.d_vocab, np.zeros(self._shape.d_vocab, np.int64)
        for kind in self._stored.kinds:
            if kind not in self._stored.counted_kinds:
                with_norm = self._arrays.column(f"{kind}.norm") > 0
                ids = self._file.array(f"{kind}.ids")[with_norm, self._arrays.lens_at(lens), ENDS.index(end), :count]
                if ids.max(initial=0) >= d_vocab:
                    raise self._arrays.damage(f"the lists of {kind} hold token {ids.max()} of {d_vocab}")
                lists += np.bincount(ids.ravel(), minlength=d_vocab)
        return lists

    def _inverted(
        self, lists: str, names: tuple[str, str], token: int, lens_at: int, end_at: int
    ) -> tuple[Array, Array]:
        """Return what two arrays of inverted lists hold of a token."""
        self._arrays.check_range("token", token, self._shape.d_vocab)
        offsets = f"{lists}.offsets"
        at = (lens_at * len(ENDS) + end_at) * (self._shape.d_vocab + 1) + token
        first, last = np.frombuffer(self._file.read(offsets, at, at + 2), "<u4").tolist()
        total = self._file.tensors[f"{lists}.rank"].size
        if not first <= last <= total:
            raise self._arrays.damage(f"{offsets} of token {token} are {first} to {last} in {total} entries")
        one, other = (self._file.run(f"{lists}.{name}", first, last) for name in names)
        return one, other

    def _token_offsets(self, lens: str, end: str) -> NDArray[np.int64]:
        """Return where the inverted lists of each token begin: (d_vocab + 1,)."""
        at = self._arrays.lens_at(lens), position("end", end, ENDS)
        offsets = self._file.block("inverted.offsets", *at).astype(np.int64)
        if offsets[-1] > self._file.tensors["inverted.rank"].size or np.any(offsets[1:] < offsets[:-1]):
            raise self._arrays.damage("inverted.offsets do not rise from token to token")
        return offsets

    def _score_at(self, name: str, entries: Array, ids: Array, token: int) -> Array:
        """Return the scores at these entries of forward lists; raise ShardDamaged unless the token stands there."""
        if np.any(self._file.rows(f"{name}.ids", ids, 1) != token):
            raise self._arrays.damage(
                f"an inverted list of token {token} points at another token in the lists of {name}"
            )
        scores: Array = self._file.rows(f"{name}.scores", entries, 1)[:, 0]
        if not np.isfinite(scores).all():
            raise self._arrays.damage(f"an inverted list of token {token} points at a score that is no number")
        return scores

    def _check_bounds(self, token: int, name: str, *limits: tuple[Array, int]) -> None:
        if any(column.max(initial=0) >= limit for column, limit in limits):
            raise self._arrays.damage(f"an inverted list of token {token} points outside the lists of {name}")
