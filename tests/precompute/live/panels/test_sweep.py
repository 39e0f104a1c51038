"""Heads and neurons switched off one by one, against `transformers` with hooks that do the same."""

from collections.abc import Sequence
from typing import Any

import pytest
import torch
from scipy.stats import spearmanr

from lexiscope.precompute.errors import BadRequest
from lexiscope.precompute.live.panels import sweep as panel
from lexiscope.precompute.live.run import run as real_run
from lexiscope.precompute.live.wire.answers import Sweep, SweptPart
from lexiscope.precompute.live.wire.asks import PromptAsk
from lexiscope.precompute.live.wire.errors import Cancelled
from lexiscope.precompute.live.wire.grammar import HeadOff, NeuronSet, Word
from tests.precompute.live.panels.test_attribution import scores
from tests.precompute.live.reference import TEXT, Case, changed
from tests.precompute.live.test_run import TOUCHES, touched

Change = HeadOff | NeuronSet


def swept(case: Case, text: str = TEXT, **fields: Any) -> Sweep:
    found = case.ask(text, panel=("sweep",), **fields)["sweep"]
    assert found
    assert found["of"] == len(found["parts"])
    sizes = [abs(part["change"]) for part in found["parts"]]
    assert sizes == sorted(sizes, reverse=True)
    return found


def log_p(case: Case, tokens: tuple[int, ...], position: int, token: int, changes: Sequence[Change] = ()) -> float:
    """By transformers; the cosine, where the model predicts no tokens."""
    with touched(case.net, sorted(changes, key=lambda change: change.position is not None)):
        of_all = scores(case, tokens, position)
    return float(of_all[token] if case.engine.shape.predicts == "nearest" else of_all.log_softmax(dim=0)[token])


def off(part: SweptPart) -> Change:
    if part["head"] is None:
        assert part["neuron"] is not None
        return NeuronSet(layer=part["layer"], neuron=part["neuron"])
    return HeadOff(layer=part["layer"], head=part["head"])


def cut_of(case: Case, count: int, text: str = TEXT) -> float:
    """Return the strength of the neuron at this place among all."""
    strengths = sorted(
        (part["strength"] or 0 for part in swept(case, text, over="neurons", cut=0)["parts"]), reverse=True
    )
    return strengths[count - 1]


@pytest.mark.parametrize("over", ["heads", "neurons"])
@pytest.mark.parametrize("position", [None, 2])
def test_each_change_is_that_of_transformers(every: Case, over: str, position: int | None) -> None:
    tokens, s = every.engine.words.prompt(TEXT), every.engine.shape
    cut = cut_of(every, 15) if over == "neurons" else None
    found = swept(every, over=over, cut=cut, position=position)
    at, token = every.engine.words.usual_position(tokens) if position is None else position, found["token"]["id"]
    whole = log_p(every, tokens, at, token)
    assert found["log_p"] == pytest.approx(whole, abs=1e-4)
    assert found["of"] == (s.n_layers * s.n_heads if over == "heads" else 15)
    for part in found["parts"]:
        assert part["change"] == pytest.approx(log_p(every, tokens, at, token, [off(part)]) - whole, abs=2e-4)


def test_other_changes_stay(every: Case) -> None:
    """They hold in every run; what is off at all positions is left out, what is set is switched off."""
    tokens = every.engine.words.prompt(TEXT)
    changes: list[Change] = [*TOUCHES, NeuronSet(layer=2, neuron=4, value=2.0, position=1)]
    at = every.engine.words.usual_position(tokens)
    whole = log_p(every, tokens, at, 11, changes)
    for over in ("heads", "neurons"):
        found = swept(every, over=over, token=Word(word="#11", token=11), cut=0, **changed(changes))
        parts = [off(part) for part in found["parts"]]
        assert not {*parts} & {*TOUCHES}
        if over == "heads":
            assert len(parts) == 3 * every.engine.shape.n_heads - 2
        for part in found["parts"]:
            if over == "heads" or off(part) in (NeuronSet(layer=2, neuron=4), NeuronSet(layer=1, neuron=5)):
                others = [
                    each for each in changes if each.model_copy(update={"value": 0.0, "position": None}) != off(part)
                ]
                expected = log_p(every, tokens, at, 11, [*others, off(part)]) - whole
                assert part["change"] == pytest.approx(expected, abs=2e-4)


@pytest.mark.parametrize("against", ["mean", "none", Word(word="#7", token=7)])
def test_direct_effects_are_terms_of_the_attribution(every: Case, against: Any) -> None:
    fields = {"token": Word(word="#11", token=11), "against": against}
    terms = every.ask(panel=("attribution",), **fields)["attribution"]
    assert terms
    heads, neurons = (swept(every, over=over, cut=0, **fields) for over in ("heads", "neurons"))
    assert heads["against"] == neurons["against"] == terms["against"]
    direct = {
        (part["layer"], part["head"], part["neuron"]): part["direct"] for part in heads["parts"] + neurons["parts"]
    }
    for row in terms["layers"]:
        for head, term in enumerate(row["heads"]):
            assert direct[row["layer"], head, None] == pytest.approx(term, abs=1e-5)
    for part in (*terms["raises"], *terms["lowers"]):
        where = part["layer"], part["head"], part["neuron"]
        assert direct[where] == pytest.approx(part["term"], abs=1e-5)
    for found in (heads, neurons):
        pairs = [(part["change"], part["direct"]) for part in found["parts"]]
        assert found["spearman"] == pytest.approx(float(spearmanr(pairs).statistic), abs=1e-9)


def test_ranks_of_equal_numbers_are_shared() -> None:
    a, b = [1.0, 2, 2, 3, 3, 3, -1], [0.5, 0.5, 4, 4, -2, 0, 0]
    assert panel.spearman(a, b) == pytest.approx(float(spearmanr(a, b).statistic))
    assert panel.spearman([1, 1, 1], [1, 2, 3]) is None
    assert panel.spearman([1], [2]) is panel.spearman([], []) is None


def test_the_strongest_neurons_are_tried(case: Case, monkeypatch: pytest.MonkeyPatch) -> None:
    """As strong as the panel `sheet` says; the usual cut is answered, and one that is too low is refused by name."""
    monkeypatch.setattr(panel, "STRONGEST_NEURONS", 20)
    found = swept(case, over="neurons")
    sheet = case.ask(panel=("sheet",))["sheet"]
    assert sheet
    strengths = {(row["layer"], row["neuron"]): row["strength"] for row in sheet["neurons"]}
    strongest = sorted(strengths, key=lambda place: -strengths[place])[:20]
    assert sorted((part["layer"], part["neuron"]) for part in found["parts"]) == sorted(strongest)
    assert found["cut"] == pytest.approx(strengths[strongest[-1]])
    assert swept(case, over="neurons", cut=found["cut"]) == found
    assert swept(case, over="neurons", cut=1e6)["parts"] == []
    monkeypatch.setattr(panel, "MOST_NEURONS", 10)
    refused, good = case.engine.prompts([
        PromptAsk(text=TEXT, panel=("sweep",), over="neurons", cut=found["cut"]), PromptAsk(text=TEXT),
    ])  # fmt: skip
    assert isinstance(refused, BadRequest)
    assert isinstance(good, dict)
    offered = float(str(refused).rpartition("cut=")[2])
    assert 1 <= swept(case, over="neurons", cut=offered)["of"] <= 10


def test_passes_are_bounded(case: Case, monkeypatch: pytest.MonkeyPatch) -> None:
    """Several passes say the same as one, also where memory is short; a text of one token has a sweep, too."""
    whole, sizes = swept(case), list[int]()
    tokens = len(case.engine.words.prompt(TEXT))

    def run(*args: Any) -> torch.Tensor:
        sizes.append(len(args[3]))
        if len(args[3]) > 3:
            raise torch.OutOfMemoryError("CUDA out of memory")
        return real_run(*args)

    monkeypatch.setattr(panel, "run", run)
    monkeypatch.setattr(panel, "MOST_PASS_TOKENS", 6 * tokens)
    pieces = swept(case)
    assert max(sizes) == 6
    assert [part["layer"] for part in pieces["parts"]] == [part["layer"] for part in whole["parts"]]
    changes = [[part["change"] for part in found["parts"]] for found in (whole, pieces)]
    assert changes[0] == pytest.approx(changes[1], abs=1e-5)
    assert swept(case, "a", over="neurons", cut=0)["of"]


def test_nothing_is_left(case: Case) -> None:
    s = case.engine.shape
    heads = [HeadOff(layer=layer, head=head) for layer in range(s.n_layers) for head in range(s.n_heads)]
    found = swept(case, off=heads)
    assert (found["of"], found["parts"], found["spearman"]) == (0, [], None)


@pytest.mark.parametrize("over", ["heads", "neurons"])
def test_progress_and_its_end(case: Case, over: Any) -> None:
    """Every layer of every pass is reported, and asks whether anybody still waits."""
    ask, steps = PromptAsk(text=TEXT, panel=("sweep",), over=over), list[tuple[str, float]]()
    case.engine.prompts([ask], step=lambda stage, share: steps.append((stage, share)))
    shares = [share for stage, share in steps if stage == "sweep"]
    assert len(shares) > case.engine.shape.n_layers
    assert shares == sorted(shares)
    assert over == "neurons" or 0.9 < shares[-1] <= 1
    asked = iter(range(1000))
    with pytest.raises(Cancelled):
        case.engine.prompts([ask], cancelled=lambda: next(asked) > len(steps) - len(shares))
