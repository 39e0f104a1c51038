"""Measure which inverse of E works best when only the largest entries are kept, by the keep-k score (appendix A, figure
5).

E is W_Uᵀ, (d_model, d_vocab): x E are the scores of a vector x. Its inverse E' is taken to be the transpose Eᵀ, or the
pseudo-inverse E⁺ = W_U (W_Uᵀ W_U)⁺. keep-k sets all entries of a vector to 0 except those whose size is at least that
of its k-th largest in size. For n samples x and as many y, the score is the cosine of two lists of n × n numbers, one
number for each x and y:

    all x · y    and    all keep-k(x E) · keep-k(E' y)

In `transpose` and `pseudo`, x and y are drawn independently. `transpose_same` and `pseudo_same` take the x as y, too,
as if one sample were drawn and all of its pairs were taken: then n of the n × n pairs are a vector with itself, whose
product is far larger than others, and the score mostly tells how well those products are kept.

Samples are drawn as follows. From N(0, 1): the first n rows of numpy's RandomState(seed).standard_normal((2 n,
d_model)) are x, the rest y. From N vectors or states: those with the numbers RandomState(seed).randint(N, size=2 n),
likewise. FF values are numbered layer after layer. States are those after each layer, through the final norm: of the
first token of the first text after all layers, then of the next token (`runs.py`). Everything is in float64.
"""

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from lexiscope.precompute.index.lab_record import KeepK
from lexiscope.precompute.lab.runs import TextRuns, drawn
from lexiscope.precompute.project.embedding import Float64, inverse_gram
from lexiscope.precompute.weights.difference import Parameters

KS = (10, 50, 100, 200, 300, 500, 512, 1000, 1024, 2048, 4096, 10_000, 15_000, 20_000, 30_000)  # the paper's, and 1000
SAMPLE_SIZE = 300
TOKENS_AT_ONCE = 4096

Tick = Callable[[float], None]  # called with the share of the work that was done since the last call


class KeepKScores:
    """Compute the keep-k scores of samples. What all samples need of W_U is computed once."""

    def __init__(self, W_U: NDArray[np.float32]) -> None:
        self.W_U = W_U  # (d_vocab, d_model)
        self._inverse_gram = inverse_gram(W_U)  # (d_model, d_model)
        self.ks = [k for k in KS if k <= len(W_U)] or [len(W_U)]

    def of(self, samples: Float64, tick: Tick = lambda _: None) -> KeepK:
        """Return the keep-k scores of samples (2 n, d_model), of which the first n are x and the others y."""
        x, y = np.split(samples, 2)
        of_x = self._scores(x)
        found: dict[str, tuple[float, ...]] = {}
        for suffix, others in (("", y), ("_same", x)):
            wanted = x @ others.T
            for name, dual in (("transpose", others), ("pseudo", others @ self._inverse_gram)):
                products = self._products(of_x, self._scores(dual))
                found[name + suffix] = tuple(_cosine(wanted, of_k) for of_k in products)
                tick(0.25)
        return KeepK.model_validate(found | {"k": self.ks, "samples": len(x)})

    def _scores(self, vectors: Float64) -> Float64:
        """Return the scores x E (n, d_vocab) of vectors x (n, d_model)."""
        scores = np.empty((len(vectors), len(self.W_U)))
        for start in range(0, len(self.W_U), TOKENS_AT_ONCE):
            scores[:, start : start + TOKENS_AT_ONCE] = vectors @ self.W_U[start : start + TOKENS_AT_ONCE].T
        return scores

    def _products(self, of_x: Float64, of_y: Float64) -> Float64:
        """Return, for every k, the product of the kept entries of each x with those of each y: (len(ks), n, n)."""
        floors_x, floors_y = (_kth_largest(scores, self.ks) for scores in (of_x, of_y))
        products = np.zeros((len(self.ks), len(of_x), len(of_y)))
        for start in range(0, len(self.W_U), TOKENS_AT_ONCE):
            x, y = (scores[:, start : start + TOKENS_AT_ONCE] for scores in (of_x, of_y))
            sizes_x, sizes_y = np.abs(x), np.abs(y)
            for at in range(len(self.ks)):
                kept_x = np.where(sizes_x >= floors_x[:, at, None], x, 0)
                kept_y = np.where(sizes_y >= floors_y[:, at, None], y, 0)
                products[at] += kept_x @ kept_y.T
        return products


def normal_samples(n: int, d_model: int, seed: int) -> Float64:
    """Draw samples (2 n, d_model) from a normal distribution."""
    return np.random.RandomState(seed).standard_normal((2 * n, d_model))


def ff_value_samples(model: Parameters, n: int, seed: int) -> Float64:
    """Draw samples (2 n, d_model) from the values of the model's neurons."""
    shape = model.shape
    layers, neurons = np.divmod(drawn(shape.n_layers * shape.d_mlp, 2 * n, seed), shape.d_mlp)
    samples = np.empty((2 * n, shape.d_model))
    for layer in np.unique(layers).tolist():
        chosen = layers == layer
        samples[chosen] = model.vectors(layer, "ff_value").numpy()[neurons[chosen]]
    return samples


def state_samples(runs: TextRuns, n: int, seed: int) -> Float64:
    """Draw samples (2 n, d_model) from the states of texts."""
    n_layers = runs.weights.shape.n_layers
    positions, layers = np.divmod(drawn(runs.positions * n_layers, 2 * n, seed), n_layers)
    samples = np.empty((2 * n, runs.weights.shape.d_model))
    for chosen, at, states in runs.states_at(positions):
        samples[chosen] = states[layers[chosen], at].cpu().numpy()
    return samples


def _kth_largest(scores: Float64, ks: list[int]) -> Float64:
    """Return the k-th largest absolute value in each row of scores (n, d_vocab), for every k: (n, len(ks))."""
    places = [scores.shape[1] - k for k in ks]
    return np.stack([np.partition(np.abs(row), places)[places] for row in scores])


def _cosine(a: Float64, b: Float64) -> float:
    """Return the cosine of two arrays; 0 if one of them is all zeros. The result never exceeds 1 by rounding."""
    lengths = np.linalg.norm(a) * np.linalg.norm(b)
    return float(np.clip(np.vdot(a, b) / lengths, -1, 1)) if lengths else 0.0
