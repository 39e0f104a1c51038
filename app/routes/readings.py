"""Asks the worker to read the vectors, or the pairs, of a stored page in another way."""

from dataclasses import replace
from typing import TypeVar

from starlette.requests import Request

from app.views.difference import check_can_run
from app.views.direction import DirectionView
from app.views.neuron import NeuronView
from app.views.pairs import PairsView, with_pairs_reading
from app.views.parameter_pages import vectors_of
from app.views.subhead import SubheadView
from app.views.vectors import Reading as VectorsReading
from app.views.vectors import vector_reading
from app.workers.client import LiveClient
from precompute.index.index import Index
from precompute.live.wire.readings import PairsReadingAsk, Reading, ReadingAsk

MAX_TOKENS, MAX_PAIRS = 100, 1000  # that a worker lists
V = TypeVar("V", NeuronView, SubheadView, DirectionView)


async def read_vectors_again(live: LiveClient, request: Request, index: Index, view: V, reading: Reading, k: int) -> V:
    """The view with the same vectors in another reading; NotFound of a difference."""
    check_can_run(index)
    vectors = {}
    for name, (kind, row) in vectors_of(index, view).items():
        ask = ReadingAsk.model_validate(
            {
                "kind": kind, "layer": view.layer, "index": row, "reading": reading, "lens": view.lens,
                "k": min(k, MAX_TOKENS),
            }
        )  # fmt: skip
        answer = await live.ask(view.model, ask, request)
        vectors[name] = vector_reading(index, kind, view.layer, row, view.lens, answer)
    return replace(view, reading=VectorsReading(name=reading, vectors=vectors))


async def read_pairs_again(
    live: LiveClient, request: Request, index: Index, view: PairsView, reading: Reading, k: int
) -> PairsView:
    """The view with the same head's pairs in another reading; NotFound of a difference."""
    check_can_run(index)
    answer = await live.ask(view.model, pairs_ask(view, reading, k), request)
    return with_pairs_reading(index, view, reading, answer)


def pairs_ask(view: PairsView, reading: Reading, k: int) -> PairsReadingAsk:
    return PairsReadingAsk.model_validate(
        {
            "matrix": view.matrix, "layer": view.layer, "head": view.head, "reading": reading, "lens": view.lens,
            "preset": view.preset, "n": min(k, MAX_PAIRS),
        }
    )  # fmt: skip
