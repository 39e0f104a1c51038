"""Means and values of a second text in a run, against `transformers` whose modules are changed by hooks."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from lexiscope.precompute.errors import BadRequest, LexiscopeError, NotFound
from lexiscope.precompute.live.beforehand import SENTENCES
from lexiscope.precompute.live.cost import sentences_cost
from lexiscope.precompute.live.engine import Engine
from lexiscope.precompute.live.wire.asks import PromptAsk
from lexiscope.precompute.live.wire.errors import Cancelled
from lexiscope.precompute.weights.checkpoint import Checkpoint
from tests.precompute.live.reference import TEXT, Case, ids, numbers

OTHER = "The lion and the dog saw the horse in Paris"  # as many tokens
HEAD, NEURON = (1, "w_o", 2), (0, "ff_value", 7)
Place = tuple[int, str, int]  # a layer, the module whose input is changed, and a head or a neuron


def columns(case: Case, place: Place) -> slice:
    _, part, number = place
    width = case.engine.shape.d_head if part == "w_o" else 1
    return slice(number * width, (number + 1) * width)


def value(case: Case, place: Place, text: str) -> Tensor:
    """(T, d_head) of a head, (T, 1) of a neuron."""
    run = case.run(case.engine.words.prompt(text))
    return (run.mixed if place[1] == "w_o" else run.coefficients)[place[0]][:, columns(case, place)]


@contextmanager
def put(case: Case, given: list[tuple[Place, int | None, Tensor | float]]) -> Iterator[None]:
    """Give modules of `transformers` other inputs, in this order."""

    def hook(place: Place, position: int | None, x: Tensor | float) -> Callable[..., Any]:
        def change(_: Any, inputs: Any) -> Any:
            changed = inputs[0].clone()
            changed.view(-1, changed.shape[-1])[slice(None) if position is None else position, columns(case, place)] = x
            return (changed,)

        return change

    hooks = [
        case.net.module(place[0], place[1]).register_forward_pre_hook(hook(place, position, x))
        for place, position, x in given
    ]
    try:
        yield
    finally:
        for each in hooks:
            each.remove()


def check(case: Case, given: list[tuple[Place, int | None, Tensor | float]], **asked: Any) -> None:
    """A run says what `transformers` says with these values."""
    answer = case.ask(panel=("evolution", "attribution"), **asked)
    with put(case, given):
        run = case.net.run(ids(answer["tokens"]))
    logits = case.net.logits(run.streams[2, "ff"]) if run.logits is not None else None
    assert answer["evolution"] is not None
    assert answer["evolution_untouched"] is not None
    if logits is not None:
        p = logits.softmax(dim=1)
        np.testing.assert_allclose(answer["evolution"][-1]["answer"], p.max(dim=1).values, atol=1e-5)
        best = p[answer["position"]].topk(5)
        np.testing.assert_allclose(numbers(answer["prediction"]), best.values, atol=1e-5)
    (alone,) = case.engine.prompts([PromptAsk(text=TEXT, panel=("evolution",))])
    assert isinstance(alone, dict)
    assert alone["evolution"] is not None
    np.testing.assert_allclose(numbers(answer["untouched"]), numbers(alone["prediction"]), atol=1e-5)
    assert not np.allclose(answer["evolution"][-1]["answer"], alone["evolution"][-1]["answer"], atol=1e-6)


def test_means_of_the_prompt(every: Case) -> None:
    head, neuron = (value(every, place, TEXT).mean(dim=0) for place in (HEAD, NEURON))
    check(every, [(HEAD, None, head), (NEURON, None, neuron)], mean="1.h2,0.7")
    check(every, [(HEAD, 2, head)], mean="1.h2@2")
    check(every, [(NEURON, None, neuron), (HEAD, None, 0.0), (HEAD, 1, head), ((1, "ff_value", 5), 0, 2.5)],
          mean="0.7,1.h2@1", off="1.h2", set="1.5:2.5@0")  # fmt: skip


def test_means_of_the_sentences(every: Case) -> None:
    texts = [[value(every, place, sentence)[1:] for sentence in SENTENCES] for place in (HEAD, NEURON)]
    head, neuron = (torch.cat(some).mean(dim=0) for some in texts)
    check(every, [(HEAD, None, head), (NEURON, 3, neuron)], mean="1.h2,0.7@3", means="texts")
    over = every.ask(mean="1.h2", means="texts")["mean_over"]
    assert over == {"means": "texts", "positions": sum(len(x) for x in texts[0])}
    assert every.ask(mean="1.h2")["mean_over"] == {"means": "prompt", "positions": len(value(every, HEAD, TEXT))}
    assert every.ask()["mean_over"] is None


def test_values_of_a_second_text(every: Case) -> None:
    head, neuron = (value(every, place, OTHER) for place in (HEAD, NEURON))
    assert len(head) == len(value(every, HEAD, TEXT))
    asked: dict[str, Any] = {"from": OTHER}
    check(every, [(HEAD, None, head), (NEURON, None, neuron)], patch="1.h2,0.7", **asked)
    mean = value(every, (2, "w_o", 0), TEXT).mean(dim=0)
    check(every, [((2, "w_o", 0), None, mean), (HEAD, None, 0.0), (HEAD, 3, head[3])],
          patch="1.h2@3", mean="2.h0", off="1.h2", **asked)  # fmt: skip


def test_two_texts_side_by_side(every: Case) -> None:
    """Each is as it is alone, changes reach only the first; also in company, and where texts are of other lengths."""
    asks = [
        PromptAsk.model_validate(
            {"text": TEXT, "panel": ("evolution",), "position": position, "from": second, **changes}
        )
        for second, position in (("The dog", None), ("The dog", 1), ("The dog", 4), (TEXT + " and Rome", None))
        for changes in ({}, {"off": "1.h2"}, {"patch": "1.h2@1"})
    ]
    for ask, answer in zip(asks, every.engine.prompts(asks), strict=True):
        assert isinstance(answer, dict)
        second = answer["from"]
        assert second is not None
        place = second["position"]
        if ask.position == 1:
            assert place == 1
        alone = every.ask(ask.from_, panel=("evolution",), position=place if ask.position == 1 else None)
        assert (second["tokens"], place) == (alone["tokens"], alone["position"])
        np.testing.assert_allclose(numbers(second["prediction"]), numbers(alone["prediction"]), atol=1e-5)
        assert second["evolution"] is not None
        for row, expected in zip(second["evolution"], alone["evolution"] or (), strict=True):
            np.testing.assert_allclose(row["answer"], expected["answer"], atol=1e-5)
        assert bool(answer["untouched"]) == bool(ask.changes)
        assert (answer["evolution_untouched"] is None) == (not ask.changes)


def test_a_text_patched_with_itself_is_the_same(every: Case) -> None:
    plain, patched = every.ask(k=9), every.ask(k=9, patch="1.h2,0.7", **{"from": TEXT})
    np.testing.assert_allclose(numbers(plain["prediction"]), numbers(patched["prediction"]), atol=1e-6)
    one = every.ask("a", mean="1.h2")
    if len(one["tokens"]) == 1:  # the mean of one position is what stands there
        np.testing.assert_allclose(numbers(one["prediction"]), numbers(one["untouched"]), atol=1e-6)


@pytest.mark.parametrize(("fields", "kind", "said"), [
    ({"patch": "1.h2"}, BadRequest, "from is empty: patch takes values of a second text"),
    ({"patch": "1.h2", "from": "The dog"}, BadRequest, r"patch = '1.h2': the texts have \d+ and \d tokens"),
    ({"patch": "1.h2@7", "from": "The dog"}, BadRequest, "patch = '1.h2@7': the second text has the positions 0 to"),
    ({"patch": "1.h2@99", "from": TEXT}, NotFound, "position 99 does not exist here"),
    ({"mean": "1.h2", "off": "1.h2"}, BadRequest, "mean = '1.h2': it is changed in two ways"),
    ({"mean": "1.7@2", "set": "1.7:2@2"}, BadRequest, "mean = '1.7@2': it is changed in two ways"),
    ({"mean": "1.h2", "patch": "1.h2", "from": TEXT}, BadRequest, "changed in two ways"),
    ({"mean": "1.h4"}, NotFound, "head 4"), ({"mean": "1.5000"}, NotFound, "neuron 5000"),
    ({"patch": "7.h0", "from": TEXT}, NotFound, "layer 7"), ({"from": "dog " * 200}, BadRequest, "only 64 positions"),
])  # fmt: skip
def test_what_cannot_be_replaced(case: Case, fields: dict[str, str], kind: type[LexiscopeError], said: str) -> None:
    bad, good = case.engine.prompts([PromptAsk.model_validate({"text": TEXT, **fields}), PromptAsk(text=TEXT)])
    assert isinstance(good, dict)
    with pytest.raises(kind, match=said):
        raise bad if isinstance(bad, Exception) else AssertionError(bad)


def test_the_longest_texts(case: Case) -> None:
    """As many tokens as there are positions, in both."""
    text, n = "dog", case.engine.n_positions
    while len(case.engine.words.prompt(f"{text} dog")) <= n:
        text += " dog"
    answer = case.ask(text, patch="0.h1", mean="1.7", **{"from": text.replace("dog", "lion", 1)})
    assert len(answer["tokens"]) == n


def test_what_it_costs(case: Case) -> None:
    """Three runs; the sentences are run once, and nobody waits for them in vain."""
    engine = Engine.load(Checkpoint.open(case.folder), "cpu")
    asks = [PromptAsk.model_validate({"text": TEXT, "panel": ("evolution",), **more}) for more in (
        {}, {"from": TEXT}, {"from": TEXT, "patch": "1.h2"})]  # fmt: skip
    costs = [engine.cost(ask, 10) for ask in asks]
    assert [ask.runs for ask in asks] == [1, 2, 3]
    assert [after - before for before, after in pairwise(costs)] == pytest.approx([costs[0]] * 2)
    ask = PromptAsk.model_validate({"text": TEXT, "mean": "1.h2", "means": "texts"})
    dear = engine.cost(ask, 10)
    with pytest.raises(Cancelled):
        engine.prompts([ask], cancelled=lambda: True)
    assert engine.cost(ask, 10) == dear
    engine.prompts([ask])
    assert dear - engine.cost(ask, 10) == sentences_cost(engine.shape)
