"""Compute the states of a text after one layer, as numbers for another model and as tokens, and show given states as
tokens."""

from collections.abc import Callable
from contextlib import suppress

import numpy as np
import torch
from torch import Tensor

from lexiscope.precompute.errors import BadRequest
from lexiscope.precompute.live.parameters import check_number
from lexiscope.precompute.live.run import Watcher, run
from lexiscope.precompute.live.vocabulary import likelihoods, predicted
from lexiscope.precompute.live.weights import Weights
from lexiscope.precompute.live.wire.answers import Predicted, StatesAnswer, StatesReadingAnswer
from lexiscope.precompute.live.wire.asks import StatesAsk, StatesReadingAsk
from lexiscope.precompute.live.words import Words
from lexiscope.precompute.shape import Shape

NUMBER_BYTES = 4  # bytes of a float32


class _Enough(Exception):
    """Raised to end a run after the layer that was asked for."""


class _UpTo(Watcher):
    def __init__(self, last: int, check: Callable[[], None]) -> None:
        self.last, self.check = last, check
        self.state = torch.empty(0)

    def layer(self, layer: int) -> None:
        self.check()
        if layer > self.last:
            raise _Enough

    def stream(self, layer: int, after: str, x: Tensor) -> None:
        if (layer, after) == (self.last, "ff"):
            self.state = x


def states_after(w: Weights, tokens: Tensor, layer: int, check: Callable[[], None] = lambda: None) -> Tensor:
    """Run texts of one length, tokens (B, T), up to a layer, and return the stream after it, (B, T, d_model)."""
    seen = _UpTo(layer, check)
    with suppress(_Enough):
        run(w, tokens, [tokens.shape[1]] * len(tokens), [()] * len(tokens), seen)
    return seen.state


def text_states(w: Weights, words: Words, ask: StatesAsk, check: Callable[[], None]) -> StatesAnswer:
    """Run a text up to a layer. `check` is called before each layer; an error that it raises ends the work."""
    layer = w.shape.n_layers - 1 if ask.layer is None else ask.layer
    check_number("layer", layer, w.shape.n_layers)
    tokens = words.prompt(ask.text)
    if len(tokens) > w.n_positions:
        raise BadRequest(f"the text has {len(tokens)} tokens, but the model has only {w.n_positions} positions")
    states = states_after(w, torch.tensor([tokens], device=w.device), layer, check)[0]  # (T, d_model)
    numbers = states.cpu().numpy().astype("<f4").tobytes()
    return {
        "states": numbers,
        "predicts": w.shape.predicts,
        "tokens": [{"id": token} for token in tokens],
        "layer": layer,
        "cells": _cells(w, states, ask.k),
    }


def read_states(w: Weights, ask: StatesReadingAsk) -> StatesReadingAnswer:
    """Predict tokens from given states by the model's own last steps, as if the model had made the states itself."""
    positions = count_states(w.shape, ask)
    given = np.frombuffer(ask.states, "<f4").reshape(positions, w.shape.d_model).astype(np.float32)
    states = torch.from_numpy(given).to(w.device)
    if not states.square().sum(dim=1).isfinite().all():  # even the squares must be finite, because a norm needs them
        raise BadRequest("the states hold what is no number, or numbers that are too large")
    return {"predicts": w.shape.predicts, "cells": _cells(w, states, ask.k)}


def count_states(shape: Shape, ask: StatesReadingAsk) -> int:
    """Return how many states an ask gives; raise BadRequest if they cannot be states of this model."""
    positions, rest = divmod(len(ask.states), NUMBER_BYTES * shape.d_model)
    if rest or not positions:
        raise BadRequest(
            f"the states have {len(ask.states)} bytes: a state of this model has {shape.d_model} numbers of "
            f"{NUMBER_BYTES} bytes"
        )
    return positions


def _cells(w: Weights, states: Tensor, k: int) -> list[Predicted]:
    found = likelihoods(w, states, k, None)
    rows = zip(found.ids.tolist(), found.p.tolist(), strict=True)
    return [predicted(w.shape.predicts, *row) for row in rows]
