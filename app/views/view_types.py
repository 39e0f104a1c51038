"""The shapes of a parameter's pages: frozen objects that the terminal, HTML, JSON and tables are made from.
Filling them from an index is for views/; pages about many parameters are in page_types.py."""

import json
from functools import cache
from typing import TYPE_CHECKING, Any, Self

import orjson
from pydantic import BaseModel, ConfigDict, Field

from app.views.lists import PairList, ScoredList
from app.views.lists import PairView as PairView
from app.views.lists import ScoredView as ScoredView
from app.views.lists import TokenView as TokenView


class View(BaseModel):
    """JSON has the fields of the design and no others; fields marked `exclude` are for people's eyes."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False, defer_build=True)

    @classmethod
    def of(cls, **fields: Any) -> Self:
        """From values out of an index, which were checked there: to check them again costs more than all else.
        What JSON leaves out may be in `later`: functions by name, called when somebody first asks."""
        for name, value in _defaults(cls):
            fields.setdefault(name, value)
        view = cls.__new__(cls)
        object.__setattr__(view, "__dict__", fields)
        return view

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any:
            if name in _UNSET:  # what pydantic keeps besides the fields
                return _UNSET[name]
            try:
                made = self.__dict__["later"][name]
            except KeyError:
                raise AttributeError(f"{type(self).__name__} has no {name}") from None
            value = self.__dict__[name] = made()
            return value

    def json_bytes(self) -> bytes:
        return orjson.dumps(_shown(self), default=_shown)

    def to_json(self) -> str:
        """In ASCII: whatever the encoding of the terminal or the pipe, it arrives as it left."""
        return json.dumps(orjson.loads(self.json_bytes()))


class VectorView(View):
    top: ScoredList
    bottom: ScoredList
    norm: float = Field(exclude=True)
    coherence: tuple[float | None, float | None] = Field(exclude=True)  # of top and bottom; None if undefined


class ReadView(View):
    """A vector's list in another reading."""

    top: ScoredList
    bottom: ScoredList
    overlap: float  # Jaccard of this top with the stored one of the same length and lens
    kept: tuple[int, ...] = Field(exclude=True)  # tokens of this top and bottom that the stored ones have, too


class OtherReading(View):
    """What a worker made of the same vectors: with norms folded in, or with tokens after the first MLP."""

    name: str  # norm, mlp
    vectors: dict[str, ReadView]


class FFView(View):
    model: str
    layer: int
    neuron: int
    lens: str
    key: VectorView
    value: VectorView
    up: VectorView | None = Field(None, exclude_if=lambda up: up is None)  # only where neurons are gated
    similarity: float
    reading: OtherReading | None = Field(None, exclude_if=lambda reading: reading is None)  # if asked for
    shared: tuple[TokenView, ...] = Field(exclude=True)  # at the top of key and value, of all that is stored
    opposed: tuple[TokenView, ...] = Field(exclude=True)  # of these, at the bottom of up


class ReadPairs(View):
    """A head's pairs as a worker made them: with norms folded in, or with tokens after the first MLP."""

    name: str  # norm, mlp
    pairs: PairList
    bottom: PairList
    overlap: float  # Jaccard of these pairs with the stored ones of the same length, preset and lens
    kept: frozenset[tuple[int, int]] = Field(exclude=True)  # pairs of either end that the stored end has, too


class PairsView(View):
    model: str
    layer: int
    head: int
    matrix: str
    lens: str
    preset: str
    pairs: PairList
    bottom: PairList
    reading: ReadPairs | None = Field(None, exclude_if=lambda reading: reading is None)  # if asked for
    columns: tuple[str, str] = Field(exclude=True)
    coherence: tuple[float | None, float | None] = Field(exclude=True)
    hidden: int = Field(exclude=True)  # of as many of the best pairs: how many the preset leaves out
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
    reading: OtherReading | None = Field(None, exclude_if=lambda reading: reading is None)  # if asked for
    note: str = Field(exclude=True)


class SeedView(View):
    word: str
    tokens: tuple[TokenView, ...]
    weight: float = 1.0


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


def _shown(view: Any) -> dict[str, Any] | orjson.Fragment:
    """The fields of a view that are data, for orjson; lists write themselves."""
    kind = type(view)
    if kind is VectorView:
        return orjson.Fragment(b'{"top":%b,"bottom":%b}' % (view.top.json(), view.bottom.json()))
    if kind is ScoredList or kind is PairList:
        return orjson.Fragment(view.json())
    if not isinstance(view, View):
        raise TypeError(f"{kind.__name__} is no part of a view")
    always, sometimes = _data(view.__class__)
    return {
        name: value
        for name, value in view.__dict__.items()
        if name in always or (value is not None and name in sometimes)
    }


_UNSET: dict[str, Any] = {
    "__pydantic_fields_set__": frozenset(),
    "__pydantic_extra__": None,
    "__pydantic_private__": None,
}


@cache
def _defaults(kind: type[View]) -> tuple[tuple[str, Any], ...]:
    return tuple((name, field.default) for name, field in kind.model_fields.items() if not field.is_required())


@cache
def _data(kind: type[View]) -> tuple[frozenset[str], frozenset[str]]:
    """The fields that JSON has, and those that it has unless they are None."""
    shown = {name: field for name, field in kind.model_fields.items() if not field.exclude}
    sometimes = frozenset(name for name, field in shown.items() if field.exclude_if)
    return frozenset(shown) - sometimes, sometimes
