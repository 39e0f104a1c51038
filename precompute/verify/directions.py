"""Check the directions of a head (the singular vectors of its matrix) by computing them anew with numpy: their singular
values, signs and lists.

Two singular vectors whose values are nearly equal are hardly determined by the weights: a change of the matrix by e,
such as rounding, turns them by e / gap, where gap is the distance to the next singular value. Scores may differ by as
much. If that is more than DOUBTFUL, lists are not compared, and `doubtful` says so.
"""

from dataclasses import dataclass

import numpy as np

from lexiscope.precompute.index.index import Index
from lexiscope.precompute.verify.brute_force import BruteForce, Float64, Ids
from lexiscope.precompute.verify.brute_lists import SMALLEST_FLOAT32, Hubs, ends_of, lists_error

DIRECTIONS = {"vo": ("vo_in", "vo_out"), "qk": ("qk_query", "qk_key")}
DOUBTFUL = 1e-5  # the most that rounding may turn a direction
UNIT_ERROR = 2e-7  # error of a vector of length one, rounded to float32
# Share of the largest singular value: smaller ones have no direction.
LEAST_SINGULAR_SHARE = float(np.finfo(np.float32).eps)
EQUAL = 1e-12  # relative difference of scores that tie


@dataclass(frozen=True)
class Decomposed:
    """The singular vectors of a head's matrix; their signs are not determined yet."""

    left: Float64  # (d, d_model)
    right: Float64  # (d, d_model)
    sigma: Float64  # (d,)
    rounding: float  # error of singular values by rounding
    turned: Float64  # (d,) how far rounding may have turned each

    def doubtful(self, number: int) -> bool:
        return bool(self.turned[number] > DOUBTFUL) if number < len(self.sigma) else False


def decompose(brute: BruteForce, layer: int, matrix: str, head: int) -> Decomposed:
    """Decompose a head's matrix by two thin singular value decompositions: of its left factor, L = U S Vᵀ, and then of
    (S Vᵀ) R."""
    left, right = (factor[head].numpy().astype(np.float64) for factor in brute.model.factors(layer, matrix))
    U, S, Vh = np.linalg.svd(left, full_matrices=False)  # left is (d_model, d), right (d, d_model)
    inner, sigma, outs = np.linalg.svd((S[:, None] * Vh) @ right, full_matrices=False)
    rounding = 32 * len(sigma) * np.finfo(np.float64).eps * float(np.linalg.norm(left) * np.linalg.norm(right))
    beside = np.concatenate([[np.inf], sigma, [0.0]])
    gaps = np.minimum(beside[:-2] - sigma, sigma - beside[2:])
    turned = np.divide(rounding, gaps, out=np.full_like(gaps, np.inf), where=gaps > 0)
    return Decomposed((U @ inner).T, outs, sigma, rounding, turned)


def doubtful(brute: BruteForce, layer: int, matrix: str, head: int, numbers: Ids) -> str:
    """Return a message that names those of these directions whose lists are not compared, because rounding may have
    turned them."""
    svd = decompose(brute, layer, matrix, head)
    count = sum(svd.doubtful(number) and svd.sigma[number] > svd.rounding for number in numbers.tolist())
    return f" ({count} with nearly equal singular values, of which only these)" if count else ""


def directions_error(
    index: Index, layer: int, brute: BruteForce, matrix: str, head: int, numbers: Ids, hubs: Hubs | None
) -> str | None:
    """Say what is wrong with these directions of a head; return None if nothing is."""
    svd, shard, d_head = decompose(brute, layer, matrix, head), index.shard(layer), index.shape.d_head
    singular = shard.heads.all_singular(matrix)[head].astype(np.float64)
    sigma = np.zeros(d_head)
    sigma[: len(svd.sigma)] = svd.sigma[:d_head]
    kinds = [kind for kind in DIRECTIONS[matrix] if kind in index.stored.kinds]
    for number in numbers.tolist():
        what, row = f"direction {number} of {matrix} of head {head}", head * d_head + number
        norms = {float(shard.norm(kind, row)) for kind in kinds}
        least = LEAST_SINGULAR_SHARE * sigma[0]
        if norms == {0.0} and singular[number] == 0:
            if sigma[number] > 2 * least + svd.rounding:
                return f"{what}, of which there is none,"
            if any(not _is_empty(index, layer, kind, row) for kind in kinds):
                return f"the lists of {what}, of which there is none,"
            continue
        if any(abs(norm - 1) > UNIT_ERROR for norm in norms):
            return f"the norm of {what}"
        far = abs(singular[number] - sigma[number])
        if far > UNIT_ERROR * sigma[number] + svd.rounding + SMALLEST_FLOAT32 or sigma[number] < least / 2:
            return f"the singular value of {what}"
        if not svd.doubtful(number) and (wrong := _lists_error(index, layer, brute, svd, kinds, row, hubs)):
            return f"{what}, {wrong}"
    return None


def _lists_error(
    index: Index, layer: int, brute: BruteForce, svd: Decomposed, kinds: list[str], row: int, hubs: Hubs | None
) -> str | None:
    """Say what is wrong with the lists of a direction, whose sign is the one that docs/format.md defines or, if
    rounding decides the sign, either; return None if nothing is."""
    number, matrix = row % index.shape.d_head, kinds[0][:2]
    off = UNIT_ERROR + 4 * float(svd.turned[number])
    W = brute.embedding(DIRECTIONS[matrix][1], "dot")
    scores, longest = W @ svd.right[number], float(np.linalg.norm(W, axis=1).max(initial=0))
    largest = float(np.abs(scores).max())
    first = scores[np.flatnonzero(np.abs(scores) >= (1 - EQUAL) * largest)[0]]
    signs = [-1.0 if first < 0 else 1.0]
    if scores.max() + scores.min() <= 4 * off * longest and scores.max() + scores.min() >= -4 * off * longest:
        signs = [1.0, -1.0]
    wrong = None
    for sign in signs:
        sides = {DIRECTIONS[matrix][0]: svd.left[number], DIRECTIONS[matrix][1]: svd.right[number]}
        wrong = None
        for kind in kinds:
            wrong = wrong or _vector_error(index, layer, brute, kind, row, sign * sides[kind], off, hubs)
        if wrong is None:
            return None
    return wrong


def _vector_error(
    index: Index, layer: int, brute: BruteForce, kind: str, row: int, vector: Float64, off: float, hubs: Hubs | None
) -> str | None:
    for lens_at, lens in enumerate(index.stored.lenses):
        E = brute.embedding(kind, lens)
        scores = E @ vector  # (d_vocab,)
        most = off * float(np.linalg.norm(E, axis=1).max(initial=0))
        left_out = None if hubs is None else hubs[lens_at]
        lists, directions = index.shard(layer).vector(kind, row, lens), brute.embedding(kind, "cosine")
        if wrong := lists_error(kind, lens, lists, scores, most, left_out, directions):
            return wrong
    return None


def _is_empty(index: Index, layer: int, kind: str, row: int) -> bool:
    """Return True if the lists are those of a vector of zeros: the smallest ids, scores of 0, no coherence."""
    for lens in index.stored.lenses:
        for _, _, ids, scores, coherence in ends_of(index.shard(layer).vector(kind, row, lens)):
            if scores.any() or not np.array_equal(ids, np.arange(len(ids))) or not np.isnan(coherence):
                return False
    return True
