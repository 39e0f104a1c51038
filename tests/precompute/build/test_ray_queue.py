"""The queue of a cluster without one: tasks run in this process, and memory runs out when a test says so."""

from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from lexiscope.precompute.build.cluster import task
from lexiscope.precompute.build.cluster.job import refusal
from lexiscope.precompute.build.cluster.queue import Order, QueuedBuild, work_off
from lexiscope.precompute.build.cluster.task import BuildInputs, Outcome, try_task
from lexiscope.precompute.build.options import BuildOptions
from lexiscope.precompute.build.pieces import Task
from lexiscope.precompute.build.prepared import prepare
from lexiscope.precompute.errors import BadWeights
from lexiscope.precompute.weights.checkpoint import Checkpoint
from tests.support.builds import PAIRS, K, Listener, copy

Name = int | str  # the layer of a task, or its part
Make = Callable[[Any, int], None]  # by name and threads; raises what goes wrong


def name_of(pieces: Task) -> Any:
    return pieces[0].part if pieces[0].layer is None else pieces[0].layer


@dataclass
class HereRunner:
    """Runs a task when it is asked what came of it; of those that are awaited, the last that was ordered ends first."""

    inputs: BuildInputs
    at_once: int = 4
    tried: list[tuple[Any, int]] = field(default_factory=list)
    cancelled: list[Name] = field(default_factory=list)
    running: list[Order] = field(default_factory=list)
    most: int = 0

    def most_at_once(self) -> int:
        return self.at_once

    def start(self, order: Order) -> Hashable:
        self.running.append(order)
        self.most = max(self.most, len(self.running))
        return id(order)

    def wait(self, tasks: Sequence[Hashable], seconds: float) -> Sequence[Hashable]:
        assert seconds > 0
        return tasks[-1:]

    def outcome(self, task: Hashable) -> Outcome:
        order = self._end(task)
        self.tried.append((name_of(order.pieces), order.threads))
        return try_task("here", self.inputs, (), order.pieces, order.threads, lambda _: None, lambda _: None)

    def cancel(self, task: Hashable) -> None:
        self.cancelled.append(name_of(self._end(task).pieces))

    def _end(self, task: Hashable) -> Order:
        order = next(order for order in self.running if id(order) == task)
        self.running.remove(order)
        return order


@pytest.fixture
def new(source: Path, tmp_path: Path) -> Iterator[QueuedBuild]:
    """A build that has nothing yet."""
    with prepare(Checkpoint.open(source), tmp_path, BuildOptions(k=K, pairs=PAIRS), Listener()) as prepared:
        yield QueuedBuild(prepared, len(prepared.tasks))


@pytest.fixture
def begun(source: Path, built: Path, tmp_path: Path) -> Iterator[QueuedBuild]:
    """One that has all but its layers."""
    index = copy(built, tmp_path)
    for shard in [*index.glob("layer-*"), *index.glob("stats-*")]:
        shard.unlink()
    with prepare(Checkpoint.open(source), tmp_path, BuildOptions(k=K, pairs=PAIRS), Listener()) as prepared:
        assert [task[0].layer for task in prepared.tasks] == [2, 1, 0]
        yield QueuedBuild(prepared, len(prepared.tasks))


def runner_of(build: QueuedBuild, make: Make, monkeypatch: pytest.MonkeyPatch, at_once: int = 4) -> HereRunner:
    def make_nothing(_inputs: object, _layer: object, pieces: Task, threads: int, *_: object) -> dict[str, object]:
        make(name_of(pieces), threads)
        return {}

    monkeypatch.setattr(task, "make", make_nothing)
    stored = build.prepared.manifest.stored
    return HereRunner(BuildInputs("key", build.name, (), [], stored, "cpu", "code"), at_once)


def orders_of(build: QueuedBuild, threads: int) -> list[Order]:
    return [Order(build, task, threads) for task in build.prepared.tasks]


@pytest.mark.parametrize(("enough", "tried"), [(8, [8]), (2, [8, 4, 2]), (1, [8, 4, 2, 1])])
def test_memory_that_runs_out_is_tried_with_fewer_threads(
    begun: QueuedBuild, monkeypatch: pytest.MonkeyPatch, enough: int, tried: list[int]
) -> None:
    def make(piece: Name, threads: int) -> None:
        if piece == 1 and threads > enough:
            raise MemoryError("Unable to allocate 9 GiB")

    runner = runner_of(begun, make, monkeypatch)
    outcomes = {
        name_of(order.pieces): outcome for order, outcome in work_off(orders_of(begun, 8), runner, lambda _: None)
    }
    assert {piece: outcome.error for piece, outcome in outcomes.items()} == {0: None, 1: None, 2: None}
    assert [threads for piece, threads in runner.tried if piece == 1] == tried
    assert {threads for piece, threads in runner.tried if piece != 1} == {8}


def test_memory_that_never_suffices_is_named(begun: QueuedBuild, monkeypatch: pytest.MonkeyPatch) -> None:
    def make(piece: Name, threads: int) -> None:
        if piece == 1:
            raise RuntimeError(f"DefaultCPUAllocator: can't allocate memory for {threads}\nat some place")

    runner = runner_of(begun, make, monkeypatch)
    outcomes = list(work_off(orders_of(begun, 3), runner, lambda _: None))
    assert sorted(runner.tried) == [(0, 3), (1, 1), (1, 3), (2, 3)]
    ((order, outcome),) = [(order, outcome) for order, outcome in outcomes if outcome.error]
    assert refusal(order, outcome) == (
        "not enough memory for layer 1 on here, not even with 1 thread (DefaultCPUAllocator: can't allocate memory for "
        f"1): use smaller lists (--pairs {PAIRS} and --k {K} now) or larger machines; finished layers are kept, and "
        "the same command goes on with the others"
    )


def test_weights_that_cannot_be_sent_are_a_fault_of_their_layer(
    begun: QueuedBuild, monkeypatch: pytest.MonkeyPatch
) -> None:
    class NoSecond(HereRunner):
        def start(self, order: Order) -> Hashable:
            if name_of(order.pieces) == 1:
                raise BadWeights("the file is cut short")
            return super().start(order)

    inputs = runner_of(begun, lambda *_: None, monkeypatch).inputs
    outcomes = {
        name_of(order.pieces): outcome
        for order, outcome in work_off(orders_of(begun, 8), NoSecond(inputs), lambda _: None)
    }
    assert outcomes[1] == Outcome("this machine", error="other", text="the file is cut short")
    assert (outcomes[0].error, outcomes[2].error) == (None, None)


def test_nothing_is_taken_before_the_vocabulary_and_no_more_waits_than_may(
    new: QueuedBuild, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Although the vocabulary ends last, and only at the second try, when as many wait as may."""

    def make(piece: Name, threads: int) -> None:
        if piece == "vocabulary" and threads > 1:
            raise MemoryError

    runner = runner_of(new, make, monkeypatch, at_once=2)
    taken = []
    for order, _ in work_off(orders_of(new, 2), runner, lambda _: None):
        taken.append(name_of(order.pieces))
        if name_of(order.pieces) == "vocabulary":
            finished = new.prepared.manifest.with_changes(vocabulary={"file": "v", "bytes": 1, "sha256": "0" * 64})
            new.prepared.manifest = finished
    assert taken[0] == "vocabulary"
    assert sorted(map(str, taken)) == ["0", "1", "2", "chance", "neighbours", "vocabulary"]
    assert runner.most == 2


def test_what_is_of_no_use_is_cancelled(
    begun: QueuedBuild, source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The tasks of a build that is given up, under way or not; those of another go on."""
    with prepare(Checkpoint.open(source), tmp_path / "other", BuildOptions(k=K, pairs=PAIRS), Listener()) as prepared:
        other = QueuedBuild(prepared, len(prepared.tasks))
        runner = runner_of(begun, lambda *_: None, monkeypatch, at_once=6)
        taken = []
        for order, _ in work_off([*orders_of(other, 1), *orders_of(begun, 1)], runner, lambda _: None):
            taken.append(order)
            if order.build is other:
                assert name_of(order.pieces) == "vocabulary"
                other.given_up = True
    assert [name_of(order.pieces) for order in taken if order.build is begun] == [0, 1, 2]
    assert {*runner.cancelled} == {2, "neighbours", "chance", 1, 0}


def test_who_stops_cancels_what_is_under_way(begun: QueuedBuild, monkeypatch: pytest.MonkeyPatch) -> None:
    runner = runner_of(begun, lambda *_: None, monkeypatch)
    results = work_off(orders_of(begun, 1), runner, lambda _: None)
    next(results)
    results.close()
    assert (len(runner.tried), len(runner.cancelled)) == (1, 2)
