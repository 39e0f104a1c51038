"""Measure how much of a hidden state its active parameters name: the paper's R_k (section 4.2, appendix B.2) over many
texts, by layer.

R_k is computed at every position of every text (`runs.py`), after every layer, and for each of ff_key, ff_value, w_v
and w_o: it is the share of the first k tokens of a state that are among the first k of at least one of the layer's m
most active vectors. live/panels/coverage.py defines which vectors are active, which end of their lists counts, and what
a state is: the panel of a prompt shows the same for one position. Lists of vectors are those of the index, under each
of its lenses.

Four states are compared with the active vectors: the state after the layer and the state after the last layer, each at
the position itself (`own`, `last`) and, as a baseline, at another position (`own_random`, `last_random`). For the
baseline, 300 of all N positions are drawn, those with the numbers RandomState(seed).randint(N, size=300); position
number n is compared with the one that was drawn as number n mod 300.
"""

import hashlib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from pydantic import BaseModel
from torch import Tensor

from lexiscope.precompute.errors import NotStored
from lexiscope.precompute.files import canonical_json, open_regular, write_beside
from lexiscope.precompute.index.index import Index
from lexiscope.precompute.index.lab_record import CoveragePart, Coverages, CoveragesOfLens
from lexiscope.precompute.lab.runs import Active, Numbers, TextRuns, drawn
from lexiscope.precompute.live.panels.coverage import ACTIVE_VECTORS, COVERED_KINDS, COVERED_TOKENS
from lexiscope.precompute.live.vocabulary import PRODUCT_ROWS, top_tokens
from lexiscope.precompute.project.embedding import Float64
from lexiscope.precompute.shape import ENDS

DRAWN = 300  # random states are those at so many positions
STATES = ("own", "own_random", "last", "last_random")
OF_PAPER = ("paper", "paper_random")  # counted in top lists alone
COUNTED = STATES + OF_PAPER
PARTIAL_COVERAGE = "lab-coverage.partial"
MOST_KEPT_BYTES = 1 << 26  # of that file

Ids = NDArray[np.int64]


@dataclass(frozen=True)
class Wanted:
    """The options of a measurement. Together with the weights and the texts they decide every number."""

    k: int
    m: int
    seed: int
    lenses: tuple[str, ...]
    kinds: tuple[str, ...]
    layers: tuple[int, ...]

    @classmethod
    def of(cls, index: Index, seed: int, m: int = ACTIVE_VECTORS) -> "Wanted":
        stored = index.stored
        kinds = tuple(kind for kind in COVERED_KINDS if kind in stored.kinds)
        if not kinds:
            raise NotStored(
                f"coverage of {index.manifest.model}: its index stores none of {', '.join(COVERED_KINDS)}. "
                f"`{index.manifest.rebuild_command} --kinds {','.join(index.shape.kinds)} --force` builds it with all"
            )
        return cls(min(COVERED_TOKENS, stored.k), m, seed, stored.lenses, kinds, index.layers)


class _Kept(BaseModel):
    """The content of the file PARTIAL_COVERAGE, which keeps the sums of an unfinished measurement."""

    made_from: str
    texts: int
    positions: int
    shape: tuple[int, ...]
    sums: list[float]


class CoverageSums:
    """Add up the coverage of one text after the other and keep the sums on disk, so that a measurement that was killed
    can be continued. The sums are (lenses, kinds, n_layers, COUNTED), however many texts there are."""

    def __init__(self, made_from: object, shape: tuple[int, int, int]) -> None:
        """Start with empty sums. `made_from` is everything that decides the numbers: sums made from something else are
        never continued."""
        self.made_from = hashlib.sha256(canonical_json(made_from)).hexdigest()
        self.shape = (*shape, len(COUNTED))
        self.texts = self.positions = 0
        self._sums = np.zeros((3, *self.shape))  # of all positions; of the means of texts, and of their squares

    def add(self, shares: Float64) -> None:
        """Add the coverage (lenses, kinds, n_layers, COUNTED, T) at all T positions of one text."""
        mean = shares.mean(axis=-1)
        self.texts += 1
        self.positions += shares.shape[-1]
        self._sums += np.stack([shares.sum(axis=-1), mean, mean**2])

    def means(self) -> Float64:
        """Return the means over all positions."""
        return np.asarray(np.clip(self._sums[0] / self.positions, 0, 1))

    def spreads(self) -> Float64:
        """Return the standard deviation of the means of single texts (n - 1 in the divisor); NaN if there is only one
        text."""
        if self.texts < 2:
            return np.full(self.shape, np.nan)
        of_texts, squares = self._sums[1], self._sums[2]
        variance = (squares - of_texts**2 / self.texts) / (self.texts - 1)
        return np.asarray(np.sqrt(np.clip(variance, 0, None)))

    def save(self, folder: Path) -> None:
        numbers = self._sums.ravel().tolist()
        kept = _Kept(
            made_from=self.made_from, texts=self.texts, positions=self.positions, shape=self.shape, sums=numbers
        )
        write_beside(folder / PARTIAL_COVERAGE, [kept.model_dump_json().encode()])

    def go_on(self, folder: Path) -> None:
        """Continue with the sums that a killed measurement of the same kind has kept; ignore a file that is anything
        else."""
        try:
            with open_regular(folder / PARTIAL_COVERAGE) as file:
                kept = _Kept.model_validate_json(file.read(MOST_KEPT_BYTES))
            if kept.made_from != self.made_from or kept.shape != self.shape:
                return
            self._sums = np.array(kept.sums, np.float64).reshape(self._sums.shape)
        except (OSError, ValueError):
            return
        self.texts, self.positions = kept.texts, kept.positions


def forget(folder: Path) -> None:
    """Remove the file of an unfinished measurement, because the finished one is in lab.json."""
    (folder / PARTIAL_COVERAGE).unlink(missing_ok=True)


class CoverageMeasurement:
    def __init__(self, index: Index, runs: TextRuns, wanted: Wanted) -> None:
        self.index, self.runs, self.wanted = index, runs, wanted
        self._listed: NDArray[np.bool_] = np.zeros((0, index.shape.d_vocab), bool)  # positions and tokens
        self._drawn: Ids | None = None

    def draw(self, text_done: Callable[[], None] = lambda: None) -> None:
        """Draw random positions, and keep the first tokens of their states, which all positions are compared with."""
        positions = drawn(self.runs.positions, DRAWN, self.wanted.seed)
        shape = (len(self.wanted.lenses), self.index.shape.n_layers, DRAWN, self.wanted.k)
        self._drawn = np.empty(shape, np.int64)
        for chosen, at, states in self.runs.states_at(positions, text_done):
            self._drawn[:, :, chosen] = self.first_tokens(states[:, at])

    def add_text(self, sums: CoverageSums, text: int) -> None:
        assert self._drawn is not None
        activity = self.runs.activity(text, self.wanted.m)
        own = self.first_tokens(self.runs.states(activity))  # (lenses, n_layers, T, k)
        T = own.shape[2]
        numbers = (self.runs.starts[text] + np.arange(T)) % DRAWN
        other = self._drawn[:, :, numbers]
        of_any_layer = self._drawn[:, drawn(self.index.shape.n_layers, DRAWN, self.wanted.seed + 1)[numbers], numbers]
        covered = np.zeros((*sums.shape, T), np.int64)  # (lenses, kinds, n_layers, COUNTED, T)
        for layer in self.wanted.layers:
            for at, kind in enumerate(self.wanted.kinds):
                active = (activity.neurons if kind.startswith("ff_") else activity.subheads)[layer]
                for lens, name in enumerate(self.wanted.lenses):
                    states = np.stack([own[lens, layer], other[lens, layer], own[lens, -1], other[lens, -1]])
                    covered[lens, at, layer, : len(STATES)] = self._covered(layer, kind, name, active, states)
                    states = np.stack([own[lens, layer], of_any_layer[lens]])
                    of_tops = self._covered(layer, kind, name, active, states, tops_alone=True)
                    covered[lens, at, layer, len(STATES) :] = of_tops
        sums.add(covered / self.wanted.k)

    @torch.inference_mode()
    def first_tokens(self, states: Tensor) -> Ids:
        """Return the ids of the first tokens of states (n_layers, T, d_model) under each lens: (lenses, n_layers, T,
        k)."""
        vocabulary, k = self.runs.vocabulary, self.wanted.k
        found: dict[str, list[Tensor]] = {lens: [] for lens in self.wanted.lenses}
        for block in torch.split(states.flatten(0, 1), PRODUCT_ROWS):
            scores = block @ vocabulary.W.T  # (block, d_vocab)
            if "dot" in found:
                found["dot"].append(top_tokens(scores, k).ids)
            if "cosine" in found:
                shift = block.double() @ torch.from_numpy(vocabulary.mean).to(block.device)
                scores.sub_(shift.float()[:, None]).mul_(vocabulary.inverse)
                found["cosine"].append(top_tokens(scores, k).ids)
        ids = np.stack([torch.cat(found[lens]).cpu().numpy() for lens in self.wanted.lenses])
        return ids.reshape(len(ids), *states.shape[:2], k)

    def _covered(
        self, layer: int, kind: str, lens: str, active: Active, states: Ids, *, tops_alone: bool = False
    ) -> Numbers:
        """Count the tokens of each state that the list of an active vector holds: states (S, T, k) -> (S, T). With
        `tops_alone` the top list of every active vector counts, else the one to whose end it points in this run."""
        positions, numbers, ends = self._lists(kind, active)
        if tops_alone:
            ends = np.zeros_like(ends)
        if len(self._listed) < states.shape[1]:
            self._listed = np.zeros((states.shape[1], self.index.shape.d_vocab), bool)
        rows, ids = positions[:, None], self._ids(layer, kind, lens, numbers, ends)  # (n, 1) and (n, k)
        self._listed[rows, ids] = True
        covered = self._listed[np.arange(states.shape[1])[:, None], states].sum(axis=2)
        self._listed[rows, ids] = False
        return np.asarray(covered)

    def _lists(self, kind: str, active: Active) -> tuple[Numbers, Numbers, Numbers]:
        """Return for each active vector its position in the text, its number among those of its kind, and the end of
        its list that counts in this run."""
        positions, places = np.nonzero(active.signs)
        rows = np.array(self.index.shape.rows(kind))
        signs = active.read_signs if kind == "ff_key" else active.signs
        return positions, rows[active.numbers[positions, places]], (signs[positions, places] < 0).astype(np.int64)

    def _ids(self, layer: int, kind: str, lens: str, numbers: Numbers, ends: Numbers) -> Ids:
        """Return the first tokens (n, k) at the given end of the list of each vector."""
        ids = np.empty((len(numbers), self.wanted.k), np.int64)
        for end, name in enumerate(ENDS):
            chosen = ends == end
            unique, back = np.unique(numbers[chosen], return_inverse=True)
            ids[chosen] = self.index.shard(layer).first_ids(kind, unique, lens, self.wanted.k, name)[back]
        return ids


def coverage_part(runs: TextRuns, wanted: Wanted, sums: CoverageSums) -> CoveragePart:
    means, spreads = sums.means(), sums.spreads()  # (lenses, kinds, n_layers, COUNTED)
    built = [layer in wanted.layers for layer in range(means.shape[2])]

    def of_lens(lens: int) -> dict[str, Coverages]:
        kinds: dict[str, Coverages] = {}
        for at, kind in enumerate(wanted.kinds):
            fields: dict[str, Any] = {}
            for state, name in enumerate(COUNTED):
                for suffix, values in (("", means), ("_sd", spreads)):
                    column = values[lens, at, :, state].tolist()
                    fields[name + suffix] = [
                        value if known and np.isfinite(value) else None
                        for known, value in zip(built, column, strict=True)
                    ]
            kinds[kind] = Coverages.model_validate(fields)
        return kinds

    measured = {lens: of_lens(at) for at, lens in enumerate(wanted.lenses)}
    cosine = {"cosine": CoveragesOfLens.model_validate(measured["cosine"])} if "cosine" in measured else {}
    about = {"k": wanted.k, "m": wanted.m, "drawn": DRAWN, "seed": wanted.seed, "layers": wanted.layers}
    return CoveragePart.model_validate(measured.get("dot", {}) | about | {"lenses": cosine, "texts": runs.used})
