"""What asks and answers of several sorts hold: scored tokens, first tokens of lists, the names of lenses and ends."""

from typing import Literal

from pydantic import BaseModel, ConfigDict, Field

Lens = Literal["dot", "cosine"]
End = Literal["top", "bottom"]
Matrix = Literal["vo", "qk"]


class Wire(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)


class Scored(Wire):
    id: int
    score: float


class Likely(Wire):
    id: int
    p: float


class Unbuilt(Wire):
    """Layers that the index of whoever asks does not have, and the lens under which it would list them."""

    layers: frozenset[int] = Field(min_length=1)
    lens: Lens = "dot"


class FirstTokens(Wire):
    """The beginning of a vector's list, as the index will have it: seed words and prompts are answered with those of
    layers that are not built."""

    kind: str
    layer: int
    index: int
    end: End
    tokens: tuple[int, ...]
