"""Keep a board on which tasks write what they do and how long their first work took, so that it can be shown. The board
is a Ray actor that ends with the command. Only the display depends on it, so nothing waits for it and its errors are
ignored. It is a process of its own that starts in a moment: nothing here imports torch."""

import time
from dataclasses import dataclass, field
from typing import Any

import ray

SECONDS_BETWEEN = 1.0  # seconds that a task waits before it writes again


@dataclass(frozen=True)
class Doing:
    machine: str
    done: float  # the share of the task that is done


@dataclass(frozen=True)
class Notes:
    """What is written on a board."""

    doing: dict[str, Doing] = field(default_factory=dict)  # what tasks do, by their names
    costs: dict[str, dict[str, Any]] = field(default_factory=dict)  # the fields of Costs, by the names of models


class Board:
    """The notes of all tasks, kept by a Ray actor. A task that is tried again overwrites its notes."""

    def __init__(self) -> None:
        self._notes = Notes()

    def write(self, task: str, machine: str, done: float) -> None:
        self._notes.doing[task] = Doing(machine, done)

    def write_costs(self, model: str, costs: dict[str, Any]) -> None:
        self._notes.costs[model] = costs

    def remove(self, task: str) -> None:
        self._notes.doing.pop(task, None)

    def read(self) -> Notes:
        return self._notes


def start_board() -> Any:
    return ray.remote(Board).options(num_cpus=0, max_restarts=-1).remote()


class Reader:
    """A reader of the board that never waits for it."""

    def __init__(self, board: Any) -> None:
        self._board, self._asked = board, None
        self._last = Notes()

    def read(self) -> Notes:
        """Return the newest notes that have arrived, without waiting."""
        try:
            if self._asked is not None and ray.wait([self._asked], timeout=0)[0]:
                self._last, self._asked = ray.get(self._asked), None
            if self._asked is None:
                self._asked = self._board.read.remote()
        except ray.exceptions.RayError:  # Ray restarts the board if its machine was lost
            self._asked = None
        return self._last


class Writer:
    """A writer for one task, which puts on the board what the task does from its start to its end."""

    def __init__(self, board: Any, model: str, task: str, machine: str) -> None:
        self._board, self._model, self._task, self._machine = board, model, task, machine
        self._done, self._written = 0.0, 0.0
        self.step(0.0)

    def step(self, share: float) -> None:
        """Add a share of a layer to what is done, and write the sum to the board now and then."""
        self._done += share
        if time.monotonic() - self._written > SECONDS_BETWEEN:
            self._written = time.monotonic()
            self._board.write.remote(self._task, self._machine, self._done)

    def measured(self, costs: dict[str, Any]) -> None:
        self._board.write_costs.remote(self._model, costs)

    def end(self) -> None:
        self._board.remove.remote(self._task)
