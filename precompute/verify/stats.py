"""Check the moments of lists against all scores of a sample of vectors, in float64 and by their definitions."""

import numpy as np

from lexiscope.precompute.index.index import Index
from lexiscope.precompute.verify.brute_force import BruteForce, Ids

ERROR = 1e-4  # allowed error of a moment, beside the size of scores: the build multiplies in float32
CONSTANT, LEAST_DEVIATION = 1e-6, 1e-37  # as FORMAT.md defines them
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
    return None
