"""Answers with their headers as they leave: in one piece, or, where they are long, part by part, while other visitors
have their turns. What the parts are is for faces.py."""

from collections.abc import AsyncIterator, Iterable, Iterator
from itertools import chain
from typing import TypeAlias

from starlette.responses import Response, StreamingResponse

from app.addresses import FORMATS, content_type
from app.turns import Turns

_CONTENT_TYPES = {face: (b"content-type", content_type(face).encode()) for face in FORMATS}
Headers: TypeAlias = list[tuple[bytes, bytes]]


class Answer(Response):
    """Starlette takes longer to encode headers than a list takes to be read."""

    def __init__(self, body: bytes, status: int, headers: Headers) -> None:
        self.status_code, self.background, self.body, self.raw_headers = status, None, body, headers


def answer(body: bytes, face: str, headers: Headers) -> Response:
    return Answer(body, 200, [*headers, (b"content-length", b"%d" % len(body)), _CONTENT_TYPES[face]])


def in_parts(parts: Iterator[bytes], face: str, headers: Headers, turns: Turns) -> Response:
    first, second = next(parts, b""), next(parts, None)
    if second is None:
        return answer(first, face, headers)
    streamed = StreamingResponse(_in_turns(chain((first, second), parts), turns))
    streamed.raw_headers = [*headers, _CONTENT_TYPES[face]]
    return streamed


async def _in_turns(parts: Iterable[bytes], turns: Turns) -> AsyncIterator[bytes]:
    for part in parts:
        yield part
        await turns.taken()
