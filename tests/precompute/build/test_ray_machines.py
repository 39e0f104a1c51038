"""What a task takes of a machine, and what is said of a cluster at work; no cluster is needed for either."""

import io
import time
from dataclasses import asdict
from pathlib import Path

import pytest
from rich.console import Console

from lexiscope.precompute.build.cluster.board import Board, Doing
from lexiscope.precompute.build.cluster.machines import Machine, TaskSize, choose_size
from lexiscope.precompute.build.cluster.progress import ClusterProgress, work_on_cluster
from lexiscope.precompute.build.cluster.queue import Order, QueuedBuild
from lexiscope.precompute.build.estimate import time_text
from lexiscope.precompute.build.layer import Costs
from lexiscope.precompute.build.options import BuildOptions
from lexiscope.precompute.build.prepared import prepare
from lexiscope.precompute.errors import BuildError
from lexiscope.precompute.weights.checkpoint import Checkpoint
from tests.support.builds import PAIRS, K, Listener

SMALL, LARGE = Machine("small", 8, 0.0, 1 << 34), Machine("large", 64, 0.0, 1 << 38)
GPUS = Machine("gpus", 32, 4.0, 1 << 38)


@pytest.mark.parametrize(
    ("machines", "threads", "gpus", "device", "expected", "at_once"),
    [
        ([SMALL], None, None, "auto", TaskSize(8, 0.0), 1),
        ([SMALL, LARGE], None, None, "auto", TaskSize(8, 0.0), 9),
        ([SMALL, LARGE], 16, None, "auto", TaskSize(16, 0.0), 4),
        ([GPUS], None, None, "auto", TaskSize(1, 1.0), 4),
        ([GPUS, SMALL], None, 0.5, "auto", TaskSize(1, 0.5), 8),
        ([GPUS], 16, 1.0, "cuda", TaskSize(16, 1.0), 2),
        ([GPUS], None, None, "cpu", TaskSize(32, 0.0), 1),
        ([GPUS], None, 0.0, "auto", TaskSize(32, 0.0), 1),
        ([], 4, 1.0, "cuda", TaskSize(4, 1.0), 0),  # a cluster that grows when it has tasks
    ],
)
def test_what_a_task_takes(
    machines: list[Machine], threads: int | None, gpus: float | None, device: str, expected: TaskSize, at_once: int
) -> None:
    size = choose_size(machines, threads, gpus, device)
    assert (size, size.tasks_at_once(machines)) == (expected, at_once)
    assert size.device == ("cuda" if size.gpus else "cpu")


@pytest.mark.parametrize(
    ("machines", "threads", "gpus", "device", "message"),
    [
        ([SMALL], 16, None, "auto", "--threads 16: the machines of this cluster have 8 cores at most"),
        ([SMALL], None, 1.0, "auto", "--gpus-per-task 1: the machines of this cluster have 0 GPUs at most"),
        ([SMALL], None, None, "cuda", "have 0 GPUs at most"),
        ([GPUS], None, 1.0, "cpu", "a task on the CPU takes no GPU"),
        ([GPUS], None, None, "cuda:1", "on a cluster Ray chooses the GPU: give auto, cpu or cuda"),
        ([], None, None, "auto", "say with --threads what one takes"),
    ],
)
def test_what_no_machine_has(
    machines: list[Machine], threads: int | None, gpus: float | None, device: str, message: str
) -> None:
    with pytest.raises(BuildError, match=message):
        choose_size(machines, threads, gpus, device)


def test_what_is_said_while_machines_work(source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    now = [1000.0]
    monkeypatch.setattr(time, "monotonic", lambda: now[0])
    output = io.StringIO()
    progress = ClusterProgress(Console(file=output))
    board, costs = Board(), Costs(2.0, {"dot": 20.0, "cosine": 40.0})
    with prepare(Checkpoint.open(source), tmp_path, BuildOptions(k=K, pairs=PAIRS), Listener()) as prepared:
        build = QueuedBuild(prepared, len(prepared.tasks))
        running = [Order(build, task, 8) for task in prepared.tasks]
        progress.start_all([build], [SMALL, LARGE], TaskSize(8, 0.0))
        now[0] += 60
        board.write("tiny layer 2", "large", 0.5)
        board.write("tiny vocabulary", "small", 0.0)
        board.write("tiny layer 1", "large", 0.25)
        progress.show(running, board.read())
        board.write_costs("tiny", asdict(costs))
        progress.show(running, board.read())  # its machines not again so soon, and what it takes this once
        progress.show(running, board.read())
        board.remove("tiny layer 2")
        progress.piece_done(running[1], "large")
        assert board.read().doing["tiny layer 1"] == Doing("large", 0.25)
    assert output.getvalue().splitlines() == [
        "2 machines with room for 9 tasks at once, of 8 threads",
        "tiny: 0 of 3 layers are ready, 3 to build, upper layers first",
        "0 of 3 layers, 80 s a layer, about 3 min left",
        "large: tiny layer 2 50 %, tiny layer 1 25 %",
        "small: tiny vocabulary",
        f"tiny: {time_text(prepared.work(3 * 8), costs, 'on this cluster')}",
        "layer 2 of tiny, made by large, is ready; 1 of 3 layers, 60 s a layer, about 2 min left",
    ]


@pytest.mark.parametrize(("size", "tasks_at_once", "workers"), [
    (TaskSize(8, 0.0), 1, 8), (TaskSize(8, 0.0), 3, 24), (TaskSize(8, 0.0), 9, 24),
    (TaskSize(8, 0.0), 2, 12),  # the third layer is made alone
    (TaskSize(8, 0.0), 0, 8),  # a cluster that grows when it has tasks
    (TaskSize(16, 1.0), 4, 3),
])  # fmt: skip
def test_who_works_at_three_layers_at_once(
    source: Path, tmp_path: Path, size: TaskSize, tasks_at_once: int, workers: int
) -> None:
    with prepare(Checkpoint.open(source), tmp_path, BuildOptions(k=K, pairs=PAIRS), Listener()) as prepared:
        build = QueuedBuild(prepared, len(prepared.tasks), unchanged=1)
        assert work_on_cluster(build, size, tasks_at_once) == prepared.work(workers, unchanged=1)
