"""Check the moments of lists against all scores of a sample of vectors, and lines of chance against those of the same
random vectors, in float64 and by their definitions."""

import numpy as np

from lexiscope.precompute.index.index import Index
from lexiscope.precompute.index.layout import NEURON_PAIRS
from lexiscope.precompute.verify.brute_force import BruteForce, Float64, Ids

ERROR = 1e-4  # allowed error of a moment, beside the size of scores: the build multiplies in float32
CONSTANT, LEAST_DEVIATION = 1e-6, 1e-37  # as docs/format.md defines them
ROUNDING = 1e-9  # a vector of which centring, or a gain, leaves less than this share is one of zeros
DRAWS, SHARES = 1000, (0.95, 0.99)  # random vectors, mismatched pairs; which shares of them stay under a number
DOUBT = 0.5  # a spread this near to CONSTANT, relatively, may count as constant or not


def stats_error(index: Index, layer: int, brute: BruteForce, kind: str, numbers: Ids) -> str | None:
    """Say what is wrong with the moments of these vectors; return None if nothing is."""
    file, vectors = index.part("stats", layer), brute.vectors(layer, kind, numbers)
    moments, z = file.array(f"{kind}.moments")[numbers], file.array(f"{kind}.z")[numbers]
    W = brute.embedding(kind, "dot")
    lengths, centred = (np.linalg.norm(rows, axis=1) for rows in (W, W - W.mean(axis=0)))
    has_direction = brute.embedding(kind, "cosine").any(axis=1)
    shares = np.divide(lengths, centred, out=np.zeros_like(lengths), where=has_direction)
    sizes = {"dot": np.sqrt((lengths**2).mean()), "cosine": np.sqrt((shares**2).mean())}
    for lens_at, lens in enumerate(index.stored.lenses):
        scores = vectors @ brute.embedding(kind, lens).T  # (len(numbers), d_vocab)
        for at, number in enumerate(numbers.tolist()):
            mean, sd = scores[at].mean(), scores[at].std()
            constant = CONSTANT * sizes[lens] * np.linalg.norm(vectors[at]) + LEAST_DEVIATION
            size = np.abs(scores[at]).max() + LEAST_DEVIATION
            stored = moments[at, lens_at], z[at, lens_at]
            if sd <= constant * (1 + DOUBT):
                right = abs(stored[0][0] - mean) <= ERROR * size and np.isnan([*stored[0][2:], *stored[1]]).all()
                if (right and stored[0][1] == 0) or sd > constant * (1 - DOUBT):
                    continue
                return f"the moments of {kind} {number} ({lens})"
            away = (scores[at] - mean) / sd
            exact = np.array([mean, sd, (away**3).mean(), (away**4).mean() - 3, away.max(), away.min()])
            allowed = ERROR * np.array([size, size, *(1 + np.abs(exact[2:]))])
            if not (np.abs(np.concatenate(stored) - exact) <= allowed).all():
                return f"the moments of {kind} {number} ({lens})"
    if f"{kind}.unembedding" in file.tensors:
        with np.errstate(invalid="ignore"):
            V = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
        directions = np.divide(W, lengths[:, None], out=np.zeros_like(W), where=lengths[:, None] > 0)
        exact = (V @ directions.T).var(axis=1)
        if not np.allclose(file.array(f"{kind}.unembedding")[numbers], exact, ERROR, ERROR**3, equal_nan=True):
            return f"the variance over the unembedding of {kind} {', '.join(map(str, numbers))}"
    if kind == "ff_value" and "ff.cosines" in file.tensors:
        return _neurons_error(index, layer, brute, numbers)
    return None


def _neurons_error(index: Index, layer: int, brute: BruteForce, numbers: Ids) -> str | None:
    """Say what is wrong with the cosines of the vectors of these neurons, and with those of mismatched ones."""
    gain, centres = brute.norm_in_front(layer)
    n, pair = index.shape.d_mlp, np.arange(DRAWS)
    pair = pair[pair < n * (n - 1)]
    order = np.random.RandomState(0).permutation(n)
    first, second = order[pair % n], order[(pair % n + 1 + pair // n) % n]

    def directions(kind: str, rows: Ids) -> Float64:
        V = brute.vectors(layer, kind, rows)
        acting = V - V.mean(axis=1, keepdims=True) * centres if kind == "ff_value" else gain * V
        length = np.linalg.norm(acting, axis=1, keepdims=True)
        length[length <= ROUNDING * np.linalg.norm(V, axis=1, keepdims=True)] = np.nan
        return np.asarray(acting / length)

    file = index.part("stats", layer)
    cosines, mismatched = file.array("ff.cosines")[numbers], file.array("ff.mismatched")
    for at, (one, other) in enumerate(NEURON_PAIRS):
        exact, sizes = np.full(len(numbers), np.nan), np.full(1, np.nan)
        if {one, other} <= {*index.shape.kinds}:
            exact = (directions(one, numbers) * directions(other, numbers)).sum(axis=1)
            sizes = np.abs((directions(one, first) * directions(other, second)).sum(axis=1))
        for stored, right in ((cosines[:, at], exact), (mismatched[at], _quantiles(sizes))):
            if not np.allclose(stored, right, ERROR, ERROR, equal_nan=True):
                return f"the cosines of {one} with {other}"
    return None


def _top_z(V: Float64, W: Float64) -> Float64:
    """Return z (n,) of the largest score of each vector of V; NaN where all scores are equal."""
    scores = V @ W.T  # (n, d_vocab)
    sd = scores.std(axis=1)
    size = np.linalg.norm(V, axis=1) * np.linalg.norm(W) / np.sqrt(len(W))
    sd[sd <= CONSTANT * size + LEAST_DEVIATION] = np.nan
    return np.asarray((scores.max(axis=1) - scores.mean(axis=1)) / sd)


def _quantiles(numbers: Float64) -> Float64:
    """Return the numbers that SHARES of the others stay under, NaN left out; NaN if there are no others."""
    known = numbers[~np.isnan(numbers)]
    return np.asarray(np.quantile(known, SHARES) if len(known) else np.full(2, np.nan))


def chance_error(index: Index, brute: BruteForce, kind: str) -> str | None:
    """Say what is wrong with the lines of chance of a kind of vectors; return None if nothing is."""
    stored, shape = index.part("chance").array(f"{kind}.line"), index.shape
    gaussian = np.random.RandomState(0).standard_normal((DRAWS, shape.d_model))
    mixtures, all_rows = [], np.arange(shape.count(kind))
    for layer in range(shape.n_layers):
        count = -(-DRAWS * (layer + 1) // shape.n_layers) - -(-DRAWS * layer // shape.n_layers)
        coefficients = np.random.RandomState(layer).standard_normal((count, len(all_rows)))
        mixtures.append(coefficients @ brute.vectors(layer, kind, all_rows))
    for lens_at, lens in enumerate(index.stored.lenses):
        W = brute.embedding(kind, lens)
        for at, drawn in enumerate((gaussian, np.concatenate(mixtures))):
            right = _quantiles(np.concatenate([_top_z(part, W) for part in np.array_split(drawn, 20)]))
            if not np.allclose(stored[lens_at, at], right, ERROR, ERROR, equal_nan=True):
                return f"the line of {('Gaussian vectors', 'mixtures')[at]} of {kind} ({lens})"
    return None
