"""Workers that run elsewhere: which of a model's is asked next, and which are left out until they answer again.
A thread asks each that is left out for its health, so that no visitor waits for it."""

import logging
import threading
import time
from collections.abc import AsyncGenerator, Collection, Sequence
from contextlib import aclosing
from dataclasses import dataclass
from itertools import count
from typing import TYPE_CHECKING, Literal

from pydantic import SecretStr, ValidationError

from app.workers.connections import WorkerAddress, parse_worker_urls, plain_client
from app.workers.errors import (
    STRANGER,
    LiveDown,
    LiveFull,
    NotAWorker,
    OtherWeights,
    TokenRefused,
    WorkerGone,
    WorkerSilent,
)
from app.workers.exchange import GONE, REFUSED, RETRY_SECONDS, Exchange
from app.workers.protocol import Answer, Health, Progress, token_header
from app.workers.reading import read_small

if TYPE_CHECKING:
    import httpx2

RECHECK_SECONDS = 2.0  # between two looks at a worker that is left out
CHECK_SECONDS = 5.0  # that it has to answer one
STRANGER_SECONDS = 10.0  # that one is left out whose health is good and whose answers are not

logger = logging.getLogger("lexiscope")


@dataclass(frozen=True)
class RemoteState:
    word: Literal["unchecked", "ready", "down", "refused"]
    reason: str = ""  # why it is left out; what follows "the worker of gpt2"


class RemoteWorker:
    """`state` is replaced as a whole, by the event loop and by the thread that looks after it."""

    def __init__(self, address: WorkerAddress, token: SecretStr) -> None:
        self.address = address
        self.state = RemoteState("unchecked")
        self.busy = 0  # requests of this server that are under way, counted by the event loop
        self.last_asked = 0  # which request that was, of all
        self._token = token
        self._lock = threading.Lock()
        self._next_look = 0.0  # not before this moment, of time.monotonic
        self._times_left_out = 0  # a look that began before the last time says nothing
        self._watcher: threading.Thread | None = None
        self._closed = threading.Event()

    def leave_out(self, state: RemoteState, seconds: float = 0) -> None:
        """It is not asked any more for so many seconds, and then until it answers."""
        with self._lock:
            self._times_left_out += 1
            self._next_look = time.monotonic() + seconds
            self._set(state)
        self.watch()

    def watch(self) -> None:
        """Looks after it, in a thread, until it answers; it is left out as soon as it does not."""
        with self._lock:
            if not (self._watcher and self._watcher.is_alive()) and not self._closed.is_set():
                self._watcher = threading.Thread(target=self._look_until_ready, name="remote worker", daemon=True)
                self._watcher.start()

    def close(self) -> None:
        """The thread ends as soon as its look does; nobody need wait for it."""
        self._closed.set()

    def _look_until_ready(self) -> None:
        with plain_client(self.address, CHECK_SECONDS, token_header(self._token)) as client:
            while True:
                times_left_out = self._times_left_out
                if self._closed.wait(max(0, self._next_look - time.monotonic())):
                    return
                state = self._look(client)
                with self._lock:
                    if times_left_out == self._times_left_out:
                        self._set(state)
                        if not state.reason:
                            self._watcher = None
                            return
                if self._closed.wait(RECHECK_SECONDS):
                    return

    def _look(self, client: "httpx2.Client") -> RemoteState:
        try:
            return _state(client)
        except Exception:  # whatever it is, the thread goes on
            if self.state.word != "down":
                logger.exception("the worker at %s cannot be looked at", self.address.url)
            return RemoteState("down", GONE)

    def _set(self, state: RemoteState) -> None:
        if self.state.word != state.word and self.state.word != "unchecked":
            logger.warning("the worker at %s is %s", self.address.url, state.word)
        self.state = state


class RemoteWorkers:
    """The workers of one model; a worker may be among those of several."""

    def __init__(self, workers: Sequence[RemoteWorker], request_number: "count[int]") -> None:
        self.workers = workers
        self._request_number = request_number

    def next_worker(self, tried: Collection[RemoteWorker] = ()) -> RemoteWorker | None:
        """The least busy of those that answer and were not tried yet; of equals the one that was asked longest ago."""
        able = [worker for worker in self.workers if not worker.state.reason and worker not in tried]
        return min(able, key=lambda worker: (worker.busy, worker.last_asked), default=None)

    async def ask(self, exchange: Exchange) -> AsyncGenerator[Progress | Answer]:
        """Reports and the answer of one worker. Who is refused by one goes to the next; who meets one that has died is
        tried once more, at another worker or at whatever takes its place at the same address; who meets what is no
        worker, at another."""
        tried: list[RemoteWorker] = []
        another_try = True  # after a death or nonsense: the question that gets it from two may get it from all
        worker = self.next_worker()
        if worker is None:
            raise self._nobody(exchange.model)
        while True:
            tried.append(worker)
            try:
                async with aclosing(self._ask_one(worker, exchange)) as reports:
                    async for report in reports:
                        yield report
                return
            except WorkerGone as gone:
                if not gone.answered:
                    worker.leave_out(RemoteState("down", GONE))
                elif not gone.replica:
                    worker.watch()
                following = self.next_worker(tried) or (worker if gone.answered else None)
                if not another_try or following is None:
                    raise
                another_try, worker = False, following
            except NotAWorker:
                following = self.next_worker(tried)
                if not another_try or following is None:  # the last one stays: it may be the question
                    raise
                worker.leave_out(RemoteState("down", STRANGER), STRANGER_SECONDS)
                another_try, worker = False, following
            except WorkerSilent:  # the visitor has waited long enough
                worker.watch()
                raise
            except (LiveFull, OtherWeights, TokenRefused) as refusal:
                if isinstance(refusal, TokenRefused):
                    worker.leave_out(RemoteState("refused", REFUSED))
                following = self.next_worker(tried)
                if following is None:
                    raise
                worker = following

    async def _ask_one(self, worker: RemoteWorker, exchange: Exchange) -> AsyncGenerator[Progress | Answer]:
        worker.last_asked = next(self._request_number)
        worker.busy += 1
        try:
            async with aclosing(exchange.reports(worker.address)) as reports:
                async for report in reports:
                    yield report
        finally:
            worker.busy -= 1

    def _nobody(self, model: str) -> LiveDown:
        states = sorted((worker.state for worker in self.workers), key=lambda state: state.word == "down")
        reason, number = states[0].reason or GONE, len(states)  # it may have come back just now
        if reason != STRANGER:
            reason = f"one of them {reason}" if number > 1 else f"the worker of {model} {reason}"
        none = f"none of the {number} workers of {model} can be asked: " if number > 1 else ""
        return LiveDown(none + reason, RETRY_SECONDS)


def remote_workers(worker_url: str, token: SecretStr) -> dict[str, RemoteWorkers]:
    """Those that the setting names, by model; "" stands for every model."""
    addresses = parse_worker_urls(worker_url)
    workers = {address: RemoteWorker(address, token) for of_model in addresses.values() for address in of_model}
    number = count(1)
    return {
        model: RemoteWorkers([workers[address] for address in of_model], number)
        for model, of_model in addresses.items()
    }


def _state(client: "httpx2.Client") -> RemoteState:
    """What a look at its health tells."""
    import httpx2

    try:
        with client.stream("GET", "/health") as response:
            if response.is_server_error:
                return RemoteState("down", GONE)
            may_ask = Health.model_validate_json(read_small(response, CHECK_SECONDS)).may_ask
        return RemoteState("ready") if may_ask else RemoteState("refused", REFUSED)
    except httpx2.HTTPError:
        return RemoteState("down", GONE)
    except (ValidationError, NotAWorker):
        return RemoteState("down", STRANGER)
