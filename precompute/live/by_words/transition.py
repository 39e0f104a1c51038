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
from typing import Any, cast

import numpy as np
import torch
from numpy.typing import NDArray

from lexiscope.precompute.live.by_words.random_words import draw_words, frequency_bands
from lexiscope.precompute.live.by_words.relation import OWN, Ids, Targets, count_ranks, pair_used
from lexiscope.precompute.live.by_words.seeds import SeedSearch
from lexiscope.precompute.live.by_words.through_heads import ids_of
from lexiscope.precompute.live.wire.answers import NeuronTransition, TransitionAnswer
from lexiscope.precompute.live.wire.asks import TransitionAsk
from lexiscope.precompute.live.wire.fields import Lens
from lexiscope.precompute.project.embedding import Float32, Float64
from lexiscope.precompute.shape import ENDS, SIDES

DRAWS, DRAWS_BELOW_CHANCE = 200, 190  # in so many of the draws of random words, no neuron is above `chance`
NUMBERS_AT_ONCE = 2**22  # strengths of random words that are computed at once
MOST_KEPT = 1000  # results of random words that are kept

Check = Callable[[], None]
Z = Mapping[str, Float64]  # by kind of vector: z (neurons, ...) of tokens


def strengths(z: Z) -> Float64:
    """Return the smaller z of what neurons read and write, (ends, neurons, ...): of a target that they add, or take
    away."""
    reads, writes = z["ff_key"], z["ff_value"]
    if "ff_up" in z:
        reads, writes = np.minimum(reads, np.abs(z["ff_up"])), np.sign(z["ff_up"]) * writes
    return np.stack([np.minimum(reads, writes), np.minimum(reads, -writes)])


class TransitionSearch:
    def __init__(self, seeds: SeedSearch) -> None:
        """Search the neurons of the model that `seeds` searches. The deviations of scores are kept there, for both."""
        self.seeds, self.w = seeds, seeds.w
        self.kinds = [kind for kind in self.w.shape.kinds if kind.startswith("ff_")]
        self._chances: dict[tuple[str, tuple[tuple[int, int], ...]], float | None] = {}

    def answer(self, ask: TransitionAsk, check: Check = lambda: None) -> TransitionAnswer:
        """Find the best neurons of either end. `check` is called between products; an error that it raises ends the
        work."""
        used = [pair_used(self.seeds.words, pair) for pair in ask.pairs]
        targets = Targets.of(used, self.seeds.word_tokens())
        sources = np.array([ids_of(pair["source"])[0] for pair in used])
        every = self._every_layer(ask.lens, self._deviations(ask.lens, sources, targets.ids[:, OWN]), check)
        scores = np.concatenate([strengths(z).mean(axis=2) for z in every], axis=1).astype(np.float32)  # (ends, all)
        orders = np.argsort(-scores, axis=1, kind="stable")[:, : ask.k].tolist()  # NaN is last
        best = [(end, row) for end in (0, 1) for row in orders[end] if not np.isnan(scores[end, row])]
        best.sort(key=lambda place: (-scores[place], place[1], place[0]))
        return {
            "pairs": used,
            "neurons": self._neurons(ask.lens, best, scores, sources, targets, check) if best else [],
            "shuffled_with": targets.shuffled_with,
            "chance": self._chance(ask.lens, sources, targets.ids[:, OWN], check),
        }

    def _deviations(self, lens: Lens, sources: Ids, targets: Ids) -> dict[str, Float64]:
        """Return what vectors are multiplied with, (tokens, d_model), by kind: sources for what neurons read, targets
        for what they write."""
        of_side = {"reads": sources, "writes": targets}
        return {kind: self.seeds.vocabulary(SIDES[kind]).deviations(of_side[SIDES[kind]], lens) for kind in self.kinds}

    def _z(self, kind: str, lens: Lens, layer: int, tokens: NDArray[Any]) -> Float64:
        """Return z (d_mlp, tokens) in a layer of tokens, given as `_deviations` does, in float32 if they are."""
        own = slice(layer * self.w.shape.d_mlp, (layer + 1) * self.w.shape.d_mlp)
        inverse_sd = self.seeds.inverse_spreads(kind, lens)[1][own, None].astype(tokens.dtype)
        products = self.w.vectors(kind, layer).cpu().numpy().astype(tokens.dtype) @ tokens.T
        return np.where(inverse_sd > 0, products * inverse_sd, np.nan)

    def _every_layer(self, lens: Lens, tokens: Mapping[str, NDArray[Any]], check: Check) -> Iterator[Z]:
        """Yield for every layer z of tokens in what neurons read and write."""
        for layer in range(self.w.shape.n_layers):
            check()
            yield {kind: self._z(kind, lens, layer, tokens[kind]) for kind in self.kinds}

    def _neurons(
        self, lens: Lens, best: Sequence[tuple[int, int]], scores: Float32, sources: Ids, targets: Targets, check: Check
    ) -> list[NeuronTransition]:
        """Return the neurons at these places (end, number among all neurons) with their ranks and baselines."""
        n, d_mlp = len(sources), self.w.shape.d_mlp
        ends, at = np.array([end for end, _ in best]), [divmod(row, d_mlp) for _, row in best]
        z, ranks = {}, {}  # (neurons, pairs, targets), and (neurons, pairs) from the top and from the bottom
        rows = np.array([row for _, row in best])
        for kind, of_kind in self._deviations(lens, sources, targets.ids.flatten()).items():
            layers, vocabulary = self.w.every_layer(kind), self.seeds.vocabulary(SIDES[kind])
            V = torch.stack([layers[layer][neuron] for layer, neuron in at]).cpu().double()
            products = (V.numpy() @ of_kind.T).reshape(len(at), n, -1)
            z[kind] = products * self.seeds.inverse_spreads(kind, lens)[1][rows, None, None]
            own = torch.from_numpy(sources if SIDES[kind] == "reads" else targets.ids[:, OWN]).repeat(len(at), 1)
            _, *counts = count_ranks(vocabulary, V, own, lens, check)
            ranks[kind] = [1 + count.numpy() for count in counts]
        strength = strengths(z)[ends, np.arange(len(at))]  # (neurons, pairs, targets)
        turned = z["ff_up"][:, :, OWN] < 0 if "ff_up" in z else np.zeros((len(at), n), bool)
        from_bottom = {"ff_up": turned, "ff_value": turned != (ends == 1)[:, None]}
        columns: dict[str, Sequence[Any]] = {
            "layer": [layer for layer, _ in at],
            "neuron": [neuron for _, neuron in at],
            "end": [ENDS[end] for end in ends],
            "score": [float(scores[place]) for place in best],
            "shuffled": targets.shuffled(strength).tolist(),
            **{f"up_{number}": [None] * len(at) for number in ("rank", "ranks", "z")},
        }
        for kind in self.kinds:
            found = np.where(from_bottom.get(kind, False), *ranks[kind][::-1])
            numbers = {"rank": found.mean(axis=1), "ranks": found, "z": z[kind][:, :, OWN]}
            columns |= {f"{kind.removeprefix('ff_')}_{number}": each.tolist() for number, each in numbers.items()}
        return [
            cast(NeuronTransition, dict(zip(columns, row, strict=True))) for row in zip(*columns.values(), strict=True)
        ]

    def _chance(self, lens: Lens, sources: Ids, targets: Ids, check: Check) -> float | None:
        """Return the score that in 95 % of the draws no neuron is above, either end counted, for as many pairs of
        random words that are as frequent as these. None if no neuron has a score. It is kept for like questions."""
        word_tokens = self.seeds.word_tokens()
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
            tokens = self._deviations(lens, words[0].flatten(), words[1].flatten())
            for z in self._every_layer(lens, {kind: tokens[kind].astype(np.float32) for kind in tokens}, check):
                for start in range(0, DRAWS, step):
                    some = slice(start, start + step)
                    scores = strengths({kind: z[kind][:, taken[SIDES[kind]][some]] for kind in z}).mean(axis=3)
                    best[some] = np.fmax(best[some], np.fmax.reduce(scores, axis=(0, 1)))
            limit = float(np.sort(best)[DRAWS_BELOW_CHANCE - 1])
            if len(self._chances) >= MOST_KEPT:
                self._chances.clear()
            self._chances[key] = limit if np.isfinite(limit) else None
        return self._chances[key]
