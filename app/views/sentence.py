"""A sentence in two models: what A makes of its state at every position after a layer, and what that becomes in B."""

import numpy as np
from numpy.typing import NDArray
from typing_extensions import TypedDict

from lexiscope.precompute.errors import BadRequest
from lexiscope.precompute.index.index import Index
from lexiscope.precompute.live.wire.answers import Predicted, StatesAnswer, StatesReadingAnswer, Token, put_words
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
    states = np.frombuffer(answer["states"], "<f4")
    if states.size != len(answer["tokens"]) * len(kernel):
        raise BadRequest("the states that the worker gave do not fit the kernel: compare the two models anew")
    with np.errstate(over="ignore", invalid="ignore"):  # B's worker refuses what is no number
        turned = states.reshape(len(answer["tokens"]), -1).astype(np.float64) @ kernel.astype(np.float64)
        return turned.astype("<f4").tobytes()


def sentence_of(a: Index, b: Index, text: str, states: StatesAnswer, read: StatesReadingAnswer) -> Sentence:
    put_words([states["tokens"], states["cells"]], a.tokens.texts)
    put_words(read["cells"], b.tokens.texts)
    positions: list[SentencePosition] = [
        {
            "token": token,
            "a": own,
            "b": other,
            "same": a.tokens.surface(own[0]["token"]) == b.tokens.surface(other[0]["token"]),
        }
        for token, own, other in zip(states["tokens"], states["cells"], read["cells"], strict=True)
    ]
    return {
        "text": text,
        "layer": states["layer"],
        "predicts_a": states["predicts"],
        "predicts_b": read["predicts"],
        "positions": positions,
    }
