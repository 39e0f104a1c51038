"""One layer of an index: its lists, read from the file; a value that cannot be right is a ShardDamaged, never another
token."""

from collections.abc import Iterable, Sequence

import numpy as np
from numpy.typing import NDArray

from precompute.errors import NotFound, ShardDamaged
from precompute.files import damaged
from precompute.index.list_checks import SIGNS, fault, sound
from precompute.index.lists import Listed, Paired, Pairs, Similarity, VectorLists
from precompute.index.stored import Stored
from precompute.index.tensor_file import Array as Array
from precompute.index.tensor_file import Floats as Floats
from precompute.index.tensor_file import TensorFile
from precompute.shape import ENDS, MATRICES, PRESETS

LARGEST_COHERENCE = 1.001
NOTABLE = np.float32(0.15)  # a similarity that chance hardly ever gives; JSON calls a share of these share_15


class Shard:
    def __init__(self, file: TensorFile, stored: Stored, layer: int) -> None:
        self.file = file
        self.layer = layer
        self._stored = stored
        self._shape = stored.shape
        self._k, self._n_pairs = stored.k, stored.pairs
        self._starts = np.cumsum([0, *map(stored.shape.count, stored.kinds)])  # of the kinds among all vectors
        self._columns: dict[str, Array] = {}

    def array(self, name: str) -> Array:
        """A whole array by its name in FORMAT.md, read from the file: not checked."""
        return self.file.array(name)

    def vectors(self, which: Sequence[tuple[str, int]], lens: str) -> tuple[Array, Floats]:
        """(V, E, k) ids and scores: both lists of each of these vectors (kind, index), read and checked together."""
        shape, lens_at = self._shape, self._lens(lens)
        for kind, index in which:
            position("kind", kind, self._stored.kinds)
            self._check_range(kind, index, shape.count(kind))
        ids = np.stack([self.file.block(f"{kind}.ids", index, lens_at) for kind, index in which])
        scores: Floats = np.stack([self.file.block(f"{kind}.scores", index, lens_at) for kind, index in which])
        falling = scores * SIGNS
        if not sound(ids, falling, shape.d_vocab):
            for (kind, index), ends in zip(which, zip(ids, falling, strict=True), strict=True):
                self._check_ends(f"{kind} {index} ({lens}, ", *ends)
        return ids, scores

    def vector(self, kind: str, index: int, lens: str) -> VectorLists:
        ids, scores = self.vectors([(kind, index)], lens)
        return VectorLists(ids[0], scores[0], self.norm(kind, index), *self.coherences(kind, index, lens))

    def norm(self, kind: str, index: int) -> float:
        norm = float(self._column(f"{kind}.norm")[index])
        if not 0 <= norm < np.inf:
            raise self._damage(f"the norm of {kind} {index} is {norm}")
        return norm

    def coherences(self, kind: str, index: int, lens: str) -> list[float]:
        """The coherence of a vector's top and of its bottom."""
        return self._cosines(
            f"the coherence of {kind} {index}", self._column(f"{kind}.coherence")[index, self._lens(lens)]
        )

    def similarity(self, neuron: int, lens: str) -> Similarity:
        """Sim_k of the top of a neuron's key with the top and with the bottom of its value."""
        self._check_range("neuron", neuron, self._shape.d_mlp)
        return self._similarity("ff", neuron, lens, f"neuron {neuron}")

    def subhead_similarity(self, matrix: str, head: int, subhead: int, lens: str) -> Similarity:
        """The same of the two vectors of a subhead: v and o (`vo`), or q and k (`qk`)."""
        self._check_range("head", head, self._shape.n_heads)
        self._check_range("subhead", subhead, self._shape.d_head)
        number = head * self._shape.d_head + subhead
        return self._similarity(matrix, number, lens, f"{matrix} of head {head}, subhead {subhead},")

    def pairs(self, matrix: str, head: int, lens: str, preset: str, end: str) -> Pairs:
        at = position("end", end, ENDS)
        ids, scores, (top, _) = self.both_ends(matrix, head, lens, preset)
        entries = slice(top, None) if at else slice(top)
        return Pairs(ids[entries], scores[entries], self.pair_coherences(matrix, head, lens, preset)[at])

    def pair_coherences(self, matrix: str, head: int, lens: str, preset: str) -> list[float]:
        stored = self._column(f"{matrix}.coherence")[head, self._lens(lens), PRESETS.index(preset)]
        return self._cosines(f"the coherence of {matrix} of head {head}", stored)

    def readabilities(self, matrix: str, head: int, lens: str, preset: str) -> list[float]:
        """Of a head's top and of its bottom."""
        stored = self._column(f"{matrix}.readability")[head, self._lens(lens), PRESETS.index(preset)]
        return self._cosines(f"the readability of {matrix} of head {head}", stored)

    def both_ends(
        self, matrix: str, head: int, lens: str, preset: str, first: int | None = None
    ) -> tuple[Array, Floats, tuple[int, int]]:
        """Pairs (n, 2) and scores (n,) of top and then bottom, whole or only the first; and how many of each."""
        position("matrix", matrix, self._stored.matrices)
        self._check_range("head", head, self._shape.n_heads)
        at, what = (
            (head, self._lens(lens), position("preset", preset, PRESETS)),
            f"{matrix} of head {head}",
        )
        counts: list[int] = self._column(f"{matrix}.count")[at].tolist()
        if (longest := max(counts)) > self._n_pairs:
            raise self._damage(f"{what} claims {longest} pairs in a list of {self._n_pairs}")
        ids = self.file.block(f"{matrix}.ids", *at)  # (E, pairs, 2)
        scores: Floats = self.file.block(f"{matrix}.scores", *at)
        top, bottom = (min(count, first or count) for count in counts)
        if top == bottom:
            ids, scores = ids[:, :top], scores[:, :top]
            if sound(ids, scores * SIGNS, self._shape.d_vocab):
                return ids.reshape(-1, 2), scores.reshape(-1), (top, bottom)
        both, falling = ((part[0, :top], part[1, :bottom]) for part in (ids, scores * SIGNS))
        self._check_ends(f"{what} ({lens}, {preset}, ", both, falling)
        return np.concatenate(both), np.concatenate([scores[0, :top], scores[1, :bottom]]), (top, bottom)

    def best_pairs(self, matrix: str, head: int, lens: str, n: int) -> Array:
        """(n, 2) or fewer: the first pairs of preset `all`, top end, as they lie in the file: not checked."""
        ids, counts = self._first_pairs(matrix, lens, "all", n, [head])
        best: Array = ids[0, : counts[0]]
        return best

    def first_ids(self, kind: str, numbers: Array, lens: str, count: int, end: str = "top") -> Array:
        """(n, count): the first tokens of these vectors' lists at one end."""
        lists = (numbers * self._n_lenses + self._lens(lens)) * len(ENDS) + position("end", end, ENDS)
        starts = lists * self._k
        ids = self.file.rows(f"{kind}.ids", starts, min(count, self._k))
        wrong = (ids >= self._shape.d_vocab).any(axis=-1) | (ids[:, 1:] == ids[:, :-1]).any(axis=-1)
        for number in numbers[wrong][:1].tolist():
            self.vector(kind, number, lens)  # says what is wrong
        return ids

    def all_norms(self, kind: str) -> Floats:
        """(n,) by vector, as stored: not checked."""
        return self._column(f"{kind}.norm")

    def all_singular(self, matrix: str) -> Floats:
        """(n_heads, d_head) singular values of the heads' matrices, largest first; 0 where there is no direction."""
        position("directions", matrix, self._stored.directions)
        singular = self._column(f"{matrix}.singular")
        if not ((singular >= 0) & (singular < np.inf)).all() or np.any(singular[:, 1:] > singular[:, :-1]):
            raise self._damage(f"{matrix}.singular has values that are no singular values, largest first")
        return singular

    def base_norm(self, kind: str, index: int) -> float:
        """Of the base's vector, in an index of a difference."""
        norm = float(self.all_base_norms(kind)[index])
        if not 0 <= norm < np.inf:
            raise self._damage(f"the norm of the base's {kind} {index} is {norm}")
        return norm

    def all_base_norms(self, kind: str) -> Floats:
        """(n,) of the base's vectors, in an index of a difference, as stored: not checked."""
        return self._column(f"{kind}.base_norm")

    def all_matrix_norms(self, matrix: str) -> tuple[Floats, Floats]:
        """(n_heads,) each: of the heads' matrices and of the base's, in an index of a difference, as stored: not
        checked. They are there without pairs, too."""
        return self._column(f"{matrix}.norm"), self._column(f"{matrix}.base_norm")

    def all_coherences(self, kind: str, lens: str, end: str = "top") -> Floats:
        """(n,) of the vectors' lists at one end, as stored: not checked."""
        return self._column(f"{kind}.coherence")[:, self._lens(lens), position("end", end, ENDS)]

    def all_similarities(self, compared: str, lens: str) -> Floats:
        """(n, E) of all neurons (`ff`), or of all subheads, head after head (`vo`, `qk`), as stored: not checked."""
        return self._similarity_column(f"{compared}.similarity", lens)

    def all_shuffled(self, compared: str, lens: str) -> Floats:
        """(n, E): what similarities are where the second list is that of another, as stored: not checked."""
        return self._similarity_column(f"{compared}.shuffled", lens)

    def shuffled(self, compared: str, lens: str) -> tuple[float, float, float]:
        """What chance gives: the mean of shuffled similarities with top and with bottom, and the share of those of
        which the larger is at least NOTABLE."""
        of_all = self.all_shuffled(compared, lens)
        if not ((of_all >= 0) & (of_all <= 1)).all():
            raise self._damage(f"{compared}.shuffled has a value that is no similarity")
        top, bottom = of_all.mean(axis=0, dtype=np.float64).tolist()
        return top, bottom, float((of_all.max(axis=1) >= NOTABLE).mean())

    def all_readabilities(self, matrix: str, lens: str, preset: str) -> Floats:
        """(n_heads,) of the heads' top lists, as stored: not checked."""
        return self._column(f"{matrix}.readability")[:, self._lens(lens), PRESETS.index(preset), 0]

    def all_pair_coherences(self, matrix: str, lens: str, preset: str) -> Floats:
        """(n_heads,) of the heads' top lists, as stored: not checked."""
        return self._column(f"{matrix}.coherence")[:, self._lens(lens), PRESETS.index(preset), 0]

    def all_pair_counts(self, matrix: str) -> Array:
        """(n_heads, L, P, E): how many pairs each list has, as stored: not checked."""
        return self._column(f"{matrix}.count")

    def all_best_scores(self, matrix: str, lens: str, preset: str) -> Floats:
        """(n_heads,) of the first pair of the heads' top lists, as stored: not checked."""
        return self.file.rows(f"{matrix}.scores", self._list_starts(lens, preset, self._heads), 1)[:, 0]

    def first_pairs(self, matrix: str, lens: str, preset: str, count: int) -> tuple[Array, Floats, Array]:
        """The first pairs of every head's top list: ids (n_heads, count, 2), scores (n_heads, count), and how many
        of them there are (n_heads,), behind which both are zeros."""
        ids, counts = self._first_pairs(matrix, lens, preset, count, self._heads)
        scores = self.file.rows(f"{matrix}.scores", self._list_starts(lens, preset, self._heads), ids.shape[1])
        in_all = self._column(f"{matrix}.count")[:, self._lens(lens), PRESETS.index(preset), 0]
        for head, number in enumerate(counts.tolist()):
            right = sound(ids[head, :number], scores[head, :number], self._shape.d_vocab)
            if not right or in_all[head] > self._n_pairs:
                self.pairs(matrix, head, lens, preset, "top")  # says what is wrong, if it is
        return ids, scores, counts

    def lists_of_tokens(self, lens: str, end: str) -> NDArray[np.int64]:
        """(d_vocab,): in how many lists of vectors, of the kinds that count for hubs, each token stands."""
        return np.diff(self._token_offsets(lens, end)) - self._lists_that_do_not_count(lens, end, self._k)

    def lists_by_first_tokens(self, lens: str, count: int) -> NDArray[np.int64]:
        """(d_vocab,): in how many of the same lists, both ends, each token is among the first `count`."""
        lists = np.zeros(self._shape.d_vocab, np.int64)
        for end in ENDS:
            offsets = self._token_offsets(lens, end)
            among_first = self.file.run("inverted.rank", offsets[0], offsets[-1]) < count
            up_to = np.concatenate([[0], np.cumsum(among_first)])  # how many there are before an entry
            lists += np.diff(up_to[offsets - offsets[0]]) - self._lists_that_do_not_count(lens, end, count)
        return lists

    def _lists_that_do_not_count(self, lens: str, end: str, count: int) -> NDArray[np.int64]:
        """(d_vocab,): in how many lists of other kinds, which are inverted, too, each token is among the first."""
        d_vocab, lists = self._shape.d_vocab, np.zeros(self._shape.d_vocab, np.int64)
        for kind in self._stored.kinds:
            if kind not in self._stored.counted_kinds:
                ids = self.array(f"{kind}.ids")[self.all_norms(kind) > 0, self._lens(lens), ENDS.index(end), :count]
                if ids.max(initial=0) >= d_vocab:
                    raise self._damage(f"the lists of {kind} hold token {ids.max()} of {d_vocab}")
                lists += np.bincount(ids.ravel(), minlength=d_vocab)
        return lists

    def listed(self, token: int, lens: str, end: str) -> Listed:
        lens_at, end_at = self._lens(lens), position("end", end, ENDS)
        vector, rank = self._inverted("inverted", ("vector", "rank"), token, lens_at, end_at)
        kind = np.searchsorted(self._starts, vector, side="right") - 1
        if len(kind) and kind.max() >= len(self._stored.kinds):
            raise self._damage(f"the inverted list of token {token} points at no list")
        index = vector - self._starts[kind]
        score = np.empty(len(vector), np.float32)
        for at, name in enumerate(self._stored.kinds):
            chosen = np.flatnonzero(kind == at)
            self._check_bounds(token, name, (rank[chosen], self._k))
            entry = ((index[chosen] * self._n_lenses + lens_at) * len(ENDS) + end_at) * self._k + rank[chosen]
            score[chosen] = self._score_at(name, entry, entry, token)
        return Listed(kind, index, rank, score)

    def paired(self, token: int, lens: str, end: str) -> Paired:
        lens_at, end_at = self._lens(lens), position("end", end, ENDS)
        place, rank = self._inverted("paired", ("place", "rank"), token, lens_at, end_at)
        head, matrix, preset, side = place.reshape(-1, 4).T
        if len(matrix) and matrix.max() >= len(MATRICES):
            raise self._damage(f"the inverted pairs of token {token} point at no list")
        score = np.empty(len(rank), np.float32)
        sizes = (self._shape.n_heads, self._n_lenses, len(PRESETS), len(ENDS), self._n_pairs)
        for at, name in enumerate(MATRICES):
            chosen = np.flatnonzero(matrix == at)
            of_head, of_preset, of_side, of_rank = (column[chosen] for column in (head, preset, side, rank))
            limits = zip((of_head, of_preset, of_side, of_rank), (sizes[0], sizes[2], 2, sizes[4]), strict=True)
            self._check_bounds(token, name, *limits)
            if np.any(of_rank >= self._column(f"{name}.count")[of_head, lens_at, of_preset, end_at]):
                raise self._damage(f"an inverted list of token {token} points behind the pairs of {name}")
            lists = ((of_head.astype(np.int64) * sizes[1] + lens_at) * sizes[2] + of_preset) * sizes[3] + end_at
            entry = lists * self._n_pairs + of_rank
            score[chosen] = self._score_at(name, entry, 2 * entry + of_side, token)
        return Paired(matrix, head, side, preset, rank, score)

    def _lens(self, lens: str) -> int:
        return position("lens", lens, self._stored.lenses)

    @property
    def _n_lenses(self) -> int:
        return len(self._stored.lenses)

    @property
    def _heads(self) -> range:
        return range(self._shape.n_heads)

    def _column(self, name: str) -> Array:
        """An array with a number or two for each vector or head: read once."""
        if name not in self._columns:
            self._columns[name] = self.array(name)
        return self._columns[name]

    def _similarity_column(self, name: str, lens: str) -> Floats:
        of_all = self._column(name)
        similarities: Floats = of_all.reshape(-1, *of_all.shape[-2:])[:, self._lens(lens)]
        return similarities

    def _similarity(self, compared: str, number: int, lens: str, what: str) -> Similarity:
        position("similarity", compared, self._stored.compared)
        top, bottom = self.all_similarities(compared, lens)[number].tolist()
        if not (0 <= top <= 1 and 0 <= bottom <= 1):
            raise self._damage(f"the similarity of {what} is {top} (top) and {bottom} (bottom)")
        return Similarity(top, bottom)

    def _list_starts(self, lens: str, preset: str, heads: Sequence[int]) -> NDArray[np.int64]:
        """Where the top lists of pairs begin, counted in entries."""
        lens_at, preset_at = self._lens(lens), position("preset", preset, PRESETS)
        numbers = (np.array(heads, np.int64) * self._n_lenses + lens_at) * len(PRESETS) + preset_at
        return numbers * len(ENDS) * self._n_pairs

    def _first_pairs(
        self, matrix: str, lens: str, preset: str, count: int, heads: Sequence[int]
    ) -> tuple[Array, NDArray[np.int64]]:
        """Ids (heads, count, 2) of the top lists, and how many of them there are (heads,)."""
        count = min(count, self._n_pairs)
        ids = self.file.rows(f"{matrix}.ids", 2 * self._list_starts(lens, preset, heads), 2 * count)
        counts = self._column(f"{matrix}.count")[heads, self._lens(lens), PRESETS.index(preset), 0]
        return ids.reshape(len(heads), count, 2), np.minimum(counts, count)

    def _score_at(self, name: str, entries: Array, ids: Array, token: int) -> Array:
        """Scores at these entries of forward lists, once it is sure that the token stands there."""
        if np.any(self.file.rows(f"{name}.ids", ids, 1) != token):
            raise self._damage(f"an inverted list of token {token} points at another token in the lists of {name}")
        scores: Array = self.file.rows(f"{name}.scores", entries, 1)[:, 0]
        if not np.isfinite(scores).all():
            raise self._damage(f"an inverted list of token {token} points at a score that is no number")
        return scores

    def _check_bounds(self, token: int, name: str, *limits: tuple[Array, int]) -> None:
        if any(column.max(initial=0) >= limit for column, limit in limits):
            raise self._damage(f"an inverted list of token {token} points outside the lists of {name}")

    def _inverted(
        self, lists: str, names: tuple[str, str], token: int, lens_at: int, end_at: int
    ) -> tuple[Array, Array]:
        """What two arrays of inverted lists hold of a token."""
        self._check_range("token", token, self._shape.d_vocab)
        offsets = f"{lists}.offsets"
        at = (lens_at * len(ENDS) + end_at) * (self._shape.d_vocab + 1) + token
        first, last = np.frombuffer(self.file.read(offsets, at, at + 2), "<u4").tolist()
        total = self.file.tensors[f"{lists}.rank"].size
        if not first <= last <= total:
            raise self._damage(f"{offsets} of token {token} are {first} to {last} in {total} entries")
        one, other = (self.file.run(f"{lists}.{name}", first, last) for name in names)
        return one, other

    def _token_offsets(self, lens: str, end: str) -> NDArray[np.int64]:
        """(d_vocab + 1,): where the inverted lists of each token begin."""
        offsets = self.file.block("inverted.offsets", self._lens(lens), position("end", end, ENDS)).astype(np.int64)
        if offsets[-1] > self.file.tensors["inverted.rank"].size or np.any(offsets[1:] < offsets[:-1]):
            raise self._damage("inverted.offsets do not rise from token to token")
        return offsets

    def _check_ends(self, what: str, ids: Iterable[Array], falling: Iterable[Floats]) -> None:
        for end, listed, scores in zip(ENDS, ids, falling, strict=True):
            if said := fault(listed, scores, self._shape.d_vocab):
                raise self._damage(f"{what}{end}) {said}")

    def _cosines(self, what: str, stored: Floats) -> list[float]:
        """Mean cosines, or NaN; float32 sums may be a little beyond 1."""
        values: list[float] = stored.reshape(-1).tolist()  # of a pair list it is a single number
        for value in values:
            if abs(value) > LARGEST_COHERENCE:
                raise self._damage(f"{what} is {value}")
        return values

    def _check_range(self, what: str, number: int, count: int) -> None:
        if not 0 <= number < count:
            raise NotFound(f"{what} {number}: layer {self.layer} has {what} 0 to {count - 1}")

    def _damage(self, what: str) -> ShardDamaged:
        return damaged(self.file.path, f"is damaged: {what}")


def position(what: str, asked: str, known: Sequence[str]) -> int:
    """Where a name stands among the known ones, which is how shards number lenses, ends, presets and kinds."""
    if asked not in known:
        raise NotFound(f"{what} {asked!r}: there are {', '.join(known)}")
    return known.index(asked)
