"""A sentence in two models: states of a run, and states of any origin as tokens."""

from pydantic import ConfigDict, Field

from precompute.live.wire.shared import Likely, Wire
from precompute.shape import Predicts


class StatesAsk(Wire):
    text: str
    layer: int | None = None  # the stream after it; the last one
    k: int = Field(5, ge=1, le=50)


class _States(Wire):
    model_config = ConfigDict(ser_json_bytes="base64", val_json_bytes="base64")

    states: bytes  # (positions, d_model) float32, little-endian, row after row


class StatesAnswer(_States):
    predicts: Predicts  # what `cells` tell
    tokens: tuple[int, ...]
    layer: int
    cells: tuple[tuple[Likely, ...], ...]  # of every position: what the model itself makes of its state


class StatesReadingAsk(_States):
    k: int = Field(5, ge=1, le=50)


class StatesReadingAnswer(Wire):
    predicts: Predicts
    cells: tuple[tuple[Likely, ...], ...]  # of every state
