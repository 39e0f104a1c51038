"""Answer with errors: a worker without an answer sends an ErrorAnswer, with the HTTP status of the error."""

from collections.abc import Mapping

from fastapi import FastAPI
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response

from lexiscope.precompute.errors import LexiscopeError
from lexiscope.precompute.live.wire.asks import ASKS
from lexiscope.precompute.live.wire.errors import LiveFailed, TimedOut, status_of, title_of
from lexiscope.precompute.live.wire.protocol import ErrorAnswer

MOST_REASONS = 5  # how many reasons are named why a request is malformed


def add_error_handlers(app: FastAPI) -> None:
    app.add_exception_handler(LexiscopeError, _known)
    app.add_exception_handler(RequestValidationError, _malformed)
    app.add_exception_handler(HTTPException, _http)
    app.add_exception_handler(Exception, _unexpected)


def error_answer(error: LexiscopeError) -> ErrorAnswer:
    status = _status(error)
    return ErrorAnswer(status=status, title=title_of(status), detail=str(error))


async def error_response(_: Request, status: int, detail: str, headers: Mapping[str, str]) -> Response:
    answer = ErrorAnswer(status=status, title=title_of(status), detail=detail)
    return Response(answer.model_dump_json(), status, dict(headers), "application/json")


def _status(error: LexiscopeError) -> int:
    """Return the HTTP status of an error. It is the one that a visitor gets, except 504 if time ran out, so that the
    site can tell this from a worker that is full."""
    return 504 if isinstance(error, TimedOut) else status_of(error)


async def _known(request: Request, error: Exception) -> Response:
    assert isinstance(error, LexiscopeError)
    retry_after = getattr(error, "retry_after", None)
    headers = {} if retry_after is None else {"retry-after": str(retry_after)}
    return await error_response(request, _status(error), str(error), headers)


async def _malformed(request: Request, error: Exception) -> Response:
    """Answer a malformed request: name the wrong fields, but not their values, which may be what a visitor typed."""
    assert isinstance(error, RequestValidationError)
    reasons = []
    for reason in error.errors()[:MOST_REASONS]:
        where = ".".join(map(str, reason["loc"][1:])) or "the request"
        reasons.append(f"{where}: {reason['msg']}")
    return await error_response(request, 422, "; ".join(reasons), {})


async def _http(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    detail = str(error.detail)
    if error.status_code in (404, 405):
        paths = " ".join(kind.path for kind in ASKS)
        detail = f"ask with POST {paths}, or GET /health /metrics"
    return await error_response(request, error.status_code, detail, error.headers or {})


async def _unexpected(request: Request, _: Exception) -> Response:
    return await _known(request, LiveFailed("this request failed, which is an error of the program"))
