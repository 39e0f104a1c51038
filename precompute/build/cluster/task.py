"""Make the pieces of a task on a machine of the cluster, in the same way as on a single machine. Errors are returned,
not raised, so that the job knows on which machine they happened and what can be done."""

import traceback
from dataclasses import asdict, dataclass, replace
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any, Literal, TypeAlias

import ray
import torch

import lexiscope.precompute
from lexiscope.precompute.build.cluster.board import Writer
from lexiscope.precompute.build.cluster.machines import machine_name
from lexiscope.precompute.build.cluster.weights import Tensors, Weights, lend_layer, open_parameters
from lexiscope.precompute.build.layer import Arrays, BuildContext, Costs, Step
from lexiscope.precompute.build.pieces import Measured, Task, make_task
from lexiscope.precompute.build.threads import compute_threads
from lexiscope.precompute.device import is_out_of_memory, pick_device
from lexiscope.precompute.errors import LexiscopeError, first_line
from lexiscope.precompute.index.layout import Piece
from lexiscope.precompute.index.stored import Stored
from lexiscope.precompute.project.compiled import digest

TaskErrorKind: TypeAlias = Literal[
    "memory",  # the task ran out of memory
    "machine",  # the machine has another version of the code: no task can run there
    "other",
]


@dataclass(frozen=True)
class BuildInputs:
    """What the tasks of one build share; Ray's object store holds it once."""

    key: str  # identifies the build: a process keeps what it has loaded for the last one
    name: str
    weights: tuple[Weights, ...]  # weights of one model, or of the tuned one and the base
    tokens: list[bytes]
    stored: Stored
    device: str
    code: str  # the version of the code that the tasks must run


@dataclass(frozen=True)
class Outcome:
    machine: str
    made: dict[Piece, Arrays] | None = None
    error: TaskErrorKind | None = None
    text: str = ""


def run_task(
    task: str, inputs: BuildInputs, layer: tuple[Tensors, ...], pieces: Task, threads: int, board: Any
) -> Outcome:
    """Make the arrays of some pieces, which are files of an index. `layer` has the tensors of a layer, model by model;
    `task` is the task's name on the board."""
    context = ray.get_runtime_context()
    machine = machine_name(ray.util.get_node_ip_address(), context.get_node_id())
    if inputs.code != code_version():
        text = f"{machine} has {code_version()}, and the machine that gives out the tasks has {inputs.code}"
        return Outcome(machine, error="machine", text=text)
    writer = Writer(board, inputs.name, task, machine)
    try:
        return try_task(
            machine, inputs, layer, pieces, threads, writer.step, lambda costs: writer.measured(asdict(costs))
        )
    finally:
        writer.end()


def try_task(
    machine: str,
    inputs: BuildInputs,
    layer: tuple[Tensors, ...],
    pieces: Task,
    threads: int,
    step: Step,
    measured: Measured,
) -> Outcome:
    try:
        return Outcome(machine, make(inputs, layer, pieces, threads, step, measured))
    except Exception as error:
        _kept.clear()  # the next task starts afresh
        if is_out_of_memory(error):
            return Outcome(machine, error="memory", text=first_line(error))
        return Outcome(machine, error="other", text=str(error) if isinstance(error, LexiscopeError) else _bug(error))


def _bug(error: Exception) -> str:
    """Return a text that says which error of our own code occurred, and where."""
    last = traceback.extract_tb(error.__traceback__)[-1]
    return f"{type(error).__name__}: {error} ({Path(last.filename).name}, line {last.lineno})"


_kept: dict[str, BuildContext] = {}  # the context of the last build: loading a vocabulary takes longer than some layers
_measured: set[str] = set()  # builds whose costs this process has told: measuring them keeps other threads waiting


def make(
    inputs: BuildInputs, layer: tuple[Tensors, ...], pieces: Task, threads: int, step: Step, measured: Measured
) -> dict[Piece, Arrays]:
    def tell(costs: Costs) -> None:
        _measured.add(inputs.key)
        measured(costs)

    device = pick_device(inputs.device)
    with compute_threads(device, threads) as pool:
        if inputs.key not in _kept:
            _kept.clear()  # first, because two vocabularies may not fit into memory
            model = open_parameters(inputs.weights, inputs.name)
            _kept[inputs.key] = BuildContext.of(model, inputs.tokens, inputs.stored, device, pool)
        context = replace(_kept[inputs.key], pool=pool)
        lend_layer(context.model, layer)
        return make_task(context, pieces, step, None if inputs.key in _measured else tell)


@cache
def code_version() -> str:
    """Return a text that is equal on machines where equal weights give equal bytes: the version and a hash of our code,
    and torch's version."""
    try:
        installed = version("lexiscope")
    except PackageNotFoundError:
        installed = "from its source"
    text = digest([Path(path) for path in lexiscope.precompute.__path__])
    return f"lexiscope {installed} (code {text}) with torch {torch.__version__.partition('+')[0]}"
