"""The lists of a parameter as an index has them, in columns: JSON and pages are written from whole columns, and an
entry is made where somebody asks for one. Reading the columns is for views/, rows of tables are for rows.py."""

from abc import abstractmethod
from collections.abc import Iterator, Sequence
from itertools import accumulate
from typing import Any, Self, TypeVar, overload

import numpy as np
import orjson
from numpy.typing import ArrayLike
from pydantic import GetCoreSchemaHandler
from pydantic_core import CoreSchema
from typing_extensions import TypedDict

from app.views.vocabulary import Vocabulary


class TokenView(TypedDict):
    id: int
    token: str


class ScoredView(TokenView):
    score: float


PairView = TypedDict("PairView", {"from": TokenView, "to": TokenView, "score": float})

E = TypeVar("E", ScoredView, PairView)


class Block:
    """The columns of several lists, one after another, and the pieces that their JSON is joined from."""

    __slots__ = ("_pieces", "ends", "ids", "scores", "vocabulary")

    def __init__(self, vocabulary: Vocabulary, ids: ArrayLike, scores: list[float], lengths: Sequence[int]) -> None:
        """`ids` are (n,) tokens, or (n, 2) pairs: from, to."""
        self.vocabulary = vocabulary
        self.ids = np.asarray(ids, np.intp)
        self.scores = scores
        self.ends = [0, *accumulate(lengths)]
        self._pieces: list[bytes] = []

    def json(self, first: int, last: int) -> bytes:
        """Of the entries of one list."""
        if first == last:
            return b"[]"
        if not self._pieces:
            self._pieces = self._made()
        width = len(self._pieces) // len(self.scores)
        return b"[%b}]" % b"".join(self._pieces[width * first : width * last])[2:]  # without the end of an entry before

    def _made(self) -> list[bytes]:
        """Of all lists at once."""
        words, scores = self.vocabulary, orjson.dumps(self.scores)[1:-1].split(b",")
        columns = [words.scored] if self.ids.ndim == 1 else [words.from_, words.to]
        width = len(columns) + 1
        pieces = scores * width
        for at, column in enumerate(columns):
            pieces[at::width] = column.column(self.ids if width == 2 else self.ids[:, at])
        pieces[width - 1 :: width] = scores
        return pieces


class _Columns(Sequence[E]):
    """A sequence of entries like any tuple of them, also to pydantic and in the OpenAPI document."""

    __slots__ = ("_block", "_first", "_last")

    def __init__(self, block: Block, row: int = 0) -> None:
        self._block = block
        self._first, self._last = block.ends[row : row + 2]

    @classmethod
    def of(cls, vocabulary: Vocabulary, ids: ArrayLike, scores: list[float]) -> Self:
        return cls(Block(vocabulary, ids, scores, [len(scores)]))

    @property
    def vocabulary(self) -> Vocabulary:
        return self._block.vocabulary

    @property
    def scores(self) -> list[float]:
        return self._block.scores[self._first : self._last]

    def json(self) -> bytes:
        return self._block.json(self._first, self._last)

    def __len__(self) -> int:
        return self._last - self._first

    @overload
    def __getitem__(self, at: int) -> E: ...
    @overload
    def __getitem__(self, at: slice) -> tuple[E, ...]: ...
    def __getitem__(self, at: int | slice) -> E | tuple[E, ...]:
        if isinstance(at, slice):
            return tuple(self._entries(at))
        at = range(len(self))[at]
        return self._entries(slice(at, at + 1))[0]

    def __iter__(self) -> Iterator[E]:
        return iter(self._entries(slice(None)))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Sequence) and tuple(self) == tuple(other)

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return repr(tuple(self))

    @abstractmethod
    def _entries(self, part: slice) -> list[E]: ...


class ScoredList(_Columns[ScoredView]):
    __slots__ = ()

    @property
    def ids(self) -> list[int]:
        found: list[int] = self._block.ids[self._first : self._last].tolist()
        return found

    def _entries(self, part: slice) -> list[ScoredView]:
        texts, columns = self.vocabulary.texts, zip(self.ids[part], self.scores[part], strict=True)
        return [{"id": token, "token": texts[token], "score": score} for token, score in columns]

    @classmethod
    def __get_pydantic_core_schema__(cls, _: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        return handler(tuple[ScoredView, ...])


class PairList(_Columns[PairView]):
    __slots__ = ()

    @property
    def sides(self) -> tuple[list[int], list[int]]:
        """The first tokens, and the second ones."""
        firsts, seconds = self._block.ids[self._first : self._last].T.tolist()
        return firsts, seconds

    def _entries(self, part: slice) -> list[PairView]:
        texts, firsts, seconds = self.vocabulary.texts, *self.sides
        return [
            {"from": {"id": a, "token": texts[a]}, "to": {"id": b, "token": texts[b]}, "score": score}
            for a, b, score in zip(firsts[part], seconds[part], self.scores[part], strict=True)
        ]

    @classmethod
    def __get_pydantic_core_schema__(cls, _: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        return handler(tuple[PairView, ...])
