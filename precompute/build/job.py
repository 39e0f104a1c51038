"""Build a model's index on this machine, one missing piece after the other; cluster/ builds many on many machines."""

import os
from concurrent.futures import Executor
from contextlib import nullcontext
from pathlib import Path

import torch

from lexiscope.precompute.build.estimate import Work, size_text, time_text
from lexiscope.precompute.build.layer import BuildContext, Costs
from lexiscope.precompute.build.options import BuildOptions
from lexiscope.precompute.build.pieces import Task, make_task
from lexiscope.precompute.build.prepared import PreparedBuild, prepare
from lexiscope.precompute.build.progress import Progress
from lexiscope.precompute.build.threads import compute_threads, workers_on
from lexiscope.precompute.device import pick_device
from lexiscope.precompute.index.tokens import token_bytes
from lexiscope.precompute.weights.checkpoint import Checkpoint
from lexiscope.precompute.weights.difference import Difference


def build(source: Checkpoint | Difference, data: Path, options: BuildOptions, progress: Progress) -> Path:
    """Make or complete the index in the folder DATA/<model>, and return that folder."""
    device = pick_device(options.device)
    with prepare(source, data, options, progress) as prepared:
        if prepared.tasks:
            manifest, missing = prepared.manifest, len(prepared.missing)
            progress.start(manifest.model, manifest.shape.n_layers, len(manifest.shards), missing, prepared.added)
            threads = options.threads or os.cpu_count() or 1
            work = prepared.work(workers_on(device, threads), prepared.note_changes(progress))
            progress.say(f"{manifest.model}: {size_text(work)}")
            with compute_threads(device, threads) as pool:
                try:
                    _make(prepared, device, pool, progress, work)
                except (MemoryError, RuntimeError) as error:
                    if refusal := prepared.out_of_memory(error):
                        raise refusal from error
                    raise
        prepared.finish(progress)
        return prepared.folder.folder


def _make(prepared: PreparedBuild, device: torch.device, pool: Executor, progress: Progress, work: Work) -> None:
    model, stored = prepared.model, prepared.manifest.stored
    tokens = token_bytes(prepared.folder.tokenizer, model.shape.d_vocab)
    context = BuildContext.of(model, tokens, stored, device, pool)
    said: list[str] = []

    def say_time(costs: Costs) -> None:
        said.append(f"{prepared.manifest.model}: {time_text(work, costs)}")
        progress.say(said[-1])

    for task in prepared.tasks:
        prepared.folder.check()
        with progress.beside_layers(beside) if (beside := _beside_layers(task)) else nullcontext():
            prepared.write(make_task(context, task, progress.step, None if said else say_time))
        if (first := task[0]).part == "lists" and first.layer is not None:
            progress.layer_done(first.layer)


def _beside_layers(task: Task) -> str:
    """Return the message about work that does not count as a layer. The message is empty for a layer, and for work that
    takes no time."""
    match task[0].part:
        case "vocabulary" | "classifier" | "lists":
            return ""
        case "neighbours":
            return "finding the nearest tokens of every token"
        case "chance":
            return "finding what random vectors reach"
    return f"adding {task[0]}"
