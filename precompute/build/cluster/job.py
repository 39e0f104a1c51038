"""Build the indexes of one or more models on a Ray cluster: its machines make the pieces, this process writes them."""

import os
from collections.abc import Callable, Sequence
from contextlib import ExitStack, closing
from dataclasses import dataclass
from pathlib import Path

from lexiscope.precompute.build.cluster.board import Reader, start_board
from lexiscope.precompute.build.cluster.machines import TaskSize, choose_size, list_machines
from lexiscope.precompute.build.cluster.progress import ClusterProgress
from lexiscope.precompute.build.cluster.queue import Order, QueuedBuild, work_off
from lexiscope.precompute.build.cluster.runner import RayRunner
from lexiscope.precompute.build.cluster.task import Outcome
from lexiscope.precompute.build.estimate import size_text
from lexiscope.precompute.build.options import BuildOptions
from lexiscope.precompute.build.pieces import task_name
from lexiscope.precompute.build.prepared import prepare
from lexiscope.precompute.errors import BuildError, LexiscopeError
from lexiscope.precompute.ray_cluster.connection import connected
from lexiscope.precompute.weights.checkpoint import Checkpoint
from lexiscope.precompute.weights.difference import Difference

KEPT = "finished layers are kept, and the same command goes on with the others"


@dataclass(frozen=True)
class NamedModel:
    asked: str  # the name that the user gave
    find: Callable[[], Checkpoint | Difference]


def build_on_ray(
    models: Sequence[NamedModel],
    data: Path,
    options: BuildOptions,
    address: str,
    gpus: float | None,
    progress: ClusterProgress,
) -> int:
    """Make or complete the index in DATA/<model> for each model, and return the number of models that failed. If a
    model or a layer fails, the others are still built."""
    cores = max(os.cpu_count() or 1, options.threads or 1)
    with connected("--ray", address, num_cpus=cores), ExitStack() as locks:
        size = choose_size(list_machines(), options.threads, gpus, options.device)
        builds: list[QueuedBuild] = []
        failed = 0
        for model in models:
            try:
                prepared = locks.enter_context(prepare(model.find(), data, options, progress))
                unchanged = prepared.note_changes(progress)
            except (LexiscopeError, OSError) as error:
                progress.say(f"lexiscope: {model.asked}: {error}")
                failed += 1
                continue
            builds.append(QueuedBuild(prepared, len(prepared.tasks), unchanged))
            if prepared.tasks:
                progress.say(f"{builds[-1].name}: {size_text(prepared.work(size.threads))} in each task")
        for build in builds:
            _finish(build, progress)
        orders = [Order(build, task, size.threads) for build in builds for task in build.prepared.tasks]
        if orders:
            progress.start_all(builds, list_machines(), size)
            _work(orders, size, progress)
        return failed + sum(bool(build.errors) for build in builds)


def _work(orders: Sequence[Order], size: TaskSize, progress: ClusterProgress) -> None:
    board = start_board()
    runner, reader = RayRunner(size, board), Reader(board)
    with closing(work_off(orders, runner, lambda running: progress.show(running, reader.read()))) as ended:
        for order, outcome in ended:
            _take(order, outcome, progress)
            if not order.build.left:
                runner.forget(order.build)
                _finish(order.build, progress)


def _take(order: Order, outcome: Outcome, progress: ClusterProgress) -> None:
    """Write the pieces that a task made, or report why it failed and count the failure for its model."""
    build = order.build
    build.left -= 1
    try:
        if outcome.made is None:
            raise BuildError(refusal(order, outcome))
        build.prepared.write(outcome.made)
    except (LexiscopeError, OSError) as error:
        if outcome.error == "machine":
            raise
        build.errors.append(str(error))
        could_not_write = outcome.made is not None
        build.given_up = could_not_write or order.pieces[0].part == "vocabulary"
        progress.say(f"lexiscope: {build.name}: {error}")
    else:
        progress.piece_done(order, outcome.machine)


def refusal(order: Order, outcome: Outcome) -> str:
    """Say which task failed, where, why, and what would help."""
    if outcome.error == "machine":
        return (
            f"{outcome.text}: every machine of the cluster needs the same `pip install 'lexiscope[precompute,ray]'` as "
            f"this one; {KEPT}"
        )
    if outcome.error == "memory":
        manifest = order.build.prepared.manifest
        return (
            f"not enough memory for {task_name(order.pieces)} on {outcome.machine}, not even with {order.threads} "
            f"thread{'s' if order.threads > 1 else ''} ({outcome.text}): use smaller lists (--pairs "
            f"{manifest.pairs} and --k {manifest.k} now) or larger machines; {KEPT}"
        )
    return f"{task_name(order.pieces)} could not be made on {outcome.machine}: {outcome.text}; {KEPT}"


def _finish(build: QueuedBuild, progress: ClusterProgress) -> None:
    """Let the new index replace the old one if nothing is left to do and nothing failed."""
    if build.left or build.errors:
        return
    try:
        build.prepared.finish(progress)
    except (LexiscopeError, OSError) as error:
        build.errors.append(str(error))
        progress.say(f"lexiscope: {build.name}: {error}")
