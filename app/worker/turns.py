"""Choose which job is computed next: visitors get equal shares of the computing time, cheap jobs come before costly
ones, and no job waits forever.

This is self-clocked fair queueing. Time is counted in cost. The clock shows when the job that was started last would be
finished if all visitors had equal shares. A visitor's job would be finished its cost after the later of two times: when
it came, and when the visitor's job before it was finished. The job that would be finished first is next. Each start
moves the clock on, so jobs that come later are ever further behind those that wait.
"""

from collections.abc import Iterator, Sequence

from lexiscope.app.worker.jobs import Job


class Turns:
    def __init__(self) -> None:
        self._waiting: list[Job] = []
        self._clock = 0.0
        # for each visitor, the time at which the job that was started last is finished
        self._finished: dict[str, float] = {}

    def __len__(self) -> int:
        return len(self._waiting)

    def __iter__(self) -> Iterator[Job]:
        return iter(self._waiting)

    def add(self, job: Job) -> None:
        job.entered = self._clock
        self._waiting.append(job)

    def remove(self, job: Job) -> None:
        """Remove a waiting job; raise ValueError if it is not waiting."""
        self._waiting.remove(job)

    def in_turn(self) -> Iterator[Job]:
        """Yield the next job, and then, in their order, those that can be computed with it."""
        left, finished = list(self._waiting), dict(self._finished)
        while left:
            job, _ = _next(left, finished)
            yield job
            left = [other for other in left if other is not job and other.key == job.key]

    def start(self, batch: Sequence[Job]) -> None:
        """Remove the jobs of a batch from the queue, and charge the cost of each to the visitor whose turn it was."""
        for number, job in enumerate(batch):
            _, finish = _next([job], self._finished)
            if number == 0:
                self._clock = max(self._clock, finish)
            self._waiting.remove(job)
        waiting = {visitor for job in self._waiting for visitor in job.visitors}
        self._finished = {
            visitor: time for visitor, time in self._finished.items() if time > self._clock or visitor in waiting
        }


def _next(jobs: Sequence[Job], finished: dict[str, float]) -> tuple[Job, float]:
    """Return the next of some jobs and the time at which it would be finished, and note that time in `finished`."""
    first: dict[str, Job] = {}  # the first job of each visitor
    for job in jobs:
        for visitor in job.visitors:
            if visitor not in first or job.entered + job.cost < first[visitor].entered + first[visitor].cost:
                first[visitor] = job

    def finish(visitor: str) -> float:
        return max(first[visitor].entered, finished.get(visitor, 0.0)) + first[visitor].cost

    visitor = min(first, key=finish)
    finished[visitor] = finish(visitor)
    return first[visitor], finished[visitor]
