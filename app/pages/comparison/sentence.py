"""Read a sentence in two models: what A predicts from its state at every position after a layer, and what B predicts
from the same state translated into B's space."""

from collections.abc import Generator
from typing import Any

import numpy as np
from numpy.typing import NDArray
from typing_extensions import TypedDict

from lexiscope.app.formats.table import Column, Table
from lexiscope.app.library.library import Library
from lexiscope.app.lists.checks import LIKELY_TOKENS
from lexiscope.app.pages.page import TwoModelsSite
from lexiscope.app.settings import Settings
from lexiscope.precompute.errors import BadRequest, NotFound
from lexiscope.precompute.index.comparison import Comparison
from lexiscope.precompute.index.index import Index
from lexiscope.precompute.live.wire.answers import Predicted, StatesAnswer, StatesReadingAnswer, Token, put_words
from lexiscope.precompute.live.wire.asks import StatesAsk, StatesReadingAsk
from lexiscope.precompute.live.wire.errors import TooLarge
from lexiscope.precompute.shape import Predicts


class SentencePosition(TypedDict):
    token: Token  # a token of the text, cut by A's tokenizer
    a: Predicted  # what A predicts from its state
    b: Predicted  # what B predicts from A's state times the kernel
    same: bool  # whether the first predictions of both are the same text, regardless of case and surrounding space


class Sentence(TypedDict):
    text: str
    layer: int  # the layer of A after which states are taken
    # the kind of A's predictions: probabilities of the next or of a masked token, or nearest tokens
    predicts_a: Predicts
    predicts_b: Predicts
    positions: list[SentencePosition]


def sentence_asks(
    site: TwoModelsSite, comparison: Comparison, text: str, layer: int | None
) -> Generator[tuple[str, Any], Any, None]:
    """Ask A's worker for A's states after a layer, multiply these with the kernel that translates them, then ask B's
    worker what B predicts from the products.

    Raise BadRequest if an index was made from other weights than were compared, NotFound if there is no such index or
    layer.
    """
    compared_indexes(site.library, comparison)
    n_layers = comparison.a.n_layers
    if layer is not None and layer >= n_layers:
        raise NotFound(f"layer {layer} does not exist in {comparison.a.model}: 0 to {n_layers - 1} do")
    kernel = comparison.kernel()
    site.prepare(comparison.b.model)
    states: StatesAnswer = yield comparison.a.model, StatesAsk(text=text, layer=layer, k=LIKELY_TOKENS)
    _check_size(len(states["tokens"]), comparison.b.d_model, site.settings)
    turned = turned_states(states, kernel)
    yield comparison.b.model, StatesReadingAsk(states=turned, k=LIKELY_TOKENS)


def compared_indexes(library: Library, comparison: Comparison) -> list[Index]:
    """Return the indexes of both models; raise an error if one is not of the weights that were compared."""
    return [_index(library, side.model, side.weights_sha256) for side in (comparison.a, comparison.b)]


def _index(library: Library, model: str, weights_sha256: str) -> Index:
    index = library.index(model)
    if index.manifest.weights_sha256 != weights_sha256:
        raise BadRequest(
            f"{model} has other weights here than when it was compared, so the kernel does not fit them: compare the "
            "two models anew"
        )
    return index


def _check_size(tokens: int, d_model: int, settings: Settings) -> None:
    """Refuse a text whose states are too long for a worker to read; a request encodes three bytes as four
    characters."""
    room = settings.body_limit * 3 // 4 - 1000
    if tokens * d_model * 4 > room:
        raise TooLarge(
            f"this text has {tokens} tokens: up to {max(0, room // (4 * d_model))} can be handed from model to model "
            "(the setting body_limit)"
        )


def turned_states(answer: StatesAnswer, kernel: NDArray[np.float32]) -> bytes:
    """Multiply states of A, (positions, d_A), with the kernel (d_A, d_B), and return the resulting states of B as
    bytes, row after row."""
    states = np.frombuffer(answer["states"], "<f4")
    if states.size != len(answer["tokens"]) * len(kernel):
        raise BadRequest("the states that the worker gave do not fit the kernel: compare the two models anew")
    with np.errstate(over="ignore", invalid="ignore"):  # B's worker refuses values that are not finite
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


def sentence_table(a: str, b: str, sentence: Sentence) -> Table:
    columns = (
        Column("token", "token", get=lambda position: position["token"]),
        Column("reads_a", "tokens", get=lambda position: position["a"], heading=a, count=LIKELY_TOKENS),
        Column("reads_b", "tokens", get=lambda position: position["b"], heading=b, count=LIKELY_TOKENS),
    )
    return Table(f"A sentence after layer {sentence['layer']} of {a}", columns, sentence["positions"])
