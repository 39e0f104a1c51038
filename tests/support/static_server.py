"""Serve the files of a folder, as any web server does, with errors on the way: a connection that ends in the middle, a
redirect, a client that is killed while it reads."""

import os
import signal
import ssl
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import unquote

PIECE = 1 << 10  # bytes that are written at once


@contextmanager
def serving_at(handler: type[BaseHTTPRequestHandler], tls: ssl.SSLContext | None = None) -> Iterator[str]:
    """Run a server on this machine until the end of the block, and yield its address."""
    server = _Server(("127.0.0.1", 0), handler)
    if tls:
        server.socket = tls.wrap_socket(server.socket, server_side=True)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


class _Server(ThreadingHTTPServer):
    def handle_error(self, request: Any, client_address: Any) -> None:
        """Pass over a client that was killed."""
        if not isinstance(sys.exception(), ConnectionError):
            super().handle_error(request, client_address)


class Outgoing:
    """Decide what happens to the bytes that leave a server; shared by all its connections."""

    def __init__(self) -> None:
        self.sent = 0  # bytes of all answers
        self.cut: dict[str, int] = {}  # file names: the next answer with this file ends after so many bytes
        self._left: int | None = None  # bytes after which the process below gets a signal
        self._signal = signal.SIGKILL
        self._victim: int | None = None
        self._known = threading.Event()

    def arm(self, n_bytes: int, with_signal: signal.Signals = signal.SIGKILL) -> None:
        """Send the signal after `n_bytes`; call this before starting the process that `aim` then names."""
        self._known.clear()
        self._left, self._signal = n_bytes, with_signal

    def aim(self, pid: int) -> None:
        self._victim = pid
        self._known.set()

    def write(self, handler: BaseHTTPRequestHandler, name: str, body: bytes) -> None:
        """Write the body; raise ConnectionError where the answer is to end."""
        end = self.cut.pop(name, len(body))
        for start in range(0, min(end, len(body)), PIECE):
            piece = body[start : min(start + PIECE, end)]
            handler.wfile.write(piece)
            self.sent += len(piece)
            if self._left is not None:
                self._left -= len(piece)
                if self._left <= 0:
                    self._left = None
                    assert self._known.wait(300)
                    assert self._victim
                    os.kill(self._victim, self._signal)
        if end < len(body):
            raise ConnectionError("cut on purpose")


class StaticServer:
    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.outgoing = Outgoing()
        self.asked: list[str] = []  # paths
        self.statuses: dict[str, int] = {}  # files that answer with an error
        self.redirects: dict[str, str] = {}  # path -> address
        self.headers: dict[str, str] = {}

    def names(self) -> list[str]:
        return [path.rsplit("/", 1)[-1] for path in self.asked]

    @contextmanager
    def serve(self) -> Iterator[str]:
        with serving_at(type("Handler", (_Handler,), {"site": self})) as url:
            yield url


class _Handler(BaseHTTPRequestHandler):
    site: StaticServer
    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        site, path = self.site, unquote(self.path).lstrip("/")
        site.asked.append(path)
        if path in site.redirects:
            self._answer(302, path, b"", {"Location": site.redirects[path]})
            return
        name = path.rsplit("/", 1)[-1]
        file = site.folder / path
        if name in site.statuses or not file.is_file():
            self._answer(site.statuses.get(name, 404), name, b"no")
            return
        self._answer(200, name, file.read_bytes())

    def log_message(self, *_: Any) -> None:
        pass

    def _answer(self, status: int, name: str, body: bytes, headers: dict[str, str] | None = None) -> None:
        self.send_response(status)
        for key, value in {"Content-Length": str(len(body)), **self.site.headers, **(headers or {})}.items():
            self.send_header(key, value)
        try:
            self.end_headers()
            self.site.outgoing.write(self, name, body)
        except (ConnectionError, BrokenPipeError):
            self.close_connection = True
