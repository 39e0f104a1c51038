"""The work of a computing thread: give the engine a batch of requests and return the answers as JSON."""

from collections.abc import Callable, Hashable, Sequence
from math import log
from typing import TYPE_CHECKING, Any

from lexiscope.app.asgi.middleware import log_error
from lexiscope.app.worker.jobs import Job
from lexiscope.precompute.errors import LexiscopeError
from lexiscope.precompute.live.wire.asks import PromptAsk, SeedsAsk
from lexiscope.precompute.live.wire.errors import LiveFailed, NoMemory, TooLarge
from lexiscope.precompute.live.wire.fields import Ask, adapter

if TYPE_CHECKING:
    from lexiscope.precompute.live.engine import Engine

PADDING = 4 / 3  # prompts are computed together if the longest has at most this many times the tokens of the shortest


def batch_key(ask: Ask[Any], tokens: int) -> Hashable:
    """Return a key that is equal for requests that can share a computation and would take about as long alone."""
    match ask:
        case SeedsAsk():
            return "seeds", ask.heads, ask.rank
        case PromptAsk():
            return "prompt", ask.panel, int(log(max(tokens, 1), PADDING))
        case _:
            return object()  # a key that no other request has, so that the request is computed alone


class Computing:
    def __init__(self, engine: "Engine") -> None:
        self._engine = engine

    def __call__(self, batch: Sequence[Job]) -> list[bytes | Exception]:
        """Return an answer or an error for each job. If a batch fails, its jobs are computed one by one, so that only
        the jobs that fail have no answer."""
        wanted = [job for job in batch if job.wanted]
        try:
            results = dict(zip(wanted, self._answers(wanted), strict=True))
        except Exception as error:
            if len(wanted) > 1:
                results = {job: self([job])[0] for job in wanted}
            else:
                results = {job: _error_for_visitors(error) for job in wanted if job.wanted}
        return [results.get(job) or LiveFailed("nobody waited for it") for job in batch]

    def _answers(self, jobs: Sequence[Job]) -> list[bytes | Exception]:
        asks = [job.ask for job in jobs]

        def unwanted() -> bool:
            return not any(job.wanted for job in jobs)

        match asks:
            case []:
                return []
            case [SeedsAsk(), *_]:
                answers: Sequence[Any] = self._engine.seeds(asks)  # type: ignore[arg-type]
            case [PromptAsk(), *_]:
                answers = self._engine.prompts(asks, _reports(jobs), unwanted)  # type: ignore[arg-type]
            case [ask]:
                answers = [self._engine.answer(ask, _reports(jobs), unwanted)]
            case _:
                raise TypeError("asks of these kinds are computed one by one")
        return [
            _error_for_visitors(answer)
            if isinstance(answer, LexiscopeError)
            else adapter(asks[0].answer).dump_json(answer)
            for answer in answers
        ]


def _error_for_visitors(error: Exception) -> Exception:
    if isinstance(error, NoMemory):
        return TooLarge(str(error))
    if isinstance(error, LexiscopeError):
        return error
    log_error("a live computation", error)
    return LiveFailed("this computation failed, which is an error of the program: the worker's log says more")


def _reports(jobs: Sequence[Job]) -> Callable[[str, float], None]:
    def report(stage: str, share: float) -> None:
        for job in jobs:
            job.report(stage, share)

    return report
