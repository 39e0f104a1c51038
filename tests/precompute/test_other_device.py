"""Builds and live answers on a device that is not the CPU equal those on the CPU, for one family of each kind."""

from collections.abc import Callable
from pathlib import Path
from typing import Any, get_args

import numpy as np
import pytest
import torch
from safetensors.numpy import load_file

from lexiscope.precompute.live.engine import Engine
from lexiscope.precompute.live.wire import asks
from lexiscope.precompute.live.wire.answers import PanelName
from lexiscope.precompute.live.wire.grammar import Term, Word, WordPair
from lexiscope.precompute.weights.checkpoint import Checkpoint
from tests.support.builds import contents, quick_build
from tests.support.families import ARCHETYPES
from tests.support.other_device import other_device

TEXT = "The dog and the lion saw the horse in Paris"
WORDS = Term(word="horse"), Term(word="dog", weight=-0.5)
PAIRS = WordPair(source="France", target="Paris"), WordPair(source="dog", target="lion")


@pytest.mark.parametrize("family", ARCHETYPES)
def test_an_index_is_the_same(family: str, family_folder: Callable[[str], Path], tmp_path: Path) -> None:
    """Every file is equal but for moments, lines of chance and numbers of heads, which a device sums in an order of
    its own, and the manifest."""
    folders = [
        quick_build(family_folder(family), tmp_path / device, device=device, layers=(1,))
        for device in ("cpu", other_device())
    ]
    here, there = map(contents, folders)
    assert here.keys() == there.keys()
    stats = {name for name in here if name.startswith(("stats-", "chance", "heads-"))}
    assert len(stats) == 3
    assert {name for name in here if here[name] != there[name]} <= {"manifest.json"} | stats
    for name in stats:
        ours, theirs = (load_file(folder / name) for folder in folders)
        assert ours.keys() == theirs.keys()
        for array in ours:
            np.testing.assert_allclose(theirs[array], ours[array], rtol=1e-6, atol=1e-9, err_msg=f"{name}, {array}")


@pytest.fixture(scope="module", params=ARCHETYPES)
def engines(request: pytest.FixtureRequest, family_folder: Callable[[str], Path]) -> list[Engine]:
    folder = family_folder(request.param)
    return [Engine.load(Checkpoint.open(folder), device) for device in ("cpu", other_device())]


def prompt(**fields: Any) -> Callable[[Engine], object]:
    return lambda engine: engine.prompts(
        [asks.PromptAsk(text=TEXT, **fields), asks.PromptAsk(text="The dog", **fields)]
    )


def seeds(**fields: Any) -> Callable[[Engine], object]:
    return lambda engine: engine.seeds([asks.SeedsAsk(words=WORDS, kind=engine.shape.kinds, heads=1, **fields)])


def pairs_reading(**fields: Any) -> Callable[[Engine], object]:
    return lambda engine: engine.answer(asks.PairsReadingAsk(layer=1, head=0, **fields))


def states_read_back(engine: Engine) -> list[object]:
    """States of a text, and the same states read as those of any origin."""
    answer = engine.answer(asks.StatesAsk(text=TEXT, layer=1))
    return [answer, engine.answer(asks.StatesReadingAsk(states=answer["states"]))]


UNBUILT = {"layers": {0, 1, 2}}
OFF, SET = ({"kind": "head", "layer": 1, "head": 1},), ({"layer": 0, "neuron": 3, "value": 2.0},)
ASKS: dict[str, Callable[[Engine], object]] = {
    **{panel: prompt(panel=(panel,), neuron=1, unbuilt=UNBUILT) for panel in get_args(PanelName)},
    "changes": prompt(off=OFF, set=SET),
    "patterns-cosine": prompt(panel=("patterns",), lens="cosine", convention="exact", rows="tokens"),
    "patterns-final": prompt(panel=("patterns",), convention="final", head=1),
    "neurons-of-text": prompt(panel=("neurons",), neurons=({"layer": 0, "neuron": 3},)),
    "attribution-against": prompt(panel=("attribution",), against={"word": "dog"}),
    "seeds": seeds(unbuilt=UNBUILT, rank_of={"kind": "ff_value", "layer": 0, "index": 2}),
    "seeds-cosine": seeds(lens="cosine"),
    "relation-vo": lambda engine: engine.answer(asks.RelationAsk(pairs=PAIRS)),
    "relation-qk": lambda engine: engine.answer(asks.RelationAsk(pairs=PAIRS, matrix="qk", lens="cosine")),
    "transition": lambda engine: engine.answer(asks.TransitionAsk(pairs=PAIRS, k=4)),
    "transition-cosine": lambda engine: engine.answer(asks.TransitionAsk(pairs=PAIRS, k=4, lens="cosine")),
    "through-heads": lambda engine: engine.answer(asks.ThroughHeadsAsk(words=((Word(word="dog"),),), layers=(0, 1))),
    "norm": lambda engine: engine.answer(asks.ReadingAsk(kind="ff_key", layer=1, index=2, reading="norm")),
    "mlp": lambda engine: engine.answer(asks.ReadingAsk(kind="w_q", layer=1, index=2, reading="mlp", lens="cosine")),
    "first": lambda engine: engine.answer(asks.ReadingAsk(kind="w_o", layer=1, index=2, reading="first")),
    "pseudo": lambda engine: engine.answer(asks.ReadingAsk(kind="ff_key", layer=1, index=2, reading="pseudo")),
    "relation-norm": lambda engine: engine.answer(asks.RelationAsk(pairs=PAIRS, source="norm")),
    "pairs-pseudo": pairs_reading(matrix="vo", reading="pseudo"),
    "pairs-norm-dot": pairs_reading(matrix="qk", reading="norm"),
    "pairs-norm": pairs_reading(matrix="vo", reading="norm", preset="words"),
    "pairs-mlp": pairs_reading(matrix="qk", reading="mlp", lens="cosine"),
    "states": states_read_back,
}  # fmt: skip


def assert_same(found: Any, expected: Any) -> None:
    """Equal, but for the last bits of numbers."""
    if isinstance(expected, float):
        assert found == pytest.approx(expected, rel=1e-4, abs=1e-5)
    elif isinstance(expected, bytes):
        torch.testing.assert_close(*(torch.frombuffer(bytearray(x), dtype=torch.float32) for x in (found, expected)))
    elif isinstance(expected, list | tuple):
        for one, other in zip(found, expected, strict=True):
            assert_same(one, other)
    elif isinstance(expected, dict):
        assert found.keys() == expected.keys()
        for name in expected:
            assert_same(found[name], expected[name])
    else:
        assert found == expected


@pytest.mark.parametrize("ask", ASKS)
def test_a_live_answer_is_the_same(engines: list[Engine], ask: str) -> None:
    here, there = engines
    assert there.device.type == other_device()
    expected = ASKS[ask](here)
    assert not isinstance(expected, list) or not any(isinstance(answer, Exception) for answer in expected)
    assert_same(ASKS[ask](there), expected)


def test_devices_are_not_mixed(engines: list[Engine]) -> None:
    here, there = (engine.parameters.W_E for engine in engines)
    with pytest.raises(RuntimeError, match="Expected all tensors to be on the same device"):
        there @ here.T
    with pytest.raises((RuntimeError, TypeError)):
        there.numpy()
    assert torch.equal(there.cpu() @ here.T, here @ here.T)
