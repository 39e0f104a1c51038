"""The lists of a parameter as an index has them, in columns: JSON and pages are written from whole columns, and an
entry is made where somebody asks for one. Reading the columns is for views/, rows of tables are for rows.py."""

from abc import abstractmethod
from collections.abc import Iterator, Sequence
from typing import Any, TypeVar, overload

import orjson
from pydantic import GetCoreSchemaHandler
from pydantic_core import CoreSchema
from typing_extensions import TypedDict

from app.vocabulary import Vocabulary


class TokenView(TypedDict):
    id: int
    token: str


class ScoredView(TokenView):
    score: float


PairView = TypedDict("PairView", {"from": TokenView, "to": TokenView, "score": float})

E = TypeVar("E", ScoredView, PairView)


class _Columns(Sequence[E]):
    """A sequence of entries like any tuple of them, also to pydantic and in the OpenAPI document."""

    __slots__ = ("scores", "vocabulary")

    def __init__(self, vocabulary: Vocabulary, scores: list[float]) -> None:
        self.vocabulary = vocabulary
        self.scores = scores

    @abstractmethod
    def json(self) -> bytes: ...

    def __len__(self) -> int:
        return len(self.scores)

    @overload
    def __getitem__(self, at: int) -> E: ...
    @overload
    def __getitem__(self, at: slice) -> tuple[E, ...]: ...
    def __getitem__(self, at: int | slice) -> E | tuple[E, ...]:
        if isinstance(at, slice):
            return tuple([self._entry(each) for each in range(*at.indices(len(self)))])
        return self._entry(at)

    def __iter__(self) -> Iterator[E]:
        return map(self._entry, range(len(self)))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Sequence) and tuple(self) == tuple(other)

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return repr(tuple(self))

    @abstractmethod
    def _entry(self, at: int) -> E: ...


class ScoredList(_Columns[ScoredView]):
    __slots__ = ("ids",)

    def __init__(self, vocabulary: Vocabulary, ids: list[int], scores: list[float]) -> None:
        super().__init__(vocabulary, scores)
        self.ids = ids

    def json(self) -> bytes:
        cells = [b"", b',"score":', b"", b"},"] * len(self.ids)
        if not cells:
            return b"[]"
        cells[0::4] = self.vocabulary.openings.column(self.ids)
        cells[2::4] = _numbers(self.scores)
        return b"[%b]" % b"".join(cells)[:-1]

    def _entry(self, at: int) -> ScoredView:
        token = self.ids[at]
        return {"id": token, "token": self.vocabulary.texts[token], "score": self.scores[at]}

    @classmethod
    def __get_pydantic_core_schema__(cls, _: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        return handler(tuple[ScoredView, ...])


class PairList(_Columns[PairView]):
    __slots__ = ("firsts", "seconds")

    def __init__(self, vocabulary: Vocabulary, firsts: list[int], seconds: list[int], scores: list[float]) -> None:
        super().__init__(vocabulary, scores)
        self.firsts = firsts
        self.seconds = seconds

    def json(self) -> bytes:
        cells = [b'{"from":', b"", b'},"to":', b"", b'},"score":', b"", b"},"] * len(self.firsts)
        if not cells:
            return b"[]"
        openings = self.vocabulary.openings
        cells[1::7], cells[3::7] = openings.column(self.firsts), openings.column(self.seconds)
        cells[5::7] = _numbers(self.scores)
        return b"[%b]" % b"".join(cells)[:-1]

    def _entry(self, at: int) -> PairView:
        texts, first, second = self.vocabulary.texts, self.firsts[at], self.seconds[at]
        return {
            "from": {"id": first, "token": texts[first]},
            "to": {"id": second, "token": texts[second]},
            "score": self.scores[at],
        }

    @classmethod
    def __get_pydantic_core_schema__(cls, _: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        return handler(tuple[PairView, ...])


def _numbers(scores: list[float]) -> list[bytes]:
    return orjson.dumps(scores)[1:-1].split(b",")
