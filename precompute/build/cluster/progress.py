"""Tell a person how builds on a cluster go: layers of all models together, and what each machine does."""

import math
import time
from collections.abc import Iterable, Sequence
from pathlib import Path

from rich.console import RenderableType
from rich.progress import Progress as Bar
from rich.text import Text

from lexiscope.precompute.build.cluster.board import Notes
from lexiscope.precompute.build.cluster.machines import Machine, TaskSize
from lexiscope.precompute.build.cluster.queue import Order, QueuedBuild
from lexiscope.precompute.build.estimate import Work, time_text
from lexiscope.precompute.build.layer import Costs
from lexiscope.precompute.build.progress import QUIET, Progress
from lexiscope.precompute.plain_text import plain


class BarWithMachines(Bar):
    """Show a progress bar, and a line for each machine below it."""

    machines: Sequence[str] = ()

    def get_renderables(self) -> Iterable[RenderableType]:
        yield from super().get_renderables()
        yield from (Text(plain(line), no_wrap=True, overflow="ellipsis") for line in self.machines)


class ClusterProgress(Progress):
    _untold: dict[str, Work]  # the work of builds whose time is not known yet, by the names of their models

    def start_all(self, builds: Sequence[QueuedBuild], machines: Sequence[Machine], size: TaskSize) -> None:
        """Begin to show the tasks of all builds."""
        manifests = [build.prepared.manifest for build in builds]
        name = builds[0].name if len(builds) == 1 else f"{len(builds)} models"
        n_layers, ready = sum(each.shape.n_layers for each in manifests), sum(len(each.shards) for each in manifests)
        at_once = size.tasks_at_once(machines)
        self._untold = {build.name: work_on_cluster(build, size, at_once) for build in builds if build.left}
        on_gpus = f", {size.gpus:g} GPU" if size.gpus else ""
        self.say(
            f"{len(machines)} machine{'s' if len(machines) != 1 else ''} with room for "
            f"{at_once} tasks at once, of {size.threads} threads{on_gpus}"
        )
        added = "; ".join(f"{build.prepared.added} of {build.name}" for build in builds if build.prepared.added)
        self.start(name, n_layers, ready, sum(len(build.prepared.missing) for build in builds), added)

    def _make_bar(self) -> Bar:
        return BarWithMachines(*self.columns(), console=self.console)

    def piece_done(self, order: Order, machine: str) -> None:
        if order.pieces[0].part == "lists":
            self.unit_done(f"{order.pieces[0].layer} of {order.build.name}, made by {machine},")

    def show(self, running: Sequence[Order], notes: Notes) -> None:
        """Show what each machine does; tasks without notes on the board are shown as waiting for a machine."""
        for model in [model for model in self._untold if model in notes.costs]:
            costs = Costs(**notes.costs[model])
            self.say(f"{model}: {time_text(self._untold.pop(model), costs, 'on this cluster')}")
        by_machine: dict[str, list[str]] = {}
        shares = 0.0
        for order in running:
            if at_work := notes.doing.get(order.task):
                text = order.task
                if order.pieces[0].part == "lists":
                    shares += at_work.done
                    text += f" {100 * at_work.done:.0f} %"
                by_machine.setdefault(at_work.machine, []).append(text)
        lines = [f"{machine}: {', '.join(tasks)}" for machine, tasks in sorted(by_machine.items())]
        self._done = self._built + shares
        if isinstance(self._bar, BarWithMachines):
            self._bar.machines = lines
            self._bar.update(self._task, completed=self._done, pace=self.pace())
        elif time.monotonic() - self._last_line > QUIET:
            self._line(self._text())
            for line in lines:
                self.say(line)

    def finish(self, folder: Path, ready: int, n_layers: int, nothing_done: bool) -> None:
        """Say that one model is finished; the bar stays for the others."""
        self.say_finished(folder, ready, n_layers, nothing_done)


def work_on_cluster(build: QueuedBuild, size: TaskSize, tasks_at_once: int) -> Work:
    """Return what a build has to do, and how many threads do it at once. For example, of 10 layers on 8 machines 5 are
    made at once on average: first 8, and then 2 while six machines do nothing."""
    layers = max(1, len(build.prepared.missing))
    at_once = layers / math.ceil(layers / max(1, tasks_at_once))
    workers = 1 if size.gpus else size.threads  # one thread feeds a GPU
    return build.prepared.work(max(1, round(at_once * workers)), build.unchanged)
