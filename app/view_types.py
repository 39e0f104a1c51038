"""The shapes of what a page shows: frozen objects that the terminal, JSON and later HTML are made from.
Filling them from an index is for views.py."""

import json
from typing import Any

from pydantic import BaseModel, ConfigDict, Field, SerializerFunctionWrapHandler, model_serializer


class View(BaseModel):
    """JSON has the fields of the design and no others; fields marked `exclude` are for people's eyes."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)

    def to_json(self) -> str:
        """In ASCII: whatever the encoding of the terminal or the pipe, it arrives as it left."""
        return json.dumps(self.model_dump(by_alias=True), allow_nan=False)


class TokenView(View):
    id: int
    token: str


class ScoredView(TokenView):
    score: float


class VectorView(View):
    top: tuple[ScoredView, ...]
    bottom: tuple[ScoredView, ...]
    norm: float = Field(exclude=True)
    coherence: tuple[float | None, float | None] = Field(exclude=True)  # of top and bottom; None if undefined


class FFView(View):
    model: str
    layer: int
    neuron: int
    lens: str
    key: VectorView
    value: VectorView
    up: VectorView | None = None  # only where neurons are gated
    similarity: float

    @model_serializer(mode="wrap")
    def _without_absent_up(self, handler: SerializerFunctionWrapHandler) -> dict[str, Any]:
        fields: dict[str, Any] = handler(self)
        return {name: value for name, value in fields.items() if value is not None}


class PairView(View):
    source: TokenView = Field(serialization_alias="from")
    to: TokenView
    score: float


class PairsView(View):
    model: str
    layer: int
    head: int
    matrix: str
    lens: str
    preset: str
    pairs: tuple[PairView, ...]
    bottom: tuple[PairView, ...]
    columns: tuple[str, str] = Field(exclude=True)
    coherence: tuple[float | None, float | None] = Field(exclude=True)
    note: str = Field(exclude=True)


class SubheadView(View):
    model: str
    layer: int
    head: int
    subhead: int
    lens: str
    q: VectorView
    k: VectorView
    v: VectorView
    o: VectorView
    note: str = Field(exclude=True)


class SeedView(View):
    word: str
    tokens: tuple[TokenView, ...]


class RankedView(View):
    kind: str
    layer: int
    index: int
    score: float
    top: tuple[TokenView, ...]  # empty while its layer is not built


class SeedsView(View):
    model: str
    kind: str
    seeds: tuple[SeedView, ...]
    results: tuple[RankedView, ...]
