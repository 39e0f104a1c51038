"""Visitors of a server on this machine: each keeps one connection and asks for the next page when it has the last.
They speak raw HTTP/1.1, so that they cost less than the server they measure."""

import asyncio
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import islice


@dataclass
class Visit:
    """What a number of visitors were answered."""

    answers: dict[int, int] = field(default_factory=dict)  # by status
    n_bytes: int = 0
    seconds: float = 0
    broken: int = 0  # connections that ended too early
    etags: dict[str, str] = field(default_factory=dict)

    @property
    def rate(self) -> float:
        return sum(self.answers.values()) / self.seconds


class _Visitor(asyncio.Protocol):
    def __init__(self, requests: Iterator[tuple[str, str]], visit: Visit, done: "asyncio.Future[None]") -> None:
        self.requests, self.visit, self.done = requests, visit, done
        self.buffer = bytearray()
        self.missing = -1  # bytes of the body that are still to come; -1 while the head is read

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self.transport = transport
        self._ask()

    def data_received(self, data: bytes) -> None:
        self.buffer += data
        if self.missing < 0:
            end = self.buffer.find(b"\r\n\r\n")
            if end < 0:
                return
            head = bytes(self.buffer[:end]).decode("latin-1").lower()
            self.status = int(head[9:12])
            length = head.partition("\r\ncontent-length: ")[2].partition("\r\n")[0]
            etag = head.partition("\r\netag: ")[2].partition("\r\n")[0]
            if etag:
                self.visit.etags[self.path] = etag
            self.missing = end + 4 + int(length or 0)
        if len(self.buffer) >= self.missing:
            self.visit.answers[self.status] = self.visit.answers.get(self.status, 0) + 1
            self.visit.n_bytes += len(self.buffer)
            self.buffer.clear()
            self.missing = -1
            self._ask()

    def connection_lost(self, _error: Exception | None) -> None:
        if not self.done.done():
            self.visit.broken += 1
            self.done.set_result(None)

    def _ask(self) -> None:
        request = next(self.requests, None)
        if request is None:
            self.done.set_result(None)
            self.transport.close()
            return
        self.path, etag = request
        condition = f"If-None-Match: {etag}\r\n" if etag else ""
        self.transport.write(f"GET {self.path} HTTP/1.1\r\nHost: localhost\r\n{condition}\r\n".encode())


def visit(port: int, paths: Iterator[str], visitors: int, etags: dict[str, str] | None = None) -> Visit:
    """Let all visitors ask for the paths, which they share, until none is left. With etags, the visits are repeated
    ones."""
    return asyncio.run(_visit(port, ((path, (etags or {}).get(path, "")) for path in paths), visitors))


def until(paths: Iterator[str], seconds: float) -> Iterator[str]:
    """Yield the paths for so many seconds."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        yield from islice(paths, 1)


async def _visit(port: int, requests: Iterator[tuple[str, str]], visitors: int) -> Visit:
    loop = asyncio.get_running_loop()
    result = Visit()
    start = time.perf_counter()
    done = []
    for _ in range(visitors):
        one: asyncio.Future[None] = loop.create_future()
        await loop.create_connection(lambda one=one: _Visitor(requests, result, one), "127.0.0.1", port)  # type: ignore[misc]
        done.append(one)
    await asyncio.wait_for(asyncio.gather(*done), 600)
    result.seconds = time.perf_counter() - start
    return result
