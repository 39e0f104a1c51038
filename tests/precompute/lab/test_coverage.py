"""R_k over texts, and samples of states, equal a direct computation: `transformers` runs, sets of tokens by numpy."""

from collections.abc import Callable
from functools import cache
from pathlib import Path

import numpy as np
import pytest
import torch
from tokenizers import Tokenizer

from lexiscope.precompute.index.index import Index
from lexiscope.precompute.index.lab_record import Coverages
from lexiscope.precompute.lab.coverage import CoverageMeasurement, CoverageSums, Wanted, coverage_part
from lexiscope.precompute.lab.inverse import state_samples
from lexiscope.precompute.lab.runs import TextRuns
from lexiscope.precompute.live.texts import Texts
from lexiscope.precompute.weights.architectures import describe
from lexiscope.precompute.weights.checkpoint import Checkpoint
from tests.precompute.lab.conftest import K
from tests.precompute.lab.direct import FAMILIES, READS, Array, direct
from tests.support.nets import Net, Run

TEXTS = ("The dog and the lion saw the horse in Paris", "", "a dog", "the horses and the dogs of the lions ran and ran")
KINDS = ("ff_key", "ff_value", "w_v", "w_o")
LENGTH, M, SEED, DRAWN = 9, 3, 5, 300


class Plain:
    """A small model on the texts, without any code under test."""

    def __init__(self, folder: Path, net: Net) -> None:
        self.model, self.net = direct(folder), net
        tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
        self.texts: list[tuple[list[int], list[int]]] = []  # tokens, and positions of the text's own
        for text in TEXTS:
            encoding = tokenizer.encode(text)
            special = encoding.special_tokens_mask
            tokens = [token for token, is_special in zip(encoding.ids, special, strict=True) if not is_special]
            before = special.index(0) if tokens else 0
            first, last = encoding.ids[:before], encoding.ids[before + len(tokens) :]
            tokens = tokens[: LENGTH - len(first) - len(last)]
            if tokens:
                self.texts.append(([*first, *tokens, *last], [before + at for at in range(len(tokens))]))
        self.runs: list[Run] = [net.run(tuple(tokens)) for tokens, _ in self.texts]
        self.places = [(text, at) for text, (_, own) in enumerate(self.texts) for at in own]  # by number of a position
        self.listed, self.tokens = cache(self._listed), cache(self._tokens)  # positions are drawn many times

    def state(self, place: tuple[int, int], layer: int) -> Array:
        """(d_model,) after the layer, as W_U meets it."""
        text, at = place
        stream = self.runs[text].streams[layer, "ff"][at]
        normed = stream if self.net.layout.first_norm else self.net.norm("final")(stream)
        return np.asarray(normed.double().numpy())

    def _listed(self, place: tuple[int, int], layer: int, kind: str, lens: str, tops: bool = False) -> set[int]:
        """The first tokens of all active vectors; with `tops`, whatever their signs."""
        (text, at), listed = place, set[int]()
        run = self.runs[text]
        c = (run.mixed if kind.startswith("w_") else run.coefficients)[layer][at].tolist()
        signs = run.keys[layer][at].tolist() if kind == "ff_key" else c
        for n in sorted(range(len(c)), key=lambda n: -abs(c[n]))[:M]:
            if c[n] != 0:
                vector = (1 if tops else np.sign(signs[n])) * self.model.vectors(layer, kind)[n : n + 1]
                listed |= self.model.tokens(vector, kind in READS, lens, K)[0]
        return listed

    def _tokens(self, place: tuple[int, int], layer: int, lens: str) -> set[int]:
        """The first of a state."""
        return self.model.tokens(self.state(place, layer)[None], False, lens, K)[0]


@pytest.fixture
def plain(
    request: pytest.FixtureRequest, family_folder: Callable[[str], Path], family_net: Callable[[str], Net]
) -> Plain:
    return Plain(family_folder(request.param), family_net(request.param))


def runs_of(folder: Path) -> TextRuns:
    return TextRuns(
        describe(Checkpoint.open(folder)), Texts("some.txt", "0" * 64, TEXTS, None), torch.device("cpu"), LENGTH
    )


@pytest.mark.slow
@pytest.mark.parametrize(("family", "plain"), [(name, name) for name in FAMILIES], indirect=["plain"])
def test_coverage_equals_a_direct_computation(family: str, plain: Plain, lab_index: Callable[[str], Path]) -> None:
    index, runs = Index.open(lab_index(family)), runs_of(plain.model.folder)
    wanted = Wanted.of(index, SEED, M)
    measurement, sums = CoverageMeasurement(index, runs, wanted), CoverageSums([], (2, 4, plain.model.n_layers))
    measurement.draw()
    for text in range(len(runs.texts)):
        measurement.add_text(sums, text)
    part = coverage_part(runs, wanted, sums)
    assert (part.k, part.m, part.seed, part.drawn) == (K, M, SEED, DRAWN)
    assert (part.texts.count, part.texts.positions, part.texts.length) == (3, len(plain.places), LENGTH)
    pool = np.random.RandomState(SEED).randint(len(plain.places), size=DRAWN).tolist()
    for lens in ("dot", "cosine"):
        of_lens = part.of_lens(lens)
        for kind in KINDS:
            check(getattr(of_lens, kind), plain, kind, lens, pool)


def check(found: Coverages, plain: Plain, kind: str, lens: str, pool: list[int]) -> None:
    last = plain.model.n_layers - 1
    layers = np.random.RandomState(SEED + 1).randint(plain.model.n_layers, size=DRAWN).tolist()
    for layer in range(plain.model.n_layers):
        names = ("own", "own_random", "last", "last_random", "paper", "paper_random")
        shares: dict[str, list[float]] = {name: [] for name in names}
        for number, place in enumerate(plain.places):
            other, any_layer = plain.places[pool[number % DRAWN]], layers[number % DRAWN]
            states = (place, layer), (other, layer), (place, last), (other, last), (place, layer), (other, any_layer)
            for name, (where, after) in zip(shares, states, strict=True):
                listed = plain.listed(place, layer, kind, lens, name.startswith("paper"))
                shares[name].append(len(plain.tokens(where, after, lens) & listed) / K)
        for name, values in shares.items():
            assert getattr(found, name)[layer] == pytest.approx(np.mean(values), abs=1e-12)
            of_texts = [
                np.mean([value for value, (its, _) in zip(values, plain.places, strict=True) if its == text])
                for text in range(len(plain.texts))
            ]
            assert getattr(found, f"{name}_sd")[layer] == pytest.approx(np.std(of_texts, ddof=1), abs=1e-9)


@pytest.mark.parametrize("plain", FAMILIES, indirect=True)
def test_states_are_drawn_as_the_recipe_says(plain: Plain) -> None:
    n, n_layers = 4, plain.model.n_layers
    found = state_samples(runs_of(plain.model.folder), n, SEED)
    numbers = np.random.RandomState(SEED).randint(len(plain.places) * n_layers, size=2 * n).tolist()
    expected = [plain.state(plain.places[number // n_layers], number % n_layers) for number in numbers]
    assert found == pytest.approx(np.stack(expected), abs=1e-4)
