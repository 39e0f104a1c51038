"""Asks two workers about a sentence: the states of A after a layer, and what B reads in them, turned by the kernel."""

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request

from lexiscope.app.library.library import Library
from lexiscope.app.live.client import LiveClient
from lexiscope.app.settings import Settings
from lexiscope.app.views.lengths import LIKELY_TOKENS
from lexiscope.app.views.sentence import Sentence, sentence_of, turned_states
from lexiscope.precompute.errors import BadRequest, NotFound
from lexiscope.precompute.index.comparison import Comparison
from lexiscope.precompute.index.index import Index
from lexiscope.precompute.live.wire.asks import StatesAsk, StatesReadingAsk
from lexiscope.precompute.live.wire.errors import TooLarge


async def read_sentence(
    live: LiveClient, library: Library, settings: Settings, comparison: Comparison, text: str, layer: int | None,
    request: Request,
) -> Sentence:  # fmt: skip
    """BadRequest where an index is of other weights than were compared, NotFound where there is none."""
    a, b = (_index(library, side.model, side.weights_sha256) for side in (comparison.a, comparison.b))
    n_layers = comparison.a.n_layers
    if layer is not None and layer >= n_layers:
        raise NotFound(f"layer {layer} does not exist in {comparison.a.model}: 0 to {n_layers - 1} do")
    kernel = await run_in_threadpool(comparison.kernel)
    live.prepare(comparison.b.model)
    states = await live.ask(comparison.a.model, StatesAsk(text=text, layer=layer, k=LIKELY_TOKENS), request)
    _check_size(len(states["tokens"]), comparison.b.d_model, settings)
    turned = await run_in_threadpool(turned_states, states, kernel)
    read = await live.ask(comparison.b.model, StatesReadingAsk(states=turned, k=LIKELY_TOKENS), request)
    return sentence_of(a, b, text, states, read)


def _index(library: Library, model: str, weights_sha256: str) -> Index:
    index = library.index(model)
    if index.manifest.weights_sha256 != weights_sha256:
        raise BadRequest(
            f"{model} has other weights here than when it was compared, so the kernel does not fit them: compare the "
            "two models anew"
        )
    return index


def _check_size(tokens: int, d_model: int, settings: Settings) -> None:
    """A worker reads bodies up to a limit; in them three bytes are four characters."""
    room = settings.body_limit * 3 // 4 - 1000
    if tokens * d_model * 4 > room:
        raise TooLarge(
            f"this text has {tokens} tokens: up to {max(0, room // (4 * d_model))} can be handed from model to model "
            "(the setting body_limit)"
        )
