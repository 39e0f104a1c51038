"""Whether a worker still lives: it is asked for its health over its socket, and has a few seconds to answer.
Blocking, for the thread that watches it."""

import http.client
import socket
from pathlib import Path

from pydantic import ValidationError

from app.wire import Health


def busy_seconds(path: Path, timeout: float) -> float | None:
    """For how long it has been computing what it computes now; None if it does not answer."""
    try:
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection:
            connection.settimeout(timeout)
            connection.connect(str(path))
            connection.sendall(b"GET /health HTTP/1.1\r\nHost: worker\r\nConnection: close\r\n\r\n")
            answer = http.client.HTTPResponse(connection)
            answer.begin()
            return Health.model_validate_json(answer.read()).busy_seconds
    except (OSError, http.client.HTTPException, ValidationError):
        return None
