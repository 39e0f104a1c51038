"""Keep one queue for the tasks of all builds: how many run at once, and what happens to those that fail. A runner runs
the tasks, on Ray (runner.py) or, in tests, in this process."""

from collections import deque
from collections.abc import Callable, Generator, Hashable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Protocol

from lexiscope.precompute.build.cluster.task import Outcome
from lexiscope.precompute.build.pieces import Task, task_name
from lexiscope.precompute.build.prepared import PreparedBuild
from lexiscope.precompute.errors import LexiscopeError

PROGRESS_SECONDS = 1.0  # the longest time until progress is shown again


@dataclass(eq=False)
class QueuedBuild:
    prepared: PreparedBuild
    left: int  # tasks whose pieces are still to be written
    unchanged: int = 0  # layers of a difference in which nothing changed
    errors: list[str] = field(default_factory=list)
    given_up: bool = False  # True if nothing more can be written, so that the tasks are of no use

    @property
    def name(self) -> str:
        return self.prepared.manifest.model


@dataclass(frozen=True)
class Order:
    """An order to make some pieces (files of an index) together, with so many threads."""

    build: QueuedBuild
    pieces: Task
    threads: int

    @property
    def task(self) -> str:
        return f"{self.build.name} {task_name(self.pieces)}"

    def may_be_written(self) -> bool:
        """Return False until the vocabulary is written, because an index cannot be opened without it; until then
        finished pieces stay where they were made."""
        return self.pieces[0].part == "vocabulary" or self.build.prepared.manifest.vocabulary is not None


class Runner(Protocol):
    def most_at_once(self) -> int:
        """Return how many tasks may be started whose results are not written yet, which limits what waits in memory."""

    def start(self, order: Order) -> Hashable: ...

    def wait(self, tasks: Sequence[Hashable], seconds: float) -> Sequence[Hashable]:
        """Return the tasks that have ended, after the first of them has, or after so many seconds."""

    def outcome(self, task: Hashable) -> Outcome: ...

    def cancel(self, task: Hashable) -> None: ...


def work_off(
    orders: Iterable[Order], runner: Runner, show: Callable[[Sequence[Order]], None]
) -> Generator[tuple[Order, Outcome], None, None]:
    """Yield every order with its outcome, as they end. `show` is called again and again with the orders that are
    running.

    An order that ran out of memory is started again with half the threads, down to one. When this generator is closed,
    or interrupted, all running orders are cancelled.
    """
    waiting, again, running = deque(orders), deque[Order](), dict[Hashable, Order]()
    try:
        while waiting or again or running:
            for task in [task for task, order in running.items() if order.build.given_up]:
                runner.cancel(task)
                del running[task]
            # An order that is tried again starts at once, however many are under way: others may wait for it.
            while again or (waiting and len(running) < runner.most_at_once()):
                order = (again or waiting).popleft()
                if order.build.given_up:
                    continue
                try:
                    running[runner.start(order)] = order
                except (LexiscopeError, OSError) as error:  # the weights of the order cannot be read
                    yield order, Outcome("this machine", error="other", text=str(error))
            show([*running.values()])
            awaited = [task for task, order in running.items() if order.may_be_written()]
            for task in runner.wait(awaited, PROGRESS_SECONDS) if awaited else ():
                order = running.pop(task)
                outcome = runner.outcome(task)
                if outcome.error == "memory" and order.threads > 1:
                    again.append(replace(order, threads=order.threads // 2))
                else:
                    yield order, outcome
    finally:
        for task in running:
            runner.cancel(task)
