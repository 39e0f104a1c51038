"""Cancel work as soon as its client has disconnected: the site when a visitor leaves, a worker when the site does."""

import asyncio
from collections.abc import Coroutine
from contextlib import suppress
from typing import Any, TypeVar

from starlette.requests import Request

from lexiscope.precompute.live.wire.errors import VisitorGone

T = TypeVar("T")


async def cancel_on_disconnect(request: Request, work: Coroutine[Any, Any, T]) -> T:
    """Return the work's result. If the client of the request disconnects first, cancel the work and raise VisitorGone.

    The body of the request must have been read before, if the request has one.
    """
    working, leaving = asyncio.create_task(work), asyncio.create_task(_disconnected(request))
    try:
        await asyncio.wait({working, leaving}, return_when=asyncio.FIRST_COMPLETED)
        if working.done():
            return working.result()
        leaving.result()  # raises the error that reading the body has ended with
        raise VisitorGone("nobody waits for this answer")
    finally:
        for task in (working, leaving):
            task.cancel()
            with suppress(asyncio.CancelledError, Exception):
                await task


async def _disconnected(request: Request) -> None:
    body_ended = False
    while (message := await request.receive())["type"] != "http.disconnect":
        if body_ended:  # Starlette's test client ends the body again and again, and never disconnects
            await asyncio.Event().wait()
        body_ended = not message.get("more_body", False)
