"""Other readings of a stored parameter: lists of a vector and pairs of a head, made in another way."""

from typing import Literal

from pydantic import Field

from precompute.live.wire.shared import Lens, Matrix, Scored, Wire
from precompute.shape import Preset

Reading = Literal["norm", "mlp"]  # the layer's norm folded in; the first MLP applied to the vocabulary


class ReadingAsk(Wire):
    kind: str  # a kind of vector
    layer: int
    index: int
    reading: Reading
    lens: Lens = "dot"
    k: int = Field(25, ge=1, le=100)


class ReadingAnswer(Wire):
    top: tuple[Scored, ...]
    bottom: tuple[Scored, ...]


class PairsReadingAsk(Wire):
    matrix: Matrix
    layer: int
    head: int
    reading: Reading
    lens: Lens = "dot"
    preset: Preset = "all"
    n: int = Field(50, ge=1, le=1000)


class ScoredPair(Wire):
    source: int
    target: int
    score: float


class PairsReadingAnswer(Wire):
    top: tuple[ScoredPair, ...]
    bottom: tuple[ScoredPair, ...]
