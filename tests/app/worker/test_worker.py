"""Fair between visitors: two lanes, equal asks computed once, so many requests of one visitor, nothing too dear."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest

from lexiscope.app.settings import Settings
from lexiscope.app.worker.worker import MOST_KEPT, Worker
from lexiscope.precompute.errors import NotFound
from lexiscope.precompute.live.wire import asks
from lexiscope.precompute.live.wire.fields import Ask
from lexiscope.precompute.live.wire.grammar import Term, Word, WordPair
from tests.support.site import GPT2
from tests.support.workers import HeldEngine

pytestmark = pytest.mark.anyio

PROMPT = asks.PromptAsk(text="The dog and the lion", panel=("evolution",))
SEEDS = asks.SeedsAsk(words=(Term(word="dog"),), kind=("ff_value",), k=5)


@asynccontextmanager
async def working(engine: HeldEngine, **settings: Any) -> AsyncIterator[Worker]:
    worker = Worker(engine, GPT2, "", Settings(**settings), lambda: None)
    async with worker.running():
        try:
            yield worker
        finally:
            engine.hold.clear()


async def ask(worker: Worker, what: Ask[Any], visitor: str = "anybody", report: Any = None) -> bytes:
    async with worker.queued(what, visitor, report) as waiter:
        return await worker.answer(waiter)


async def until(true: Callable[[], Any]) -> None:
    async with asyncio.timeout(120):
        while not true():
            await asyncio.sleep(0.002)


def other(number: int) -> asks.PromptAsk:
    return PROMPT.model_copy(update={"text": f"dog {number}"})


async def test_what_is_quick_does_not_wait_for_a_run(engine: HeldEngine) -> None:
    engine.hold.set()
    async with working(engine) as worker:
        run = asyncio.create_task(ask(worker, PROMPT))
        await until(lambda: engine.batches)
        for quick in (
            SEEDS,
            asks.ReadingAsk(kind="ff_value", layer=1, index=3, reading="norm"),
            asks.RelationAsk(pairs=(WordPair(source="dog", target="lion"),)),
            asks.TransitionAsk(pairs=(WordPair(source="dog", target="lion"),)),
            asks.ThroughHeadsAsk(words=((Word(word="dog"),),), layers=(0,)),
        ):
            assert await ask(worker, quick)
        assert not run.done()
        assert worker.health().busy
        engine.hold.clear()
        assert await run


@pytest.mark.parametrize("runs", [
    PROMPT, asks.ReadingAsk(kind="ff_value", layer=1, index=3, reading="mlp"),
    asks.PairsReadingAsk(matrix="vo", layer=1, head=1, reading="first"),
    asks.RelationAsk(pairs=(WordPair(source="dog", target="lion"),), source="first"),
    asks.StatesAsk(text="the dog"), asks.StatesReadingAsk(states=bytes(4 * 32)),
])  # fmt: skip
async def test_one_thread_runs_the_model(engine: HeldEngine, runs: Ask[Any]) -> None:
    engine.hold.set()
    async with working(engine) as worker:
        first = asyncio.create_task(ask(worker, other(1)))
        await until(lambda: engine.batches)
        second = asyncio.create_task(ask(worker, runs))
        await until(lambda: worker.health().queue == 1)
        assert len(engine.batches) == 1
        engine.hold.clear()
        assert await asyncio.gather(first, second)


async def test_equal_asks_are_computed_once(engine: HeldEngine) -> None:
    """Under way or waiting, for any visitor, with progress or without."""
    engine.hold.set()
    seen: dict[str, list[str]] = {"a": [], "b": []}
    async with working(engine) as worker:
        asking = [
            asyncio.create_task(ask(worker, PROMPT, visitor, lambda stage, _, v=visitor: seen[v].append(stage)))
            for visitor in "ab"
        ]
        await until(lambda: engine.batches)
        asking.append(asyncio.create_task(ask(worker, asks.PromptAsk.model_validate(PROMPT.model_dump()), "c")))
        waiting = [asyncio.create_task(ask(worker, other(1), visitor)) for visitor in "ab"]
        await until(lambda: worker.health().queue == 1)
        engine.hold.clear()
        answers = await asyncio.gather(*asking)
        assert len(set(answers)) == 1
        assert len(set(await asyncio.gather(*waiting))) == 1
        assert seen["a"] == seen["b"] != []
        assert engine.batches == [[PROMPT.text], ["dog 1"]]
        assert await ask(worker, PROMPT) == answers[0]  # no longer under way: computed again
    assert len(engine.batches) == 3


PAIRS = asks.PairsReadingAsk(matrix="vo", layer=1, head=1, reading="norm", n=5)


async def test_pairs_are_kept_for_the_next_visitor(engine: HeldEngine) -> None:
    """The last ones used, so many of them; errors are not kept."""

    def pairs(n: int) -> asks.PairsReadingAsk:
        return PAIRS.model_copy(update={"n": n})

    computed: list[str] = []
    async with working(engine) as worker:

        async def asked(n: int, visitor: str) -> tuple[bytes, bool]:
            computed.clear()
            answer = await ask(worker, pairs(n), visitor, lambda stage, _: computed.append(stage))
            return answer, bool(computed)

        first, anew = await asked(1, "a")
        assert anew
        assert await asked(1, "b") == (first, False)
        assert await ask(worker, asks.PairsReadingAsk.model_validate(PAIRS.model_dump() | {"n": 1})) == first
        for n in range(2, MOST_KEPT + 1):
            await asked(n, "a")
        assert await asked(1, "c") == (first, False)
        await asked(MOST_KEPT + 1, "a")  # takes the place of the second, which nobody asked again
        assert (await asked(1, "a"), (await asked(2, "b"))[1]) == ((first, False), True)
        for _ in range(2):
            with pytest.raises(NotFound):
                await ask(worker, PAIRS.model_copy(update={"head": 99}))


async def test_who_leaves_takes_nothing_from_others(engine: HeldEngine) -> None:
    engine.hold.set()
    async with working(engine) as worker:
        asking = [asyncio.create_task(ask(worker, PROMPT, visitor)) for visitor in "abc"]
        await until(lambda: engine.batches)
        asking[0].cancel()
        await until(asking[0].done)
        await asyncio.sleep(0.05)
        assert not engine.given_up
        for task in asking[1:]:
            task.cancel()
        await until(lambda: engine.given_up)  # when all have left
        engine.hold.clear()
        assert await ask(worker, PROMPT)
    assert engine.given_up == [[PROMPT.text]]


async def test_visitors_take_turns(engine: HeldEngine) -> None:
    """Whoever comes after a flood is not behind all of it."""
    engine.hold.set()
    async with working(engine, batch_size=1) as worker:
        flood = [asyncio.create_task(ask(worker, other(number), "a")) for number in range(5)]
        await until(lambda: worker.health().queue == 4)
        late = asyncio.create_task(ask(worker, other(9), "b"))
        await until(lambda: worker.health().queue == 5)
        engine.hold.clear()
        await asyncio.gather(*flood, late)
    assert ["dog 9"] in engine.batches[1:3]
