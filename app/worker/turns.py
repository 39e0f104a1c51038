"""Whose turn it is: visitors get equal shares of the computing, cheap asks come before dear ones, and nobody starves.

Self-clocked fair queueing. Time is counted in cost. The clock shows when, by equal shares, what was started last is
finished. A visitor's ask would be finished its cost after the later of two times: when it came, and when the visitor's
last one was finished. Whose ask would be finished first is next. Each start moves the clock on, so whoever comes later
stands ever further behind those who wait.
"""

from collections.abc import Iterator, Sequence

from lexiscope.app.worker.jobs import Job


class Turns:
    def __init__(self) -> None:
        self._waiting: list[Job] = []
        self._clock = 0.0
        self._finished: dict[str, float] = {}  # when what was started for a visitor is; 0 where nothing is ahead

    def __len__(self) -> int:
        return len(self._waiting)

    def __iter__(self) -> Iterator[Job]:
        return iter(self._waiting)

    def add(self, job: Job) -> None:
        job.entered = self._clock
        self._waiting.append(job)

    def remove(self, job: Job) -> None:
        """ValueError if it does not wait."""
        self._waiting.remove(job)

    def in_turn(self) -> Iterator[Job]:
        """The next job, and then, each in its turn, those that can be computed with it."""
        left, finished = list(self._waiting), dict(self._finished)
        while left:
            job, _ = _next(left, finished)
            yield job
            left = [other for other in left if other is not job and other.key == job.key]

    def start(self, batch: Sequence[Job]) -> None:
        """These wait no longer; what they cost is counted for whose turn it was."""
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
    """The next of some jobs, and when it is finished, which `finished` is told."""
    first: dict[str, Job] = {}  # of each visitor
    for job in jobs:
        for visitor in job.visitors:
            if visitor not in first or job.entered + job.cost < first[visitor].entered + first[visitor].cost:
                first[visitor] = job

    def finish(visitor: str) -> float:
        return max(first[visitor].entered, finished.get(visitor, 0.0)) + first[visitor].cost

    visitor = min(first, key=finish)
    finished[visitor] = finish(visitor)
    return first[visitor], finished[visitor]
