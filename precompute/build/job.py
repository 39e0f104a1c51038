"""Builds a model's index on this machine, one missing piece after the other; cluster/ builds many on many machines."""

import os
from concurrent.futures import Executor
from contextlib import nullcontext
from pathlib import Path

import torch

from lexiscope.precompute.build.estimate import Work, size_text, time_text
from lexiscope.precompute.build.layer import BuildContext, Costs
from lexiscope.precompute.build.options import BuildOptions
from lexiscope.precompute.build.pieces import make_piece
from lexiscope.precompute.build.prepared import PreparedBuild, prepare
from lexiscope.precompute.build.progress import Progress
from lexiscope.precompute.build.threads import compute_threads, workers_on
from lexiscope.precompute.device import pick_device
from lexiscope.precompute.index.tokens import token_bytes
from lexiscope.precompute.weights.checkpoint import Checkpoint
from lexiscope.precompute.weights.difference import Difference


def build(source: Checkpoint | Difference, data: Path, options: BuildOptions, progress: Progress) -> Path:
    """Makes or completes DATA/<model>; returns that folder."""
    device = pick_device(options.device)
    with prepare(source, data, options, progress) as prepared:
        if prepared.pieces:
            manifest = prepared.manifest
            progress.start(manifest.model, manifest.shape.n_layers, len(manifest.shards), len(prepared.missing))
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

    for piece in prepared.pieces:
        prepared.folder.check()
        nearest = piece == "neighbours"
        with progress.beside_layers("finding the nearest tokens of every token") if nearest else nullcontext():
            prepared.write(piece, make_piece(context, piece, progress.step, None if said else say_time))
        if isinstance(piece, int):
            progress.layer_done(piece)
