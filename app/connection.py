"""A visitor's connection below the app: what is not yet a request is bounded in bytes and in time, and so is how many
there are. What whole requests get is for guard.py and beyond."""

import asyncio
import fcntl
import resource
import sys
import termios
from asyncio.events import TimerHandle
from contextlib import suppress
from typing import Any

from uvicorn.protocols.http.httptools_impl import STATUS_LINE, HttpToolsProtocol

from app.guard import HEADERS
from app.settings import Settings

LINGER = 2.0  # seconds in which a refused visitor may still send, so that the refusal arrives before the end does
DISCARDED = 1 << 20  # bytes that are read from such a visitor
MOST_FILES = 65536
_HEADERS = "".join(f"{name}: {value}\r\n" for name, value in HEADERS.items())


class Connection(HttpToolsProtocol):
    header_limit: int
    header_seconds: float
    stalled_seconds: float
    most: int  # connections at once

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self.url = b""
        self._pending = 0  # bytes since something of a request was complete
        self._progress = False
        self._in_head = False
        self._timer: TimerHandle | None = None
        self._stalled: TimerHandle | None = None
        self._refused = False

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        if len(self.connections) > self.most:
            transport.write(_answer(503, f"{self.most} visitors are here already: try again later (connections)"))
            transport.close()
        else:
            self._timer = self.loop.call_later(self.header_seconds, self._too_slow)

    def connection_lost(self, exc: Exception | None) -> None:
        self._stop_timer()
        self._taken()
        super().connection_lost(exc)

    def pause_writing(self) -> None:
        """More waits to be taken than is kept for a visitor: whatever the rest is made of stays in memory as well."""
        super().pause_writing()
        self._stalled = self.loop.call_later(self.stalled_seconds, self._look, self._untaken())

    def resume_writing(self) -> None:
        self._taken()
        super().resume_writing()

    def _look(self, before: int) -> None:
        if (now := self._untaken()) < before:
            self._stalled = self.loop.call_later(self.stalled_seconds, self._look, now)
        else:
            self.transport.abort()

    def _untaken(self) -> int:
        """Bytes of an answer here and in the system: the latter asks for more only once much of what it has is gone."""
        here: int = self.transport.get_write_buffer_size()
        with suppress(OSError):
            queued = fcntl.ioctl(self.transport.get_extra_info("socket").fileno(), termios.TIOCOUTQ, bytes(4))
            return here + int.from_bytes(queued, sys.byteorder)
        return here

    def _taken(self) -> None:
        if self._stalled:
            self._stalled.cancel()
            self._stalled = None

    def data_received(self, data: bytes) -> None:
        self._pending += len(data)
        if self._refused:
            if self._pending > DISCARDED:
                self.transport.abort()
            return
        self._progress = False
        super().data_received(data)
        if self._progress:
            self._pending = 0
        elif self._pending > self.header_limit:
            self._too_long()
        if self._progress and not self._in_head:
            if self._timer:
                self._stop_timer()
        elif self._timer is None and not self._refused:
            self._timer = self.loop.call_later(self.header_seconds, self._too_slow)

    def on_message_begin(self) -> None:
        self._in_head = True
        super().on_message_begin()

    def on_headers_complete(self) -> None:
        self._in_head, self._progress = False, True
        if self._refused:
            return
        if self._pending > self.header_limit:  # else it need not be counted
            length = len(self.url) + sum(len(name) + len(value) for name, value in self.headers)
            if length > self.header_limit:
                self._too_long()
                return
        super().on_headers_complete()

    def on_body(self, body: bytes) -> None:
        self._progress = True
        if not self._refused:
            super().on_body(body)

    def on_message_complete(self) -> None:
        self._progress = True
        if not self._refused:
            super().on_message_complete()

    def on_response_complete(self) -> None:
        super().on_response_complete()
        if self.cycle.response_complete and self.cycle.more_body and not self.transport.is_closing():
            self._linger()  # a body that nobody reads would keep the connection as long as it is sent

    def send_400_response(self, msg: str) -> None:
        self._refuse(400, msg)

    def _too_long(self) -> None:
        what, status = ("address", 414) if 2 * len(self.url) > self.header_limit else ("headers", 431)
        said = f"the {what} of this request: up to {self.header_limit} bytes are read (the setting header_limit)"
        self._refuse(status, said)

    def _too_slow(self) -> None:
        self._timer = None
        if self._answering():  # an earlier request on the same connection
            self._timer = self.loop.call_later(self.header_seconds, self._too_slow)
        else:
            self.transport.close()

    def _answering(self) -> bool:
        return self.cycle is not None and not self.cycle.response_complete

    def _refuse(self, status: int, detail: str) -> None:
        if self._refused:
            return
        if self._answering():  # words of ours would end up amid that answer
            self._refused = True
            self.transport.abort()
        else:
            self.transport.write(_answer(status, detail))
            self._linger()

    def _linger(self) -> None:
        """Ends soon: at once, with bytes unread, would be a reset, and the visitor would not see the answer."""
        self._refused = True
        self._unset_keepalive_if_required()
        self._stop_timer()
        self._pending = 0
        if self.transport.can_write_eof():
            self.transport.write_eof()
        self._timer = self.loop.call_later(LINGER, self.transport.abort)

    def _stop_timer(self) -> None:
        if self._timer:
            self._timer.cancel()
            self._timer = None


def _answer(status: int, detail: str) -> bytes:
    body = f"{detail}\n"
    about = f"content-type: text/plain; charset=utf-8\r\ncontent-length: {len(body)}\r\nconnection: close\r\n"
    return STATUS_LINE[status] + f"{about}{_HEADERS}\r\n{body}".encode()


def connection_class(settings: Settings) -> type[Connection]:
    """What uvicorn makes of each visitor who connects; takes as many open files as the system allows."""
    bounds = {
        "header_limit": settings.header_limit,
        "header_seconds": settings.header_seconds,
        "stalled_seconds": settings.stalled_seconds,
        "most": min(settings.connections, raise_file_limit() * 3 // 4),  # the others are for indexes and workers
    }
    return type("Connection", (Connection,), bounds)


def raise_file_limit() -> int:
    """How many files may be open from now on."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = MOST_FILES if hard == resource.RLIM_INFINITY else min(hard, MOST_FILES)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
        soft = wanted
    return MOST_FILES if soft == resource.RLIM_INFINITY else soft
