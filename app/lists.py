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

from app.vocabulary import Vocabulary


class TokenView(TypedDict):
    id: int
    token: str


class ScoredView(TokenView):
    score: float


PairView = TypedDict("PairView", {"from": TokenView, "to": TokenView, "score": float})

E = TypeVar("E", ScoredView, PairView)

_SCORED = (b"", b',"score":', b"", b"},")
_PAIR = (b'{"from":', b"", b'},"to":', b"", b'},"score":', b"", b"},")


class Block:
    """The columns of several lists, one after another; their JSON is written in one go when the first is asked for."""

    __slots__ = ("_json", "ends", "ids", "scores", "vocabulary")

    def __init__(self, vocabulary: Vocabulary, ids: ArrayLike, scores: list[float], lengths: Sequence[int]) -> None:
        """`ids` are (n,) tokens, or (n, 2) pairs: from, to."""
        self.vocabulary = vocabulary
        self.ids = np.asarray(ids, np.intp)
        self.scores = scores
        self.ends = [0, *accumulate(lengths)]
        self._json: dict[int, bytes] = {}

    def json(self, end: int) -> bytes:
        """Of the list that ends there and is not empty."""
        if not self._json:
            self._write()
        return self._json[end]

    def _write(self) -> None:
        cells = list(_SCORED if self.ids.ndim == 1 else _PAIR) * len(self.scores)
        width = len(cells) // len(self.scores)
        openings = self.vocabulary.openings.column(self.ids.ravel())
        if width == len(_SCORED):
            cells[0::width] = openings
        else:
            cells[1::width], cells[3::width] = openings[0::2], openings[1::2]
        cells[width - 2 :: width] = orjson.dumps(self.scores)[1:-1].split(b",")
        ends = [end for end in dict.fromkeys(self.ends) if end]
        for end in ends:
            cells[width * end - 1] = b"}]\0["  # no text has a NUL in JSON
        self._json = dict(zip(ends, (b"[" + b"".join(cells)).split(b"\0"), strict=False))


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
        return self._block.json(self._last) if self else b"[]"

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
