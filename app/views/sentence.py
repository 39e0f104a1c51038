"""A sentence in two models: what A makes of its state at every position after a layer, and what that becomes in B."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray
from typing_extensions import TypedDict

from lexiscope.app.views.prompt import Predicted, predicted_tokens
from lexiscope.app.views.tokens import Token, token_of
from lexiscope.precompute.errors import BadRequest
from lexiscope.precompute.index.index import Index
from lexiscope.precompute.live.wire.answers import StatesAnswer, StatesReadingAnswer
from lexiscope.precompute.shape import Predicts


class SentencePosition(TypedDict):
    token: Token  # of A, which reads the text
    a: Predicted  # A's own reading of its state
    b: Predicted  # B's reading of the state times the kernel
    same: bool  # whether the first of both have one text, whatever its case and the space before it


class Sentence(TypedDict):
    text: str
    layer: int  # of A
    predicts_a: Predicts  # what its tokens are: probabilities of the next or of a masked token, or nearest tokens
    predicts_b: Predicts
    positions: list[SentencePosition]


def turned_states(answer: StatesAnswer, kernel: NDArray[np.float32]) -> bytes:
    """States of A, (positions, d_A), times the kernel (d_A, d_B): states of B, row after row."""
    states = np.frombuffer(answer.states, "<f4")
    if states.size != len(answer.tokens) * len(kernel):
        raise BadRequest("the states that the worker gave do not fit the kernel: compare the two models anew")
    with np.errstate(over="ignore", invalid="ignore"):  # B's worker refuses what is no number
        turned = states.reshape(len(answer.tokens), -1).astype(np.float64) @ kernel.astype(np.float64)
        return turned.astype("<f4").tobytes()


def sentence_of(a: Index, b: Index, text: str, states: StatesAnswer, read: StatesReadingAnswer) -> Sentence:
    positions: Sequence[SentencePosition] = [
        {
            "token": token_of(a.tokens, token),
            "a": predicted_tokens(a, states.predicts, own),
            "b": predicted_tokens(b, read.predicts, other),
            "same": a.tokens.surface(a.tokens.texts[own[0].id]) == b.tokens.surface(b.tokens.texts[other[0].id]),
        }
        for token, own, other in zip(states.tokens, states.cells, read.cells, strict=True)
    ]
    return {
        "text": text,
        "layer": states.layer,
        "predicts_a": states.predicts,
        "predicts_b": read.predicts,
        "positions": [*positions],
    }
