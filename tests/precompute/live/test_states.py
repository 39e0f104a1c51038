"""States of a text after one layer, and given states as tokens: against `transformers`."""

from collections.abc import Callable

import numpy as np
import pytest
import torch
from torch.nn import functional

from lexiscope.precompute.errors import BadRequest, NotFound
from lexiscope.precompute.live.engine import Engine
from lexiscope.precompute.live.wire.answers import Predicted, StatesAnswer
from lexiscope.precompute.live.wire.asks import StatesAsk, StatesReadingAsk
from lexiscope.precompute.live.wire.errors import Cancelled
from tests.precompute.live.reference import TEXT, Case, close, ids, numbers


def states_of(found: StatesAnswer, engine: Engine) -> torch.Tensor:
    return torch.from_numpy(np.frombuffer(found["states"], "<f4").copy()).view(-1, engine.shape.d_model)


def check_cell(cell: Predicted, logits: torch.Tensor) -> None:
    expected = logits.double().softmax(dim=0)
    assert numbers(cell) == pytest.approx(expected.topk(len(cell)).values.tolist(), rel=1e-3)
    assert [float(expected[token]) for token in ids(cell)] == pytest.approx(numbers(cell), rel=1e-3)


@pytest.mark.parametrize("layer", [None, 0, 1])
def test_states_are_those_of_transformers(every: Case, layer: int | None) -> None:
    found = every.engine.answer(StatesAsk(text=TEXT, layer=layer, k=4))
    expected = every.run(every.engine.words.prompt(TEXT))
    at = every.engine.shape.n_layers - 1 if layer is None else layer
    close(states_of(found, every.engine), expected.streams[at, "ff"])
    assert (found["layer"], ids(found["tokens"])) == (at, every.engine.words.prompt(TEXT))
    assert [len(cell) for cell in found["cells"]] == [4] * len(found["tokens"])
    if layer is None and expected.logits is not None:
        for cell, logits in zip(found["cells"], expected.logits, strict=True):
            check_cell(cell, logits)


@pytest.mark.parametrize("layer", [None, 0])
def test_given_states_are_read_as_the_models_own(every: Case, layer: int | None) -> None:
    found = every.engine.answer(StatesAsk(text=TEXT, layer=layer, k=4))
    read = every.engine.answer(StatesReadingAsk(states=found["states"], k=4))
    assert (read["cells"], read["predicts"]) == (found["cells"], found["predicts"])


def test_other_states_become_other_tokens(case: Case) -> None:
    w = case.engine.weights
    states = torch.randn(3, w.shape.d_model, generator=torch.Generator().manual_seed(0))
    read = case.engine.answer(StatesReadingAsk(states=states.numpy().astype("<f4").tobytes(), k=3))
    with torch.inference_mode():
        for cell, logits in zip(read["cells"], w.model.logits(states), strict=True):
            check_cell(cell, logits)


def test_an_encoder_without_a_head_gives_nearest_tokens(case_of: Callable[[str], Case]) -> None:
    case = case_of("bert-bare")
    w = case.engine.weights
    states = w.W_U[[20, 30]] - w.W_U.mean(dim=0)
    read = case.engine.answer(StatesReadingAsk(states=states.numpy().astype("<f4").tobytes(), k=1))
    assert read["predicts"] == "nearest"
    rows = w.W_U - w.W_U.mean(dim=0)
    cosines = functional.cosine_similarity(states[:, None], rows[None], dim=2)
    assert [cell[0]["id"] for cell in read["cells"]] == cosines.argmax(dim=1).tolist() == [20, 30]
    assert [numbers(cell)[0] for cell in read["cells"]] == pytest.approx([1, 1], abs=1e-5)


@pytest.mark.parametrize("layer", [3, -1, 10**30])
def test_a_layer_that_is_not_there(case: Case, layer: int) -> None:
    with pytest.raises(NotFound, match="does not exist here: 0 to 2 do"):
        case.engine.answer(StatesAsk(text=TEXT, layer=layer))


@pytest.mark.parametrize(("states", "said"), [
    (b"", "a state of this model has 32 numbers"), (b"123", "the states have 3 bytes"),
    (np.full(32, np.nan, "<f4").tobytes(), "no number"), (np.full(32, 1e30, "<f4").tobytes(), "too large"),
])  # fmt: skip
def test_what_is_no_state(case: Case, states: bytes, said: str) -> None:
    with pytest.raises(BadRequest, match=said):
        case.engine.answer(StatesReadingAsk(states=states))


def test_a_text_without_tokens_and_one_that_is_too_long(case: Case) -> None:
    for text, said in (("dog " * 100, "but the model has only 64 positions"), ("\ud800", "no text")):
        with pytest.raises(BadRequest, match=said):
            case.engine.answer(StatesAsk.model_construct(text=text, layer=None, k=5))


def test_nobody_waits_any_more(case: Case) -> None:
    with pytest.raises(Cancelled):
        case.engine.answer(StatesAsk(text=TEXT), cancelled=lambda: True)
    assert case.engine.answer(StatesAsk(text=TEXT))["tokens"]
