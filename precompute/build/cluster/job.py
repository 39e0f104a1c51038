"""Builds the indexes of one or more models on a Ray cluster: tasks make the pieces, this process alone writes them."""

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
from lexiscope.precompute.build.pieces import piece_name
from lexiscope.precompute.build.prepared import prepare
from lexiscope.precompute.errors import BuildError, LexiscopeError
from lexiscope.precompute.ray_cluster.connection import connected
from lexiscope.precompute.weights.checkpoint import Checkpoint
from lexiscope.precompute.weights.difference import Difference

KEPT = "finished layers are kept, and the same command goes on with the others"


@dataclass(frozen=True)
class NamedModel:
    asked: str  # as the user called it
    find: Callable[[], Checkpoint | Difference]


def build_on_ray(
    models: Sequence[NamedModel],
    data: Path,
    options: BuildOptions,
    address: str,
    gpus: float | None,
    progress: ClusterProgress,
) -> int:
    """Makes or completes DATA/<model> of each; gives the number of models that could not be. A model that fails keeps
    no other from being built, and a layer that fails no other layer."""
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
            builds.append(QueuedBuild(prepared, len(prepared.pieces), unchanged))
            if prepared.pieces:
                progress.say(f"{builds[-1].name}: {size_text(prepared.work(size.threads))} in each task")
        for build in builds:
            _finish(build, progress)
        orders = [Order(build, piece, size.threads) for build in builds for piece in build.prepared.pieces]
        if orders:
            progress.start_all(builds, list_machines(), size)
            _work(orders, size, progress)
        return failed + sum(bool(build.failures) for build in builds)


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
    """Writes what was made; what was not is said, and counted against its model."""
    build = order.build
    build.left -= 1
    try:
        if outcome.arrays is None:
            raise BuildError(refusal(order, outcome))
        build.prepared.write(order.piece, outcome.arrays)
    except (LexiscopeError, OSError) as error:
        if outcome.fault == "machine":
            raise
        build.failures.append(str(error))
        could_not_write = outcome.arrays is not None
        build.given_up = could_not_write or order.piece == "vocabulary"
        progress.say(f"lexiscope: {build.name}: {error}")
    else:
        progress.piece_done(order, outcome.machine)


def refusal(order: Order, outcome: Outcome) -> str:
    """What is said of a piece that could not be made: which, where, why, and what would help."""
    if outcome.fault == "machine":
        return (
            f"{outcome.text}: every machine of the cluster needs the same `pip install 'lexiscope[precompute,ray]'` as "
            f"this one; {KEPT}"
        )
    if outcome.fault == "memory":
        manifest = order.build.prepared.manifest
        return (
            f"not enough memory for {piece_name(order.piece)} on {outcome.machine}, not even with {order.threads} "
            f"thread{'s' if order.threads > 1 else ''} ({outcome.text}): use smaller lists (--pairs "
            f"{manifest.pairs} and --k {manifest.k} now) or larger machines; {KEPT}"
        )
    return f"{piece_name(order.piece)} could not be made on {outcome.machine}: {outcome.text}; {KEPT}"


def _finish(build: QueuedBuild, progress: ClusterProgress) -> None:
    """The index takes its place if nothing is left and nothing failed."""
    if build.left or build.failures:
        return
    try:
        build.prepared.finish(progress)
    except (LexiscopeError, OSError) as error:
        build.failures.append(str(error))
        progress.say(f"lexiscope: {build.name}: {error}")
