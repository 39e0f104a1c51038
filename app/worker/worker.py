"""A model that answers asks: checks limits, queues, waits for the computing thread, and knows whether it is well."""

import asyncio
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

from app.middleware.failures import log_failure
from app.worker.batching import Batcher, Job
from app.worker.computing import Computing, batch_key
from app.worker.limits import Limits
from app.workers.errors import LiveDown, LiveFailed, TimedOut
from app.workers.protocol import Ask, Health
from precompute.live.wire import PromptAsk, ThroughHeadsAsk

if TYPE_CHECKING:
    from precompute.live.engine import Engine

LONG_TEXT = 2000  # characters of a prompt from which on its tokens are counted beside the event loop


class Worker:
    """Everything happens in the event loop in which it is `running`, but for the computing thread."""

    def __init__(
        self, engine: "Engine", model: str, weights_sha256: str, limits: Limits, on_failure: Callable[[], None]
    ) -> None:
        self.model = model
        self.weights_sha256 = weights_sha256
        self._engine = engine
        self._limits = limits
        self._on_failure = on_failure
        self._failure: BaseException | None = None  # what ended the computing thread
        self._batcher: Batcher | None = None

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        computing = Computing(self._engine)
        self._batcher = Batcher(computing, self._limits, computing.token_limit)
        task = asyncio.create_task(self._batcher.run())
        task.add_done_callback(self._batching_ended)
        try:
            yield
        finally:
            task.cancel()
            await asyncio.wait({task})

    @asynccontextmanager
    async def queued(self, ask: Ask, report: Callable[[str, float], None] | None = None) -> AsyncIterator[Job]:
        """The ask in the queue, for as long as somebody waits for its answer."""
        job = await self._checked_job(ask)
        job.report = report
        self.batcher.put(job)
        try:
            yield job
        finally:
            self.batcher.drop(job)

    async def answer(self, job: Job) -> bytes:
        """JSON, from the computing thread."""
        try:
            async with asyncio.timeout(self.seconds_left(job)):
                return await job.answer
        except TimeoutError:
            limit = self._limits.seconds
            raise TimedOut(f"this took longer than {limit:g} seconds (the setting request_seconds)", 10) from None

    def seconds_left(self, job: Job) -> float:
        return max(0.0, job.arrived + self._limits.seconds - time.monotonic())

    def health(self) -> Health:
        """LiveDown if it can compute no more."""
        if self._failure:
            raise LiveDown(f"the computing thread has ended ({type(self._failure).__name__}): the worker ends as well")
        busy_seconds = self.batcher.busy_seconds
        return Health(
            model=self.model,
            weights_sha256=self.weights_sha256,
            device=str(self._engine.device),
            queue=self.batcher.waiting,
            busy=busy_seconds is not None,
            busy_seconds=busy_seconds or 0.0,
        )

    @property
    def batcher(self) -> Batcher:
        assert self._batcher, "the worker is not running"
        return self._batcher

    def _batching_ended(self, task: "asyncio.Task[None]") -> None:
        if not task.cancelled() and (error := task.exception()):
            self._failure = error
            log_failure("the computing thread", error)
            self._on_failure()

    async def _checked_job(self, ask: Ask) -> Job:
        """TooLarge before anything is computed."""
        self._limits.check_lists(ask)
        if isinstance(ask, ThroughHeadsAsk):
            self._limits.check_heads(ask, self._engine.shape.n_heads)
        if not isinstance(ask, PromptAsk):
            return Job(ask, batch_key(ask, 0))
        if len(ask.text) > LONG_TEXT:
            self._limits.check_text(ask.text, self._engine.longest_token)
            tokens = await asyncio.to_thread(self._count_tokens, ask.text)
        else:
            tokens = self._count_tokens(ask.text)
        self._limits.check_tokens(tokens, self._engine.n_positions)
        if "attention" in ask.panels:
            self._limits.check_attention(tokens, self._engine.attention_heads(tokens))
        return Job(ask, batch_key(ask, tokens), tokens)

    def _count_tokens(self, text: str) -> int:
        try:
            return self._engine.token_count(text)
        except Exception:
            raise
        except BaseException as error:  # a tokenizer that panics, in Rust, raises no Exception
            log_failure("the tokenizer", error)
            raise LiveFailed("the model's tokenizer fails on this text") from None
