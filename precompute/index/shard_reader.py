"""One layer of an index, read without copying; a value that cannot be right is a ShardDamaged, never another token.
Which files there are is for index.py, which arrays for layout.py."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Self, TypeAlias

import numpy as np
from numpy.typing import NDArray

from precompute.errors import NotFound, ShardDamaged
from precompute.files import damaged
from precompute.index.container import Container
from precompute.index.layout import check_arrays, shard_layout
from precompute.index.list_checks import SIGNS, fault, sound
from precompute.index.manifest import Manifest
from precompute.shape import ENDS, LENSES, MATRICES, PRESETS, Shape

Array: TypeAlias = NDArray[Any]
Floats: TypeAlias = NDArray[np.float32]

LARGEST_COHERENCE = 1.001


@dataclass(frozen=True, slots=True, eq=False)
class VectorLists:
    ids: Array  # (E, k): both ends
    scores: Floats
    norm: float
    coherence_top: float  # NaN where too few tokens are left to compare
    coherence_bottom: float

    @property
    def top_ids(self) -> Array:
        found: Array = self.ids[0]
        return found

    @property
    def top_scores(self) -> Floats:
        found: Floats = self.scores[0]
        return found

    @property
    def bottom_ids(self) -> Array:
        found: Array = self.ids[1]
        return found

    @property
    def bottom_scores(self) -> Floats:
        found: Floats = self.scores[1]
        return found


@dataclass(frozen=True, slots=True, eq=False)
class Pairs:
    ids: Array  # (n, 2): from, to
    scores: Floats  # (n,)
    coherence: float


@dataclass(frozen=True, slots=True, eq=False)
class Listed:
    """The vectors that list a token, best rank first; `kind` numbers Shape.kinds."""

    kind: Array
    index: Array
    rank: Array
    score: Floats


@dataclass(frozen=True, slots=True, eq=False)
class Paired:
    """The head pairs that hold a token, best rank first; `matrix` and `preset` number MATRICES and PRESETS,
    `side` is 0 where the token is `from` and 1 where it is `to`."""

    matrix: Array
    head: Array
    side: Array
    preset: Array
    rank: Array
    score: Floats


class Shard:
    def __init__(self, container: Container, shape: Shape, layer: int) -> None:
        self.layer = layer
        self._container = container
        self._shape = shape
        counts = [shape.count(kind) for kind in shape.kinds]
        self._ends = container.arrays["ff_key.ids"].shape[2:]  # (E, k)
        self._starts = np.cumsum([0, *counts])  # where each kind begins among all vectors of the layer

    @classmethod
    def of(cls, container: Container, manifest: Manifest, layer: int) -> Self:
        """ShardDamaged unless this container is this layer of this build, with the arrays it must have."""
        about = {"model": manifest.model, "build": manifest.build, "layer": layer}
        if container.about != about:
            found = container.about.get("layer")
            if isinstance(found, int) and container.about == about | {"layer": found}:
                raise damaged(container.path, f"is layer {found}, not layer {layer}")
            raise damaged(container.path, f"belongs to another build: {dict(container.about)!a} instead of {about}")
        check_arrays(container, shard_layout(manifest.shape, manifest.k, manifest.pairs))
        _check_bounds(container)
        return cls(container, manifest.shape, layer)

    def array(self, name: str) -> Array:
        """A whole array by its name in FORMAT.md, as it lies in the file: not checked."""
        return self._container.arrays[name]

    def part(self, name: str, first: int, last: int) -> bytes:
        """Entries of an array as they lie in the file, counted through all its axes: not checked."""
        return self.array(name).reshape(-1)[first:last].tobytes()

    def rows(self, names: Sequence[str], which: Array, numbers: Array, width: int) -> Array:
        """(n, width): single rows, each of one of these arrays, seen as rows of this many entries: not checked."""
        found = np.empty((len(numbers), width), self.array(names[0]).dtype)
        for at, name in enumerate(names):
            if len(mine := np.flatnonzero(which == at)):
                found[mine] = np.asarray(self.array(name)).reshape(-1, width)[numbers[mine]]
        return found

    def records(self, names: Sequence[str], numbers: Sequence[int], shape: tuple[int, ...]) -> Array:
        """(names, *shape): one part of each array, seen as a row of parts of this shape: not checked."""
        found = [self.array(name).reshape(-1, *shape)[at] for name, at in zip(names, numbers, strict=True)]
        return found[0][None] if len(found) == 1 else np.stack(found)

    def vectors(self, places: Sequence[tuple[str, int]], lens: str) -> tuple[Array, Floats]:
        """(V, E, k) ids and scores: both lists of each of these vectors (kind, index), read and checked together."""
        shape, lens_at = self._shape, position("lens", lens, LENSES)
        for kind, index in places:
            position("kind", kind, shape.kinds)
            self._check_range(kind, index, shape.count(kind))
        numbers = [index * len(LENSES) + lens_at for _, index in places]
        ids = self.records([f"{kind}.ids" for kind, _ in places], numbers, self._ends)
        scores: Floats = self.records([f"{kind}.scores" for kind, _ in places], numbers, self._ends)
        falling = scores * SIGNS
        if not sound(ids, falling, shape.d_vocab):
            for (kind, index), ends in zip(places, zip(ids, falling, strict=True), strict=True):
                self._check_ends(f"{kind} {index} ({lens}, ", *ends)
        return ids, scores

    def vector(self, kind: str, index: int, lens: str) -> VectorLists:
        ids, scores = self.vectors([(kind, index)], lens)
        return VectorLists(ids[0], scores[0], self.norm(kind, index), *self.coherences(kind, index, lens))

    def norm(self, kind: str, index: int) -> float:
        norm = float(self.array(f"{kind}.norm")[index])
        if not 0 <= norm < np.inf:
            raise self._damage(f"the norm of {kind} {index} is {norm}")
        return norm

    def coherences(self, kind: str, index: int, lens: str) -> list[float]:
        """Of a vector's top and bottom."""
        return self._coherences(f"{kind} {index}", self.array(f"{kind}.coherence")[index, LENSES.index(lens)])

    def similarity(self, neuron: int, lens: str) -> float:
        """Sim_k of a neuron's key and value."""
        self._check_range("neuron", neuron, self._shape.d_mlp)
        value = float(self.array("ff.similarity")[neuron, position("lens", lens, LENSES)])
        if not 0 <= value <= 1:
            raise self._damage(f"the similarity of neuron {neuron} is {value}")
        return value

    def pairs(self, matrix: str, head: int, lens: str, preset: str, end: str) -> Pairs:
        at = position("end", end, ENDS)
        ids, scores, (top, _) = self.both_ends(matrix, head, lens, preset)
        part = slice(top, None) if at else slice(top)
        return Pairs(ids[part], scores[part], self.pair_coherences(matrix, head, lens, preset)[at])

    def pair_coherences(self, matrix: str, head: int, lens: str, preset: str) -> list[float]:
        stored = self.array(f"{matrix}.coherence")[head, LENSES.index(lens), PRESETS.index(preset)]
        return self._coherences(f"{matrix} of head {head}", stored)

    def both_ends(
        self, matrix: str, head: int, lens: str, preset: str, first: int | None = None
    ) -> tuple[Array, Floats, tuple[int, int]]:
        """Pairs (n, 2) and scores (n,) of top and then bottom, whole or only the first; and how many of each."""
        name = MATRICES[position("matrix", matrix, MATRICES)]
        self._check_range("head", head, self._shape.n_heads)
        at, what = (head, position("lens", lens, LENSES), position("preset", preset, PRESETS)), f"{name} of head {head}"
        number, n = [(at[0] * len(LENSES) + at[1]) * len(PRESETS) + at[2]], self.array(f"{name}.scores").shape[-1]
        counts: list[int] = self.array(f"{name}.count")[at].tolist()
        if (longest := max(counts)) > n:
            raise self._damage(f"{what} claims {longest} pairs in a list of {n}")
        ids = self.records([f"{name}.ids"], number, (len(ENDS), n, 2))[0]
        scores: Floats = self.records([f"{name}.scores"], number, (len(ENDS), n))[0]
        top, bottom = (min(count, first or count) for count in counts)
        if top == bottom:
            ids, scores = ids[:, :top], scores[:, :top]
            if sound(ids, scores * SIGNS, self._shape.d_vocab):
                return ids.reshape(-1, 2), scores.reshape(-1), (top, bottom)
        both, falling = ((part[0, :top], part[1, :bottom]) for part in (ids, scores * SIGNS))
        self._check_ends(f"{what} ({lens}, {preset}, ", both, falling)
        return np.concatenate(both), np.concatenate([scores[0, :top], scores[1, :bottom]]), (top, bottom)

    def first_ids(self, kind: str, numbers: Array, lens: str, count: int) -> Array:
        """(n, count): the first tokens of these vectors' top lists."""
        ids: Array = self.array(f"{kind}.ids")[numbers, position("lens", lens, LENSES), 0, :count]
        wrong = (ids >= self._shape.d_vocab).any(axis=-1) | (ids[:, 1:] == ids[:, :-1]).any(axis=-1)
        for number in numbers[wrong][:1].tolist():
            self.vector(kind, number, lens)  # says what is wrong
        return ids

    def all_norms(self, kind: str) -> Floats:
        """(n,) by vector, as stored: not checked."""
        return np.asarray(self.array(f"{kind}.norm"))

    def all_coherences(self, kind: str, lens: str) -> Floats:
        """(n,) of the vectors' top lists, as stored: not checked."""
        column: Floats = self.array(f"{kind}.coherence")[:, LENSES.index(lens), 0]
        return column

    def all_similarities(self, lens: str) -> Floats:
        """(d_mlp,) as stored: not checked."""
        column: Floats = self.array("ff.similarity")[:, LENSES.index(lens)]
        return column

    def all_pair_coherences(self, matrix: str, lens: str, preset: str) -> Floats:
        """(n_heads,) of the heads' top lists, as stored: not checked."""
        column: Floats = self.array(f"{matrix}.coherence")[:, LENSES.index(lens), PRESETS.index(preset), 0]
        return column

    def all_best_scores(self, matrix: str, lens: str, preset: str) -> Floats:
        """(n_heads,) of the first pair of the heads' top lists, as stored: not checked."""
        column: Floats = self.array(f"{matrix}.scores")[:, LENSES.index(lens), PRESETS.index(preset), 0, 0]
        return column

    def first_pairs(self, matrix: str, lens: str, preset: str, count: int) -> tuple[Array, Floats, Array]:
        """Of every head the first pairs of its top list: ids (n_heads, count, 2), scores (n_heads, count), and how many
        of them there are (n_heads,), behind which both are zeros."""
        at = LENSES.index(lens), PRESETS.index(preset), 0
        ids, scores = (
            np.stack([self.array(f"{matrix}.{part}")[head, *at, :count] for head in range(self._shape.n_heads)])
            for part in ("ids", "scores")
        )
        counts: Array = self.array(f"{matrix}.count")[:, *at]
        for head, number in enumerate(counts.tolist()):
            shown = slice(min(number, count))
            if number > self.n_pairs or not sound(ids[head, shown], scores[head, shown], self._shape.d_vocab):
                self.pairs(matrix, head, lens, preset, "top")  # says what is wrong, if it is
        return ids, scores, np.minimum(counts, count)

    def lists_of_tokens(self, lens: str, end: str) -> Array:
        """(d_vocab,): in how many lists of vectors each token stands."""
        offsets: Array = self.array("inverted.offsets")[LENSES.index(lens), ENDS.index(end)]
        return np.diff(offsets.astype(np.int64))

    @property
    def n_pairs(self) -> int:
        """How many pairs a list has room for."""
        return int(self.array("vo.scores").shape[-1])

    def best_pairs(self, matrix: str, head: int, lens: str, n: int) -> Array:
        """(n, 2) or fewer: the first pairs of preset `all`, top end, as they lie in the file: not checked."""
        at = head, position("lens", lens, LENSES), PRESETS.index("all"), ENDS.index("top")
        count = int(self.array(f"{matrix}.count")[at])
        best: Array = self.array(f"{matrix}.ids")[(*at, slice(min(n, count)))]
        return best

    def listed(self, token: int, lens: str, end: str) -> Listed:
        lens_at, end_at = position("lens", lens, LENSES), position("end", end, ENDS)
        part = self._slice("inverted.offsets", token, lens_at, end_at, len(self.array("inverted.rank")))
        vector, rank = self.array("inverted.vector")[part], self.array("inverted.rank")[part]
        kind = np.searchsorted(self._starts, vector, side="right") - 1
        index = vector - self._starts[np.minimum(kind, len(self._shape.kinds) - 1)]
        score = np.full(len(vector), np.nan, np.float32)
        for at, name in enumerate(self._shape.kinds):
            chosen = np.flatnonzero(kind == at)
            places = index[chosen], lens_at, end_at, rank[chosen]
            score[chosen] = self._score_at(name, places, token)
        if not np.isfinite(score).all():
            raise self._damage(f"the inverted list of token {token} points at no list")
        return Listed(kind, index, rank, score)

    def paired(self, token: int, lens: str, end: str) -> Paired:
        lens_at, end_at = position("lens", lens, LENSES), position("end", end, ENDS)
        part = self._slice("paired.offsets", token, lens_at, end_at, len(self.array("paired.rank")))
        head, matrix, preset, side = self.array("paired.place")[part].T
        rank = self.array("paired.rank")[part]
        score = np.full(len(rank), np.nan, np.float32)
        for at, name in enumerate(MATRICES):
            chosen = np.flatnonzero(matrix == at)
            places = head[chosen], lens_at, preset[chosen], end_at, rank[chosen]
            score[chosen] = self._score_at(name, places, token, side[chosen])
            if np.any(rank[chosen] >= self.array(f"{name}.count")[places[:-1]]):
                raise self._damage(f"an inverted list of token {token} points behind the pairs of {name}")
        if not np.isfinite(score).all():
            raise self._damage(f"the inverted pairs of token {token} point at no list")
        return Paired(matrix, head, side, preset, rank, score)

    def _score_at(self, name: str, places: tuple[Any, ...], token: int, *side: Array) -> Floats:
        """Scores at places in the forward lists, once it is sure that the token stands there."""
        try:
            found: Array = self.array(f"{name}.ids")[(*places, *side)]
            scores: Floats = self.array(f"{name}.scores")[places]
        except IndexError:
            raise self._damage(f"an inverted list of token {token} points outside the lists of {name}") from None
        if np.any(found != token):
            raise self._damage(f"an inverted list of token {token} points at another token in the lists of {name}")
        return scores

    def _slice(self, name: str, token: int, lens_at: int, end_at: int, total: int) -> slice:
        self._check_range("token", token, self._shape.d_vocab)
        first, last = (int(offset) for offset in self.array(name)[lens_at, end_at, token : token + 2])
        if not first <= last <= total:
            raise self._damage(f"{name} of token {token} are {first} to {last} in {total} entries")
        return slice(first, last)

    def _check_ends(self, what: str, ids: Iterable[Array], falling: Iterable[Floats]) -> None:
        for end, listed, scores in zip(ENDS, ids, falling, strict=True):
            if said := fault(listed, scores, self._shape.d_vocab):
                raise self._damage(f"{what}{end}) {said}")

    def _coherences(self, what: str, stored: Floats) -> list[float]:
        """Mean cosines, or NaN; float32 sums may be a little beyond 1."""
        values: list[float] = stored.reshape(-1).tolist()  # of a pair list it is a single number
        for value in values:
            if abs(value) > LARGEST_COHERENCE:
                raise self._damage(f"the coherence of {what} is {value}")
        return values

    def _check_range(self, what: str, number: int, count: int) -> None:
        if not 0 <= number < count:
            raise NotFound(f"{what} {number}: layer {self.layer} has {what} 0 to {count - 1}")

    def _damage(self, what: str) -> ShardDamaged:
        return damaged(self._container.path, f"is damaged: {what}")


def _check_bounds(container: Container) -> None:
    """ShardDamaged unless the inverted lists of each lens and end begin where the ones before end, and end with their
    arrays: a few numbers, which are zeros where a file has its length and its header but not what was written."""
    for lists, others in (("inverted", "vector"), ("paired", "place")):
        rank, other = (len(container.arrays[f"{lists}.{part}"]) for part in ("rank", others))
        bounds = container.arrays[f"{lists}.offsets"][:, :, [0, -1]].ravel().tolist()  # first and last, in turn
        if rank != other or [0, *bounds[1::2]] != [*bounds[::2], rank]:
            raise damaged(container.path, f"is damaged: {lists}.offsets do not fit its {rank} entries")


def position(what: str, asked: str, known: Sequence[str]) -> int:
    """Where a name stands among the known ones, which is how shards number lenses, ends, presets and kinds."""
    if asked not in known:
        raise NotFound(f"{what} {asked!r}: there are {', '.join(known)}")
    return known.index(asked)
