"""Set up the HTTP server of `serve` and `worker`: its socket, the limits that uvicorn enforces, and how many files it
may open."""

import errno
import resource
import socket
from pathlib import Path
from typing import TYPE_CHECKING

from lexiscope.precompute.errors import ServeError

if TYPE_CHECKING:
    import uvicorn
    from starlette.types import ASGIApp

    from lexiscope.app.settings import Settings

BACKLOG = 2048
LARGEST_PORT = 65535
HEADER_BYTES = 1 << 15  # largest headers of a request; a request with more is answered 400
MOST_OPEN_FILES = 65536
WORKER_KEEP_ALIVE_SECONDS = 120  # of a worker: longer than the server keeps idle connections (live/connections.py)


def make_server(
    app: "ASGIApp", settings: "Settings", *, grace_seconds: int, keep_alive_seconds: int = 5
) -> "uvicorn.Server":
    """Make a uvicorn server. When it stops, answers that have begun get `grace_seconds` to finish."""
    import uvicorn

    config = uvicorn.Config(
        app,
        # During a burst of 120 connections a newcomer waits 7 s with uvloop, which lets in one connection per round,
        # and 1 to 2 s with asyncio, at nearly the same rate.
        loop="asyncio",
        http="h11",  # uvicorn limits the size of headers with h11 only
        ws="none",
        lifespan="on",
        log_level=settings.log_level,
        access_log=False,  # uvicorn would log what visitors type; app/asgi/middleware.py does not
        server_header=False,
        # uvicorn refuses the connection that reaches the limit, so the limit is one more
        limit_concurrency=min(settings.connections, raise_file_limit() * 3 // 4) + 1,
        h11_max_incomplete_event_size=settings.url_limit + HEADER_BYTES,
        timeout_keep_alive=keep_alive_seconds,
        timeout_graceful_shutdown=grace_seconds,
    )
    return uvicorn.Server(config)


def raise_file_limit() -> int:
    """Raise the limit of open files of this process as far as the system allows, and return the new limit."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = MOST_OPEN_FILES if hard == resource.RLIM_INFINITY else min(hard, MOST_OPEN_FILES)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
        soft = wanted
    return MOST_OPEN_FILES if soft == resource.RLIM_INFINITY else soft


def listen(host: str, port: int) -> socket.socket:
    """Return a socket that accepts connections at once; raise ServeError with the reason if that fails."""
    try:
        if not 0 <= port <= LARGEST_PORT:  # the system would take the rest of a division
            raise OSError(errno.EINVAL, f"ports go from 0 to {LARGEST_PORT}")
        family, kind, protocol, _, address = socket.getaddrinfo(
            host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
        listener = socket.socket(family, kind, protocol)
        try:
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            listener.bind(address)
            listener.listen(BACKLOG)
        except OSError:
            listener.close()
            raise
    except OSError as error:
        raise ServeError(
            f"cannot listen at {host} port {port}: {error.strerror}. Give another port (--port 8001, or --port 0 for "
            "any that is free), or end the program that has this one"
        ) from None
    return listener


def listen_at_path(path: Path) -> socket.socket:
    """Return a Unix socket that only this user can connect to. A socket that a dead process left at the path is
    replaced."""
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        if path.is_socket() and not _somebody_listens(path):
            path.unlink()
        listener.bind(str(path))
        path.chmod(0o600)
        listener.listen(BACKLOG)
    except OSError as error:
        listener.close()
        reason = error.strerror or str(error)
        raise ServeError(f"cannot listen at {path}: {reason}. Give another path for --socket") from None
    return listener


def _somebody_listens(path: Path) -> bool:
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection:
        return connection.connect_ex(str(path)) == 0


def browser_address(listener: socket.socket) -> str:
    """Return the address of the listening server to open in a browser on this machine."""
    host, port = listener.getsockname()[:2]
    return url_of(host, port)


def url_of(host: str, port: int) -> str:
    """Return the URL of a server that listens at this host and port of this machine."""
    host = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(host, host)
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"
