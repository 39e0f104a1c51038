"""List the machines of a cluster, and choose what a task takes of one.

The threads of a task share one vocabulary in memory, so a task takes a whole machine: as many cores as the smallest
machine has, unless --threads says otherwise. On GPUs a task takes one of them, and the single thread that feeds it."""

from collections.abc import Sequence
from dataclasses import dataclass

import ray

from lexiscope.precompute.errors import BuildError


@dataclass(frozen=True)
class Machine:
    name: str
    cores: int
    gpus: float
    memory: int  # bytes that tasks may use


@dataclass(frozen=True)
class TaskSize:
    """What a task takes of a machine."""

    threads: int
    gpus: float

    @property
    def device(self) -> str:
        return "cuda" if self.gpus else "cpu"

    def tasks_at_once(self, machines: Sequence[Machine]) -> int:
        return sum(
            int(min(machine.cores // self.threads, machine.gpus / self.gpus if self.gpus else machine.cores))
            for machine in machines
        )


def machine_name(address: str, node_id: str) -> str:
    """Return the name of a node; several nodes of a cluster may be on one machine."""
    return f"{address} ({node_id[:4]})"


def list_machines() -> list[Machine]:
    """Return the machines that have cores for tasks; a cluster that grows by itself may have none yet."""
    found = []
    for node in ray.nodes():
        resources = node["Resources"]
        if node["Alive"] and resources.get("CPU", 0) >= 1:
            name = machine_name(node["NodeManagerAddress"], node["NodeID"])
            memory = int(resources.get("memory", 0))
            found.append(Machine(name, int(resources["CPU"]), resources.get("GPU", 0.0), memory))
    return found


def choose_size(machines: Sequence[Machine], threads: int | None, gpus: float | None, device: str) -> TaskSize:
    """Choose what a task takes; raise BuildError if no machine has so much, because the task would wait for ever."""
    if device not in ("auto", "cpu", "cuda"):
        raise BuildError(f"--device {device}: on a cluster Ray chooses the GPU: give auto, cpu or cuda")
    if gpus and device == "cpu":
        raise BuildError(f"--gpus-per-task {gpus:g} and --device cpu: a task on the CPU takes no GPU; leave out one")
    most_gpus = max((machine.gpus for machine in machines), default=0.0)
    if gpus is None:
        gpus = 0.0 if device == "cpu" or not (most_gpus or device == "cuda") else 1.0
    if machines and gpus > most_gpus:
        raise BuildError(
            f"--gpus-per-task {gpus:g}: the machines of this cluster have {most_gpus:g} GPUs at most; ask for fewer, "
            "or for none with --device cpu"
        )
    if threads is None:
        if not machines:
            raise BuildError("no machine of this cluster has cores for tasks yet: say with --threads what one takes")
        threads = 1 if gpus else min(machine.cores for machine in machines)
    most_cores = max((machine.cores for machine in machines), default=threads)
    if threads > most_cores:
        raise BuildError(f"--threads {threads}: the machines of this cluster have {most_cores} cores at most")
    return TaskSize(threads, gpus)
