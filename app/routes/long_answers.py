"""An answer of any length: at once where it is short, else part by part, while other visitors have their turns.
What the parts are is for faces.py."""

import asyncio
from collections.abc import AsyncIterator, Iterable, Iterator, Mapping
from itertools import chain

from starlette.responses import Response, StreamingResponse


def in_parts(parts: Iterator[bytes], headers: Mapping[str, str], media_type: str) -> Response:
    first, second = next(parts, b""), next(parts, None)
    if second is None:
        return Response(first, 200, headers, media_type)
    return StreamingResponse(_in_turns(chain((first, second), parts)), 200, headers, media_type)


async def _in_turns(parts: Iterable[bytes]) -> AsyncIterator[bytes]:
    for part in parts:
        yield part
        await asyncio.sleep(0)
