"""Find the neurons that read one word and write another.

For a pair a > b, z of a in a neuron's key, over all tokens of W_E, says how strongly the neuron reads a, and z of b in
its value, over all tokens of W_U, how strongly it writes b: z = (score - mean) / standard deviation. The smaller of the
two is the pair's strength, the mean over the pairs the neuron's score. A gated neuron reads with `up` as well as with
its key, the gate: the size of z of a in `up` counts, too, and where this z is negative the neuron writes its value with
the opposite sign, so that it is the bottom of the value that it adds. Either end has its score: `top` where the neuron
adds b when it reads a, `bottom` where it takes b away. Where a is at the bottom of its key, a neuron hardly writes.

Of a word of several pieces, the first counts. A neuron with a vector that gives all tokens the same score is left out.
Baselines are the mean strength of other pairs' targets (`shuffled`, as in the module relation), and the score of the
best neuron for random words of like frequency (`chance`). All is computed in float64; scores are rounded once.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

import numpy as np
import torch
from torch import Tensor

from lexiscope.precompute.live.by_words.random_words import draw_words, frequency_bands
from lexiscope.precompute.live.by_words.relation import OTHERS, OWN, Ids, Targets, count_ranks, pair_used
from lexiscope.precompute.live.by_words.through_heads import ids_of
from lexiscope.precompute.live.parameters import LoadedParameters
from lexiscope.precompute.live.wire.answers import NeuronTransition, TransitionAnswer
from lexiscope.precompute.live.wire.asks import TransitionAsk
from lexiscope.precompute.live.words import Vocabulary, Words
from lexiscope.precompute.project.embedding import Float32, Float64
from lexiscope.precompute.project.moments import CONSTANT, LEAST_DEVIATION
from lexiscope.precompute.shape import ENDS, SIDES

DRAWS, DRAWS_BELOW_CHANCE = 200, 190  # in so many of the draws of random words, no neuron is above `chance`
TOKENS_AT_ONCE = 4096  # tokens whose embeddings are in float64 at once
NUMBERS_AT_ONCE = 2**22  # strengths of random words that are computed at once
MOST_KEPT = 1000  # results of random words that are kept

Check = Callable[[], None]
Z = Mapping[str, Float64]  # by kind of vector: z (neurons, ...) of tokens


@dataclass(frozen=True)
class Spread:
    """How the scores of vectors are distributed under a lens: what turns products into z."""

    centre: Mapping[str, Tensor]  # by side: the mean (d_model,) of the rows that scores are products with
    inverse_sd: Mapping[str, list[Tensor]]  # by kind and layer, (d_mlp,); NaN where all scores are equal


def strengths(z: Z) -> Float64:
    """Return the smaller z of what neurons read and write, (ends, neurons, ...): of a target that they add, or take
    away."""
    reads, writes = z["ff_key"], z["ff_value"]
    if "ff_up" in z:
        reads, writes = np.minimum(reads, np.abs(z["ff_up"])), np.sign(z["ff_up"]) * writes
    return np.stack([np.minimum(reads, writes), np.minimum(reads, -writes)])


class TransitionSearch:
    def __init__(self, w: LoadedParameters, words: Words) -> None:
        self.w = w
        self.vocabularies = {"reads": words.reads, "writes": words.writes}
        self.words, self.kinds = words, [kind for kind in w.shape.kinds if kind.startswith("ff_")]
        self._spreads: dict[str, Spread] = {}
        self._chances: dict[tuple[str, tuple[tuple[int, int], ...]], float | None] = {}

    def answer(self, ask: TransitionAsk, word_tokens: Ids, check: Check = lambda: None) -> TransitionAnswer:
        """Find the best neurons of either end. `word_tokens` are the tokens that are words; `check` is called between
        products, and an error that it raises ends the work."""
        used = [pair_used(self.words, pair) for pair in ask.pairs]
        targets = Targets.of(used, word_tokens)
        sources = np.array([ids_of(pair["source"])[0] for pair in used])
        every = self._every_layer(ask.lens, sources, targets.ids[:, OWN], check)
        scores = np.concatenate([strengths(z).mean(axis=2) for z in every], axis=1).astype(np.float32)  # (ends, all)
        best = [(end, row) for end in (0, 1) for row in np.argsort(-scores[end], kind="stable")[: ask.k].tolist()]
        best = [place for place in best if not np.isnan(scores[place])]
        best.sort(key=lambda place: (-scores[place], place[1], place[0]))
        return {
            "pairs": used,
            "neurons": self._neurons(ask.lens, best, scores, sources, targets, check) if best else [],
            "shuffled_with": targets.shuffled_with,
            "chance": self._chance(ask.lens, sources, targets.ids[:, OWN], word_tokens, check),
        }

    def _rows(self, side: str, lens: str, tokens: slice | Ids) -> Tensor:
        """Return the rows (tokens, d_model), float64, of which products with a vector are its scores, but for a
        constant."""
        vocabulary: Vocabulary = self.vocabularies[side]
        chosen = tokens if isinstance(tokens, slice) else torch.from_numpy(tokens).to(self.w.device)
        rows = vocabulary.W[chosen].double() - torch.from_numpy(vocabulary.mean).to(self.w.device)
        if lens == "cosine":
            rows *= torch.from_numpy(vocabulary.exact_inverse[tokens]).to(self.w.device)[:, None]
        return rows

    def _spread(self, lens: str, check: Check) -> Spread:
        """Return how scores are distributed, without a product with the whole vocabulary: the variance of v's scores is
        v Σ vᵀ, where Σ is the covariance of the rows. It is computed once."""
        if lens in self._spreads:
            return self._spreads[lens]
        centre: dict[str, Tensor] = {}
        inverse_sd: dict[str, list[Tensor]] = {kind: [] for kind in self.kinds}
        n = self.w.shape.d_vocab
        for side, vocabulary in self.vocabularies.items():
            if side == "reads" or vocabulary is not self.vocabularies["reads"]:  # else both are one matrix
                total, squares = (torch.zeros((), dtype=torch.float64, device=self.w.device) for _ in range(2))
                for start in range(0, n, TOKENS_AT_ONCE):
                    check()
                    rows = self._rows(side, lens, slice(start, start + TOKENS_AT_ONCE))
                    total, squares = total + rows.sum(dim=0), squares + rows.T @ rows
                mean = total / n
                covariance = squares / n - torch.outer(mean, mean)
            centre[side] = mean
            norms = vocabulary.embedding.norm * (vocabulary.exact_inverse if lens == "cosine" else 1)
            least = CONSTANT * float(np.sqrt(np.mean(norms**2)))
            for kind in (kind for kind in self.kinds if SIDES[kind] == side):
                for layer in range(self.w.shape.n_layers):
                    check()
                    V = self.w.vectors(kind, layer).double()  # (d_mlp, d_model)
                    sd = ((V @ covariance) * V).sum(dim=1).clamp(min=0).sqrt()
                    is_constant = sd <= least * torch.linalg.vector_norm(V, dim=1) + LEAST_DEVIATION
                    inverse_sd[kind].append((1 / sd).masked_fill(is_constant, torch.nan))
        return self._spreads.setdefault(lens, Spread(centre, inverse_sd))

    def _every_layer(
        self, lens: str, sources: Ids, targets: Ids, check: Check, dtype: torch.dtype = torch.float64
    ) -> Iterator[Z]:
        """Yield for every layer z of sources in what neurons read, and of targets in what they write."""
        spread, tokens = self._spread(lens, check), {"reads": sources, "writes": targets}
        rows = {side: (self._rows(side, lens, tokens[side]) - spread.centre[side]).to(dtype) for side in tokens}
        for layer in range(self.w.shape.n_layers):
            check()
            yield {
                kind: _z(self.w.vectors(kind, layer).to(dtype), rows[SIDES[kind]], spread.inverse_sd[kind][layer])
                for kind in self.kinds
            }

    def _neurons(
        self, lens: str, best: Sequence[tuple[int, int]], scores: Float32, sources: Ids, targets: Targets, check: Check
    ) -> list[NeuronTransition]:
        """Return the neurons at these places (end, number among all neurons) with their ranks and baselines."""
        spread, n, d_mlp = self._spread(lens, check), len(sources), self.w.shape.d_mlp
        ends, at = np.array([end for end, _ in best]), [divmod(row, d_mlp) for _, row in best]
        z, ranks = {}, {}  # (neurons, pairs, targets), and (neurons, pairs) from the top and from the bottom
        for kind in self.kinds:
            side, layers = SIDES[kind], self.w.every_layer(kind)
            V = torch.stack([layers[layer][neuron] for layer, neuron in at]).double()
            tokens = sources[:, None] if side == "reads" else targets.ids
            inverse_sd = torch.stack([spread.inverse_sd[kind][layer][neuron] for layer, neuron in at])
            rows = self._rows(side, lens, tokens.flatten()) - spread.centre[side]
            z[kind] = _z(V, rows, inverse_sd).reshape(len(at), n, -1)
            own = torch.from_numpy(tokens[:, OWN]).repeat(len(at), 1)
            _, *counts = count_ranks(self.vocabularies[side], V.cpu(), own, lens, check)
            ranks[kind] = [1 + count.numpy() for count in counts]
        strength = strengths(z)[ends, np.arange(len(at))]  # (neurons, pairs, targets)
        others = (strength[:, :, OTHERS:] * targets.counted).sum(axis=2) / targets.counted.sum(axis=1)
        turned = z["ff_up"][:, :, OWN] < 0 if "ff_up" in z else np.zeros((len(at), n), bool)
        from_bottom = {"ff_up": turned, "ff_value": turned != (ends == 1)[:, None]}
        columns: dict[str, Sequence[Any]] = {
            "layer": [layer for layer, _ in at],
            "neuron": [neuron for _, neuron in at],
            "end": [ENDS[end] for end in ends],
            "score": [float(scores[place]) for place in best],
            "shuffled": others.mean(axis=1).tolist(),
        }
        for kind in ("ff_key", "ff_up", "ff_value"):
            name, missing = kind.removeprefix("ff_"), [None] * len(at)
            found = np.where(from_bottom.get(kind, False), *ranks[kind][::-1]) if kind in z else None
            columns[f"{name}_rank"] = missing if found is None else found.mean(axis=1).tolist()
            columns[f"{name}_ranks"] = missing if found is None else found.tolist()
            columns[f"{name}_z"] = missing if found is None else z[kind][:, :, OWN].tolist()
        return [
            cast(NeuronTransition, dict(zip(columns, row, strict=True))) for row in zip(*columns.values(), strict=True)
        ]

    def _chance(self, lens: str, sources: Ids, targets: Ids, word_tokens: Ids, check: Check) -> float | None:
        """Return the score that in 95 % of the draws no neuron is above, either end counted, for as many pairs of
        random words that are as frequent as these. None if no neuron has a score. It is kept for like questions."""
        bands = [frequency_bands(word_tokens, tokens.tolist()) for tokens in (sources, targets)]
        key = lens, tuple(sorted(zip(*bands, strict=True)))
        if key not in self._chances:
            n, random = len(sources), np.random.default_rng(0)
            of_each = -(-DRAWS // n)  # words for each place of a pair, of which draws take any
            words = [
                draw_words(word_tokens, each, of_each, seed) for seed, each in enumerate(zip(*key[1], strict=True))
            ]
            drawn = [random.integers(of_each, size=(DRAWS, n)) * n + np.arange(n) for _ in words]
            taken = dict(zip(("reads", "writes"), drawn, strict=True))
            best = np.full(DRAWS, -np.inf)
            step = max(1, NUMBERS_AT_ONCE // (self.w.shape.d_mlp * n))
            for z in self._every_layer(lens, words[0].flatten(), words[1].flatten(), check, torch.float32):
                for start in range(0, DRAWS, step):
                    some = slice(start, start + step)
                    scores = strengths({kind: z[kind][:, taken[SIDES[kind]][some]] for kind in z}).mean(axis=3)
                    best[some] = np.fmax(best[some], np.fmax.reduce(scores, axis=(0, 1)))
            limit = float(np.sort(best)[DRAWS_BELOW_CHANCE - 1])
            if len(self._chances) >= MOST_KEPT:
                self._chances.clear()
            self._chances[key] = limit if np.isfinite(limit) else None
        return self._chances[key]


def _z(V: Tensor, rows: Tensor, inverse_sd: Tensor) -> Float64:
    """Return z (n, tokens) of tokens, given their centred rows (tokens, d_model), in vectors V (n, d_model)."""
    return np.asarray(((V @ rows.T) * inverse_sd[:, None].to(V.dtype)).cpu().numpy())
