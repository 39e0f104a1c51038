"""Connections that are no requests yet, to a server in a process: endless, slow, half-sent, and too many of them."""

import resource
import socket
import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from app.connection import MOST_FILES, connection_class, raise_file_limit
from app.guard import HEADERS
from app.settings import Settings
from tests.support.processes import get, serving

LIMIT, SECONDS, MOST = 4096, 1.0, 6
WHOLE = b"GET /-/health HTTP/1.1\r\nHost: x\r\n\r\n"


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("LEXISCOPE_HEADER_LIMIT", str(LIMIT))
        patch.setenv("LEXISCOPE_HEADER_SECONDS", str(SECONDS))
        patch.setenv("LEXISCOPE_STALLED_SECONDS", str(SECONDS))
        patch.setenv("LEXISCOPE_CONNECTIONS", str(MOST))
        with serving("--data", tmp_path_factory.mktemp("data")) as (_, address):
            yield address


def connect(url: str) -> socket.socket:
    place = urlsplit(url)
    return socket.create_connection((place.hostname, place.port or 80), timeout=20)


def cut_off_after(connection: socket.socket, piece: bytes, pause: float = 0.0) -> int:
    """How often a piece can be sent before the server ends the connection."""
    for count in range(4096):
        try:
            connection.sendall(piece)
        except OSError:
            return count
        time.sleep(pause)
    return 4096


def until_the_end(connection: socket.socket) -> bytes:
    """What arrives until the server ends the connection."""
    received = bytearray()
    try:
        while data := connection.recv(65536):
            received += data
    except ConnectionResetError:
        pass
    return bytes(received)


@pytest.mark.parametrize(
    ("request_bytes", "status"),
    [
        (b"GET /" + b"x" * 20 * LIMIT, 414),
        (b"GET /" + b"x" * 2 * LIMIT + b" HTTP/1.1\r\nHost: x\r\n\r\n", 414),
        (b"GET / HTTP/1.1\r\nHost: x\r\nX: " + b"y" * 20 * LIMIT, 431),
        (b"GET / HTTP/1.1\r\nHost: x\r\nX: " + b"y" * 2 * LIMIT + b"\r\n\r\n", 431),
        (b"GET / HTTP/1.1\r\nHost: x\r\n" + b"X: y\r\n" * LIMIT, 431),
        (b"\r\n" * LIMIT, 431),
        (b"GET / HTTP/1.1\r\nX: \0\r\n\r\n", 400),
    ],
    ids=["address", "whole address", "header", "whole header", "headers", "blank lines", "no request"],
)
def test_what_is_endless_is_refused(url: str, request_bytes: bytes, status: int) -> None:
    with connect(url) as connection:
        connection.sendall(request_bytes)
        answer = until_the_end(connection)
    assert int(answer.split()[1]) == status
    assert b"connection: close" in answer
    assert all(f"{name}: {value}".encode() in answer for name, value in HEADERS.items())
    assert get(f"{url}/-/health")[0] == 200


def test_a_visitor_who_never_stops_is_cut_off(url: str) -> None:
    """And others are answered meanwhile."""
    with connect(url) as connection:
        connection.sendall(b"GET /")
        assert cut_off_after(connection, b"x" * 65536) < 1024
    assert get(f"{url}/-/health")[0] == 200


@pytest.mark.parametrize("start", [b"", b"G", b"GET / HTTP/1.1\r\nHost: x\r\nX: ", b"\r\n", WHOLE + b"GET /"])
def test_half_a_request_is_dropped(url: str, start: bytes) -> None:
    began = time.perf_counter()
    with connect(url) as connection:
        connection.sendall(start)
        answer = until_the_end(connection)
    assert answer.startswith(b"HTTP/1.1 200") if start.startswith(WHOLE) else answer == b""
    assert SECONDS * 0.9 < time.perf_counter() - began < SECONDS + 3


def test_trickling_wins_no_time(url: str) -> None:
    began = time.perf_counter()
    with connect(url) as connection:
        connection.sendall(b"GET /")
        assert cut_off_after(connection, b"x", pause=0.1) < 40
    assert time.perf_counter() - began < SECONDS + 3


@pytest.mark.parametrize("head", [b"POST / HTTP/1.1\r\nContent-Length: 1000000\r\n\r\n",
                                  b"GET /-/health HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n"])  # fmt: skip
def test_a_body_that_nobody_reads_ends_the_connection(url: str, head: bytes) -> None:
    began = time.perf_counter()
    with connect(url) as connection:
        connection.sendall(head)
        assert until_the_end(connection).startswith(b"HTTP/1.1 ")
    assert time.perf_counter() - began < 5


def test_pipelined_and_slow_but_whole_requests_are_answered(url: str) -> None:
    many = WHOLE * 3 + WHOLE.replace(b"\r\n\r\n", b"\r\nConnection: close\r\n\r\n")
    with connect(url) as connection:
        connection.sendall(many)
        assert until_the_end(connection).count(b"HTTP/1.1 200") == 4
    with connect(url) as connection:
        for part in (WHOLE[:7], WHOLE[7:20], WHOLE[20:]):
            connection.sendall(part)
            time.sleep(0.2)
        assert connection.recv(65536).startswith(b"HTTP/1.1 200")
        time.sleep(SECONDS + 0.5)  # between two requests the server waits longer than within one
        connection.sendall(WHOLE)
        assert connection.recv(65536).startswith(b"HTTP/1.1 200")


@pytest.mark.parametrize("taking", [True, False])
def test_who_takes_nothing_of_an_answer_is_left_and_who_is_slow_is_not(url: str, taking: bool) -> None:
    """Many answers to one visitor, so that they are more than the system keeps on their way."""
    count, request = 100, b"GET /openapi.json HTTP/1.1\r\nHost: x\r\n\r\n"
    place = urlsplit(url)
    with socket.socket() as connection:
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 65536)
        connection.settimeout(20)
        connection.connect((place.hostname, place.port))
        connection.sendall(request * (count - 1) + request.replace(b"\r\n\r\n", b"\r\nConnection: close\r\n\r\n"))
        received = []
        for _ in range(16):
            time.sleep(SECONDS / 4)
            received += [connection.recv(65536)] if taking else []
        received.append(until_the_end(connection))
    assert (b"".join(received).count(b"HTTP/1.1 200") == count) == taking


def test_one_visitor_too_many(url: str) -> None:
    time.sleep(0.2)  # those of other tests have left
    with ExitStack() as stack:
        for _ in range(MOST):
            stack.enter_context(connect(url))
        time.sleep(0.2)
        with connect(url) as connection:
            assert until_the_end(connection).startswith(b"HTTP/1.1 503")
    time.sleep(0.2)
    assert get(f"{url}/-/health")[0] == 200


def test_connections_leave_files_for_others() -> None:
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (256, before[1]))
        allowed = raise_file_limit()
        assert 256 < allowed <= MOST_FILES
        assert resource.getrlimit(resource.RLIMIT_NOFILE) == (allowed, before[1])
        assert connection_class(Settings(data=Path("data"), connections=65536)).most <= allowed * 3 // 4
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, before)
