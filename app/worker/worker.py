"""A model that answers requests: check their limits, queue them, wait for the computing threads, and report the
worker's health.

There are two lanes, each with a thread: one for runs of the model and whatever else takes long, one for quick answers,
so that a seed search never waits for a run. Equal requests share a job, even those of different visitors. Pairs of a
head take seconds to find, so the last answers with pairs are kept for the next visitor.
"""

import asyncio
import time
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from lexiscope.app.asgi.middleware import log_error
from lexiscope.app.settings import Settings
from lexiscope.app.worker.computing import Computing, batch_key
from lexiscope.app.worker.jobs import Job, Pace, Report
from lexiscope.app.worker.lane import ENDING, RESTART_SECONDS, Lane, retry_after
from lexiscope.app.worker.limits import Limits
from lexiscope.precompute.live.wire import asks
from lexiscope.precompute.live.wire.answers import OWN_LISTS
from lexiscope.precompute.live.wire.errors import LiveDown, LiveFailed, LiveFull, TimedOut
from lexiscope.precompute.live.wire.fields import Ask
from lexiscope.precompute.live.wire.protocol import Health

if TYPE_CHECKING:
    from lexiscope.precompute.live.engine import Engine

LONG_PROMPT = 2000  # a prompt of at least so many characters is split into tokens in a thread
RUN_BATCH_SECONDS = 2.0  # longest time that a batch of runs may take
MOST_KEPT = 50  # answers with pairs that are kept, of up to 2,000 pairs each: some 10 MB at most
QUICK_SECONDS = 0.5  # longest time that a quick answer, or a batch of them, may take


@dataclass(eq=False)
class Waiter:
    """One request that waits for a job's answer."""

    job: Job
    visitor: str
    report: Report | None
    arrived: float = field(default_factory=time.monotonic)


class Worker:
    """Answer requests to one model. Everything but the computing happens in the event loop in which the worker is
    `running`.

    `on_error` is called when a computing thread has ended, and with it the worker.
    """

    def __init__(
        self, engine: "Engine", model: str, weights_sha256: str, settings: Settings, on_error: Callable[[], None]
    ) -> None:
        self.model = model
        self.weights_sha256 = weights_sha256
        self._engine = engine
        self._settings = settings
        self._limits = Limits(settings)
        self._on_error = on_error
        self._error: BaseException | None = None  # the error that ended a computing thread
        self._lanes: tuple[Lane, ...] = ()  # the lane of runs, and the lane of quick answers
        self._tasks: list[asyncio.Task[None]] = []
        self._run_pace, self._quick_pace = Pace(engine.speed), Pace(engine.speed)
        self._asking: Counter[str] = Counter()  # how many requests of each visitor are under way
        self._under_way: dict[Ask[Any], Job] = {}
        self._kept: dict[Ask[Any], Job] = {}  # finished searches for pairs, the last used one last

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        compute = Computing(self._engine)
        self._lanes = (
            Lane(compute, self._settings, self._run_pace, RUN_BATCH_SECONDS),
            Lane(compute, self._settings, self._quick_pace, QUICK_SECONDS),
        )
        self._tasks = [asyncio.create_task(lane.run()) for lane in self._lanes]
        for task in self._tasks:
            task.add_done_callback(self._lane_ended)
        try:
            yield
        finally:
            for task in self._tasks:
                task.cancel()
            await asyncio.wait(self._tasks)

    @asynccontextmanager
    async def queued(self, ask: Ask[Any], visitor: str, report: Report | None = None) -> AsyncIterator[Waiter]:
        """Queue the request for as long as the caller waits for its answer."""
        if self._error:
            raise LiveDown(ENDING, RESTART_SECONDS)
        with self._counted(visitor):
            tokens = await self._checked_tokens(ask)
            waiter = Waiter(self._job(ask, tokens, visitor), visitor, report)
            if report:
                waiter.job.reports.append(report)
            try:
                yield waiter
            finally:
                self._leave(waiter)

    async def answer(self, waiter: Waiter) -> bytes:
        """Return the JSON that a computing thread makes; raise TimedOut if that takes too long."""
        try:
            async with asyncio.timeout(self.seconds_left(waiter)):
                # shielded, because other visitors may wait for the same job
                return await asyncio.shield(waiter.job.answer)
        except TimeoutError:
            limit = self._settings.request_seconds
            raise TimedOut(f"this took longer than {limit:g} seconds (the setting request_seconds)", 10) from None

    def seconds_left(self, waiter: Waiter) -> float:
        return max(0.0, waiter.arrived + self._settings.request_seconds - time.monotonic())

    def health(self, may_ask: bool = True) -> Health:
        """Return the health of the worker; raise LiveDown if it can compute no more. `may_ask` says whether the request
        had the token."""
        if self._error:
            raise LiveDown(f"the computing thread has ended ({type(self._error).__name__}): the worker ends as well")
        busy = [lane.busy_seconds for lane in self._lanes if lane.busy_seconds is not None]
        return Health(
            model=self.model,
            weights_sha256=self.weights_sha256,
            device=str(self._engine.device),
            queue=sum(lane.waiting for lane in self._lanes),
            busy=bool(busy),
            busy_seconds=max(busy, default=0.0),
            may_ask=may_ask,
        )

    @contextmanager
    def _counted(self, visitor: str) -> Iterator[None]:
        """Count one more request of the visitor while the context lasts; raise LiveFull if there are too many."""
        if self._asking[visitor] >= self._settings.visitor_queue:
            raise LiveFull(
                f"{self._asking[visitor]} of your requests wait or are computed already (the setting visitor_queue): "
                "wait for their answers",
                retry_after(sum(lane.seconds_ahead(visitor) for lane in self._lanes)),
            )
        self._asking[visitor] += 1
        try:
            yield
        finally:
            self._asking[visitor] -= 1
            if not self._asking[visitor]:
                del self._asking[visitor]

    def _job(self, ask: Ask[Any], tokens: int, visitor: str) -> Job:
        """Return the job of an equal request, if one is under way or kept; otherwise put a new job into the queue of
        its lane."""
        job = self._under_way.get(ask)
        if (job and job.wanted) or (job := self._kept.get(ask)):
            job.visitors.append(visitor)
            return job
        job = Job(ask, batch_key(ask, tokens), self._engine.cost(ask, tokens), [visitor])
        self._lane(job).put(job)
        self._under_way[ask] = job
        return job

    def _leave(self, waiter: Waiter) -> None:
        job = waiter.job
        job.visitors.remove(waiter.visitor)
        if waiter.report:
            job.reports.remove(waiter.report)
        if isinstance(job.ask, asks.PairsReadingAsk) and job.has_answer:
            self._kept.pop(job.ask, None)
            self._kept[job.ask] = job
            if len(self._kept) > MOST_KEPT:
                del self._kept[next(iter(self._kept))]
        if job.visitors:
            return
        for lane in self._lanes:
            lane.drop(job)
        if self._under_way.get(job.ask) is job:
            del self._under_way[job.ask]

    def _lane(self, job: Job) -> Lane:
        runs, quick = self._lanes
        dear = self._engine.runs_model(job.ask) or self._quick_pace.seconds_at_best(job.cost) > QUICK_SECONDS
        return runs if dear else quick

    def _lane_ended(self, task: "asyncio.Task[None]") -> None:
        if task.cancelled() or self._error or not (error := task.exception()):
            return
        self._error = error
        log_error("the computing thread", error)
        for other in self._tasks:
            other.cancel()
        self._on_error()

    async def _checked_tokens(self, ask: Ask[Any]) -> int:
        """Check the request, and return how many tokens its text has, or how many states it gives, or 0. NotFound or
        TooLarge is raised before anything is computed."""
        self._engine.check(ask)
        self._limits.check_lists(ask)
        if isinstance(ask, asks.ThroughHeadsAsk):
            self._limits.check_heads(ask, self._engine.shape.n_heads)
        tokens = 0
        if isinstance(ask, asks.PromptAsk | asks.StatesAsk):
            bos = ask.bos if isinstance(ask, asks.PromptAsk) else 0
            tokens = await self._tokens_of_text(ask.text, bos)
        if isinstance(ask, asks.PromptAsk) and ask.from_:
            tokens = max(tokens, await self._tokens_of_text(ask.from_, ask.bos))
        if isinstance(ask, asks.StatesReadingAsk):
            tokens = self._engine.state_count(ask)
            self._limits.check_tokens(tokens, self._engine.n_positions)
        if isinstance(ask, asks.PromptAsk):
            if "evolution" in ask.panel:
                self._limits.check_cells("evolution", ask.runs * (2 * self._engine.shape.n_layers + 1) * tokens, ask.k)
            if "patterns" in ask.panel and ask.rows == "tokens":
                self._limits.check_cells("patterns", OWN_LISTS * tokens, ask.k + ask.spare)
            if "sheet" in ask.panel:
                heads = self._engine.shape.n_layers * self._engine.shape.n_heads
                self._limits.check_sheet(tokens, heads, OWN_LISTS * (ask.k + ask.spare))
            if "attention" in ask.panel:
                self._limits.check_attention(tokens, self._engine.attention_heads(tokens))
        self._limits.check_seconds(ask, tokens, self._estimate)
        return tokens

    async def _tokens_of_text(self, text: str, bos: int) -> int:
        if len(text) > LONG_PROMPT:
            self._limits.check_text(text, self._engine.longest_token)
            tokens = await asyncio.to_thread(self._count_tokens, text, bos)
        else:
            tokens = self._count_tokens(text, bos)
        self._limits.check_tokens(tokens, self._engine.n_positions)
        return tokens

    def _estimate(self, ask: Ask[Any], tokens: int) -> float:
        return self._run_pace.seconds_at_best(self._engine.cost(ask, tokens))

    def _count_tokens(self, text: str, bos: int) -> int:
        try:
            return self._engine.token_count(text, bos)
        except Exception:
            raise
        except BaseException as error:  # the tokenizer is in Rust and raises a BaseException when it panics
            log_error("the tokenizer", error)
            raise LiveFailed("the model's tokenizer fails on this text") from None
