"""Checks an index without trusting the code that made it: checksums, and lists derived anew by brute force in float64.

Scores may differ from the brute-force ones in the last bit, where the order of a float64 sum decides a rounding.
"""

import secrets
from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from precompute.architectures.base import Model
from precompute.embedding import NO_DIRECTION, Float64
from precompute.errors import LexiscopeError, ShardDamaged
from precompute.files import sha256_of
from precompute.index import Index
from precompute.manifest import TOKENIZER
from precompute.shape import ENDS, LENSES, MATRICES, PRESETS, SIDES
from precompute.tokens import distinct_classes, whole_words

LAST_BIT = 4e-7  # relative
ROWS = 32  # source tokens whose whole row of a head's matrix is computed

Result = tuple[str, LexiscopeError | None]  # what was checked, and what is wrong with it


def check_sums(index: Index) -> Iterator[Result]:
    """Every file of the index against the manifest."""
    manifest = index.manifest
    entries = [manifest.vocabulary, *manifest.shards.values()]
    for entry in entries:
        if entry is not None:
            try:
                entry.check_sum(index.folder)
                yield entry.file, None
            except LexiscopeError as fault:
                yield entry.file, fault
    try:
        same = sha256_of(index.folder / TOKENIZER) == manifest.tokenizer_sha256
    except OSError:
        same = False
    remedy = f"delete {index.folder} and run `lexiscope precompute {manifest.model}` again"
    yield TOKENIZER, None if same else ShardDamaged(f"{index.folder / TOKENIZER} is not the model's tokenizer: {remedy}")


def check_sample(index: Index, model: Model, sample: int, seed: int) -> Iterator[Result]:
    """Some vectors of every kind, and one head of each matrix, in every layer that can be read."""
    if model.checkpoint.weights_hash() != index.manifest.weights_sha256:
        yield "weights", ShardDamaged(
            f"{model.checkpoint.source} holds other weights than the index was made from: "
            f"`lexiscope precompute {index.manifest.model} --force` rebuilds it"
        )
        return
    rng = np.random.default_rng(seed)
    brute = BruteForce(model, [index.tokens.raw(t) for t in range(model.shape.d_vocab)])
    for layer in index.layers:
        for kind in model.shape.kinds:
            numbers = np.sort(rng.choice(model.shape.count(kind), min(sample, model.shape.count(kind)), replace=False))
            fault = _check_vectors(index, brute, layer, kind, numbers)
            yield f"layer {layer} {kind} {', '.join(map(str, numbers))}", fault
        for matrix in MATRICES:
            head = int(rng.integers(model.shape.n_heads))
            rows = rng.choice(model.shape.d_vocab, min(ROWS, model.shape.d_vocab), replace=False)
            yield f"layer {layer} {matrix} head {head}", _check_pairs(index, brute, layer, matrix, head, rows)


def new_seed() -> int:
    return secrets.randbelow(1 << 31)


class BruteForce:
    """All scores of a vector, or of a row of a head's matrix, straight from the weights."""

    def __init__(self, model: Model, tokens: list[bytes]) -> None:
        self.model = model
        self.surface, self.words = distinct_classes(tokens), whole_words(tokens)
        self._lensed = {
            (side, lens): _lensed(W.numpy().astype(np.float64), lens)
            for side, W in ({"reads": model.W_E} | ({} if model.shape.tied else {"writes": model.W_U})).items()
            for lens in LENSES
        }

    def embedding(self, kind: str, lens: str) -> Float64:
        return self._lensed["reads" if self.model.shape.tied else SIDES[kind], lens]

    def vector(self, layer: int, kind: str, index: int, lens: str) -> Float64:
        v = self.model.vectors(layer, kind)[index].numpy().astype(np.float64)
        return self.embedding(kind, lens) @ v

    def rows(self, layer: int, matrix: str, head: int, lens: str, tokens: NDArray[np.int64]) -> Float64:
        """(len(tokens), d_vocab)"""
        left, right = ("w_v", "w_o") if matrix == "vo" else ("w_q", "w_k")
        W_left, W_right = (factor[head].numpy().astype(np.float64) for factor in self.model.factors(layer, matrix))
        return (self.embedding(left, lens)[tokens] @ W_left) @ (W_right @ self.embedding(right, lens).T)

    def allowed(self, preset: str, tokens: NDArray[np.int64]) -> NDArray[np.bool_]:
        distinct = self.surface[tokens][:, None] != self.surface
        words = self.words[tokens][:, None] & self.words
        return {"all": np.ones_like(distinct), "distinct": distinct, "words": distinct & words}[preset]


def _lensed(W: Float64, lens: str) -> Float64:
    if lens == "dot":
        return W
    mean = W.mean(axis=0)
    centred = W - mean
    norm = np.linalg.norm(centred, axis=1, keepdims=True)
    directionless = norm <= NO_DIRECTION * (np.linalg.norm(W, axis=1, keepdims=True) + np.linalg.norm(mean))
    return np.divide(centred, norm, out=np.zeros_like(centred), where=~directionless)


def _check_vectors(
    index: Index, brute: BruteForce, layer: int, kind: str, numbers: NDArray[np.int64]
) -> LexiscopeError | None:
    for number in numbers.tolist():
        for lens in LENSES:
            lists = index.shard(layer).vector(kind, number, lens)
            scores = brute.vector(layer, kind, number, lens)
            size = float(np.abs(scores).max())
            for end, ids, stored in (
                (0, lists.top_ids, lists.top_scores),
                (1, lists.bottom_ids, lists.bottom_scores),
            ):
                best = np.sort(scores)[:: 1 if end else -1][: len(ids)]
                if not (_close(scores[ids], stored, size) and _close(best, stored, size)) or len(set(ids.tolist())) < len(ids):
                    return _differs(index, layer, f"{kind} {number} ({lens}, {ENDS[end]})")
    return None


def _check_pairs(
    index: Index, brute: BruteForce, layer: int, matrix: str, head: int, rows: NDArray[np.int64]
) -> LexiscopeError | None:
    for lens in LENSES:
        row_scores = brute.rows(layer, matrix, head, lens, rows)
        for preset in PRESETS:
            allowed = brute.allowed(preset, rows)
            for end, name in enumerate(ENDS):
                stored = index.shard(layer).pairs(matrix, head, lens, preset, name)
                sign = 1 - 2 * end
                pairs = stored.ids.astype(np.int64)
                tokens = np.unique(pairs[:, 0])
                listed = brute.rows(layer, matrix, head, lens, tokens)[np.searchsorted(tokens, pairs[:, 0]), pairs[:, 1]]
                size = float(np.abs(row_scores).max(initial=0)) + float(np.abs(listed).max(initial=0))
                full = len(pairs) == index.manifest.pairs
                floor = sign * float(stored.scores[-1]) + LAST_BIT * size if full else -np.inf
                missing = (sign * row_scores > floor) & allowed
                for at, token in enumerate(rows):
                    missing[at, pairs[pairs[:, 0] == token, 1]] = False
                if not _close(listed, stored.scores, size) or missing.any():
                    return _differs(index, layer, f"{matrix} of head {head} ({lens}, {preset}, {name})")
    return None


def _close(exact: Float64, stored: NDArray[np.float32], size: float) -> bool:
    return exact.shape == stored.shape and bool((np.abs(exact - stored) <= LAST_BIT * np.abs(exact) + 1e-12 * size).all())


def _differs(index: Index, layer: int, what: str) -> ShardDamaged:
    return ShardDamaged(
        f"layer {layer}: {what} is not what the weights give: delete {index.folder / index.manifest.shards[layer].file} "
        f"and run `lexiscope precompute {index.manifest.model}` again"
    )
