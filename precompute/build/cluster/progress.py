"""Tells a person how builds on a cluster go: layers of all models together, and what each machine does."""

import time
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from rich.console import RenderableType
from rich.progress import Progress as Bar
from rich.text import Text

from precompute.build.cluster.board import Doing
from precompute.build.cluster.machines import Machine, TaskSize
from precompute.build.cluster.queue import Order, QueuedBuild
from precompute.build.progress import QUIET, Progress
from precompute.plain_text import plain


class BarWithMachines(Bar):
    """A bar, and a line for each machine below it."""

    machines: Sequence[str] = ()

    def get_renderables(self) -> Iterable[RenderableType]:
        yield from super().get_renderables()
        yield from (Text(plain(line), no_wrap=True, overflow="ellipsis") for line in self.machines)


class ClusterProgress(Progress):
    def start_all(self, builds: Sequence[QueuedBuild], machines: Sequence[Machine], size: TaskSize) -> None:
        """All that is to be done is known: the pieces of all builds."""
        manifests = [build.prepared.manifest for build in builds]
        name = builds[0].name if len(builds) == 1 else f"{len(builds)} models"
        n_layers, ready = sum(each.shape.n_layers for each in manifests), sum(len(each.shards) for each in manifests)
        on_gpus = f", {size.gpus:g} GPU" if size.gpus else ""
        self.say(
            f"{len(machines)} machine{'s' if len(machines) != 1 else ''} with room for "
            f"{size.tasks_at_once(machines)} tasks at once, of {size.threads} threads{on_gpus}"
        )
        self.start(name, n_layers, ready, sum(len(build.prepared.missing) for build in builds))

    def _make_bar(self) -> Bar:
        return BarWithMachines(*self.columns(), console=self.console)

    def piece_done(self, order: Order, machine: str) -> None:
        if isinstance(order.piece, int):
            self.unit_done(f"{order.piece} of {order.build.name}, made by {machine},")

    def show(self, running: Sequence[Order], doing: Mapping[str, Doing]) -> None:
        """`doing` is by tasks; those of `running` that it does not know wait for a machine."""
        by_machine: dict[str, list[str]] = {}
        shares = 0.0
        for order in running:
            if at_work := doing.get(order.task):
                text = order.task
                if isinstance(order.piece, int):
                    shares += at_work.done
                    text += f" {100 * at_work.done:.0f} %"
                by_machine.setdefault(at_work.machine, []).append(text)
        lines = [f"{machine}: {', '.join(tasks)}" for machine, tasks in sorted(by_machine.items())]
        self._done = self._built + shares
        if isinstance(self._bar, BarWithMachines):
            self._bar.machines = lines
            self._bar.update(self._task, completed=self._done, rate=self._rate())
        elif time.monotonic() - self._last_line > QUIET:
            self._line(self._text())
            for line in lines:
                self.say(line)

    def finish(self, folder: Path, ready: int, n_layers: int, nothing_done: bool) -> None:
        """Of one model; the bar stays for the others."""
        self.say_finished(folder, ready, n_layers, nothing_done)
