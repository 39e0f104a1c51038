"""What a worker answers when it has no answer: a Fault, with the status of the error.
Which errors there are is for live/errors.py, which turns a Fault back into one."""

from http import HTTPStatus

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response

from app.wire import Fault
from app.workers.errors import status_of
from app.workers.paths import PATHS
from precompute.errors import LexiscopeError


def refusal(error: LexiscopeError) -> Response:
    fault = fault_of(error)
    return fault_answer(fault.status, fault.detail, getattr(error, "retry_after", None))


def fault_of(error: LexiscopeError) -> Fault:
    status = status_of(error)
    return Fault(status=status, title=_title(status), detail=str(error))


def fault_answer(status: int, detail: str, retry_after: int | None = None) -> Response:
    body = Fault(status=status, title=_title(status), detail=detail).model_dump_json()
    headers = {} if retry_after is None else {"retry-after": str(retry_after)}
    return Response(body, status, headers, "application/json")


def _title(status: int) -> str:
    return "Nobody waits" if status == 499 else HTTPStatus(status).phrase


async def no_route(_: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    paths = " ".join(path for path, _ in PATHS.values())
    return fault_answer(error.status_code, f"ask with POST {paths}, or GET /health /metrics")
