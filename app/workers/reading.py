"""Reads what a worker sends, up to a limit of bytes and time: one that means harm must not fill the server."""

import asyncio
import time
from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import TYPE_CHECKING

from app.workers.errors import NotAWorker

if TYPE_CHECKING:
    import httpx2

MOST_ANSWER_BYTES = 1 << 28  # the longest is a prompt's attention: 2,000,000 weights of some 20 digits each
MOST_SMALL_BYTES = 1 << 20  # of health, and of why there is no answer
MOST_RETRY_SECONDS = 3600
AS_IT_IS = {"accept-encoding": "identity"}  # what is compressed may be a thousand times longer than what was sent


def check_encoding(response: "httpx2.Response") -> None:
    if response.headers.get("content-encoding", "identity") != "identity":
        raise NotAWorker


async def read_body(response: "httpx2.Response", most_bytes: int) -> bytes:
    """NotAWorker if it is longer; how long it may take is the caller's to say."""
    check_encoding(response)
    body = bytearray()
    async with aclosing(response.aiter_raw()) as pieces:
        async for piece in pieces:
            body += piece
            if len(body) > most_bytes:
                raise NotAWorker
    return bytes(body)


async def read_lines(response: "httpx2.Response", most_bytes: int, patience: float) -> AsyncGenerator[str]:
    """Lines as they come, of `most_bytes` altogether; TimeoutError if one is not complete after `patience` seconds."""
    check_encoding(response)
    clock = asyncio.get_running_loop().time
    line, n_bytes, deadline = bytearray(), 0, clock() + patience
    async with aclosing(response.aiter_raw()) as pieces:
        while True:
            async with asyncio.timeout_at(deadline):
                piece = await anext(pieces, None)
            if piece is None:
                return
            n_bytes += len(piece)
            if n_bytes > most_bytes:
                raise NotAWorker
            for part in piece.splitlines(keepends=True):
                line += part
                if line.endswith(b"\n"):
                    yield line.decode(errors="replace").rstrip("\r\n")
                    line.clear()
                    deadline = clock() + patience


def read_small(response: "httpx2.Response", seconds: float) -> bytes:
    """The same for a thread: NotAWorker if it is longer than health is, or takes longer."""
    check_encoding(response)
    deadline = time.monotonic() + seconds
    body = bytearray()
    for piece in response.iter_raw():
        body += piece
        if len(body) > MOST_SMALL_BYTES or time.monotonic() > deadline:
            raise NotAWorker
    return bytes(body)


def retry_seconds(header: str) -> int | None:
    """A Retry-After in seconds, an hour at most; None if it is no number."""
    if not (header.isascii() and header.isdecimal()):
        return None
    return min(int(header[:6]), MOST_RETRY_SECONDS)
