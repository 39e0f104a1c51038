"""A board on which tasks write what they do, for whoever shows it: an actor, which ends with the command. Nothing
depends on it but what is shown, so nobody waits for it and its faults are nobody's."""

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import ray

SECONDS_BETWEEN = 1.0  # that a task lets pass before it writes again


@dataclass(frozen=True)
class Doing:
    machine: str
    done: float  # the share of the task


class Board:
    """By the names of tasks. A task that is tried again writes over what it wrote."""

    def __init__(self) -> None:
        self._doing: dict[str, Doing] = {}

    def write(self, task: str, machine: str, done: float) -> None:
        self._doing[task] = Doing(machine, done)

    def remove(self, task: str) -> None:
        self._doing.pop(task, None)

    def read(self) -> dict[str, Doing]:
        return self._doing


def start_board() -> Any:
    return ray.remote(Board).options(num_cpus=0, max_restarts=-1).remote()


class Reader:
    """Reads a board without ever waiting for it."""

    def __init__(self, board: Any) -> None:
        self._board, self._asked = board, None
        self._last: dict[str, Doing] = {}

    def read(self) -> dict[str, Doing]:
        """What stood there a moment ago."""
        try:
            if self._asked is not None and ray.wait([self._asked], timeout=0)[0]:
                self._last, self._asked = ray.get(self._asked), None
            if self._asked is None:
                self._asked = self._board.read.remote()
        except ray.exceptions.RayError:  # it is started anew where its machine was lost
            self._asked = None
        return self._last


def writer(board: Any, task: str, machine: str) -> Callable[[float], None]:
    """For `step` of a layer: adds up shares, and writes them now and then."""
    done, written = 0.0, 0.0

    def step(share: float) -> None:
        nonlocal done, written
        done += share
        if time.monotonic() - written > SECONDS_BETWEEN:
            written = time.monotonic()
            board.write.remote(task, machine, done)

    return step
