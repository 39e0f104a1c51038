"""Run the tasks of the queue on Ray."""

from collections.abc import Hashable, Sequence
from dataclasses import dataclass, field
from typing import Any

import ray

from lexiscope.precompute.build.cluster.machines import TaskSize, list_machines
from lexiscope.precompute.build.cluster.queue import Order, QueuedBuild
from lexiscope.precompute.build.cluster.task import BuildInputs, Outcome, code_version, run_task
from lexiscope.precompute.build.cluster.weights import models_of, put_layers, put_weights
from lexiscope.precompute.errors import first_line
from lexiscope.precompute.index.tokens import token_bytes

RETRIES = 3  # retries of a task whose process or machine died; Ray never retries an error that a task returns
AHEAD = 2  # tasks started for each that can run: no machine waits while a layer is written, and memory is bounded


@dataclass
class RayRunner:
    size: TaskSize
    board: Any
    _remote: Any = field(default_factory=lambda: ray.remote(run_task))
    # References to what the tasks of each build share, in the object store.
    _builds: dict[QueuedBuild, Any] = field(default_factory=dict)
    # References to the tensors of tasks, which keep them in the store.
    _layers: dict[Hashable, Any] = field(default_factory=dict)

    def most_at_once(self) -> int:
        return AHEAD * max(1, self.size.tasks_at_once(list_machines()))

    def start(self, order: Order) -> Hashable:
        prepared, layer = order.build.prepared, order.pieces[0].layer
        models = models_of(prepared.model)
        if order.build not in self._builds:
            self._builds[order.build] = ray.put(self._inputs(order.build))
        every = range(prepared.model.shape.n_layers) if order.pieces[0].part == "chance" else ()
        tensors = tuple(put_layers(model, every if layer is None else (layer,)) for model in models)
        largest = max((machine.memory for machine in list_machines()), default=0)
        remote = self._remote.options(
            name=order.task,
            num_cpus=self.size.threads,  # all of them, even if it uses fewer, so that no other task takes its memory
            num_gpus=self.size.gpus,
            memory=min(prepared.work(order.threads).memory(), largest),
            max_retries=RETRIES,
        )
        inputs = self._builds[order.build]
        task: Hashable = remote.remote(order.task, inputs, tensors, order.pieces, order.threads, self.board)
        self._layers[task] = tensors
        return task

    def wait(self, tasks: Sequence[Hashable], seconds: float) -> Sequence[Hashable]:
        """Return the tasks that have ended. Their results are not fetched yet, because this machine's store should hold
        one layer at a time."""
        ended: Sequence[Hashable] = ray.wait([*tasks], num_returns=1, timeout=seconds, fetch_local=False)[0]
        return ended

    def outcome(self, task: Hashable) -> Outcome:
        try:
            outcome: Outcome = ray.get(task)  # Ray makes a result again, if it was lost with its machine
        except ray.exceptions.OutOfMemoryError as error:
            return Outcome("a machine", error="memory", text=first_line(error))
        except ray.exceptions.RayError as error:
            lacks = "No module named" in str(error)
            return Outcome("a machine", error="machine" if lacks else "other", text=_reason(error))
        finally:
            self._layers.pop(task, None)
        return outcome

    def cancel(self, task: Hashable) -> None:
        self._layers.pop(task, None)
        ray.cancel(task)  # never with force: Ray 2.60 ends this process if the task ends at the same moment

    def forget(self, build: QueuedBuild) -> None:
        """Remove what the tasks of a build shared from the object store."""
        self._builds.pop(build, None)

    def _inputs(self, build: QueuedBuild) -> BuildInputs:
        prepared = build.prepared
        return BuildInputs(
            key=prepared.manifest.build,
            name=build.name,
            weights=tuple(put_weights(model) for model in models_of(prepared.model)),
            tokens=token_bytes(prepared.folder.tokenizer, prepared.model.shape.d_vocab),
            stored=prepared.manifest.stored,
            device=self.size.device,
            code=code_version(),
        )


def _reason(error: Exception) -> str:
    lines = (line.strip() for line in str(error).splitlines())
    return next((line for line in lines if "No module named" in line), first_line(error))
