"""`lexiscope precompute`: build indexes of models, or continue builds that were stopped."""

import argparse
import re
import sys
from functools import partial
from typing import TYPE_CHECKING

from lexiscope.app.commands.command import (
    BUILD,
    GOES_ON,
    amount,
    check_folder,
    command,
    exit_on_signals,
    option,
    some_of,
    stopping,
)
from lexiscope.precompute.errors import BuildError, LexiscopeError
from lexiscope.precompute.plain_text import plain
from lexiscope.precompute.shape import PART_NAMES

if TYPE_CHECKING:
    from lexiscope.precompute.build.options import BuildOptions
    from lexiscope.precompute.weights.checkpoint import Checkpoint
    from lexiscope.precompute.weights.difference import Difference


def ray_address(text: str) -> str:
    """Parse the address of a Ray cluster."""
    if text in ("auto", "local") or re.fullmatch(r"ray://[^/\s]+:[0-9]{1,5}", text):
        return text
    raise argparse.ArgumentTypeError(f"{text!r} is none of auto, local and ray://HOST:PORT")


@command(
    "precompute",
    "build the index of a model",
    "Build the index of a model, or of what a fine-tune changed in it, or go on with a build that was stopped.",
    option("models", "a Hub id, a folder in Hub format, a .gguf file, `demo` or `minilm`", nargs="+", metavar="MODEL"),
    *BUILD,
    option(
        "--parts",
        f"only these, of {', '.join(PART_NAMES)} (default: all that are missing)",
        some_of(PART_NAMES),
        metavar="PART,...",
    ),
    option("--revision", "a branch, tag or commit on the Hub (default: as built, else main)"),
    option(
        "--minus", "build the difference MODEL - BASE of two models with the same shapes and tokens", metavar="BASE"
    ),
    option("--name", "of the index of a difference (default: MODEL-minus-BASE)"),
    option(
        "--ray",
        "make the layers of all models as tasks of a Ray cluster: auto, the one that runs here or at RAY_ADDRESS; "
        "local, one of this machine alone; ray://HOST:PORT, one elsewhere (--threads is then of a task)",
        ray_address,
        metavar="ADDRESS",
    ),
    option("--gpus-per-task", "of the cluster's GPUs, such as 1 or 0.5 (default: 1 if it has any)", amount),
)
def run(args: argparse.Namespace) -> int:
    """Build all models. If one fails, the others are still built, and the exit code is 1."""
    if args.name is not None and (args.minus is None or len(args.models) > 1):
        raise BuildError(
            f"--name {args.name} is for one difference: lexiscope precompute MODEL --minus BASE --name NAME"
        )
    if args.gpus_per_task is not None and args.ray is None:
        raise BuildError(f"--gpus-per-task {args.gpus_per_task:g} is for a cluster: add --ray auto")
    with exit_on_signals(GOES_ON.format("layers")):
        failed = _build_on_ray(args) if args.ray else _build_here(args)
    return 1 if failed else 0


def _build_here(args: argparse.Namespace) -> int:
    """Build the models one after the other on this machine, and return how many failed."""
    failed = 0
    for model in args.models:
        try:
            _build(model, args)
        except LexiscopeError as error:
            if len(args.models) == 1:
                raise
            print(plain(f"lexiscope: {model}: {error}"), file=sys.stderr)
            failed += 1
    return failed


def _build(model: str, args: argparse.Namespace) -> None:
    check_folder(args.data)
    from lexiscope.precompute.build.job import build
    from lexiscope.precompute.build.progress import Progress

    with stopping(Progress(), f"{model} cannot be built in {args.data}") as progress:
        build(_find(model, args), args.data, _options(args), progress)


def _build_on_ray(args: argparse.Namespace) -> int:
    """Build all models at once on a Ray cluster, and return how many failed."""
    check_folder(args.data)
    from lexiscope.precompute.ray_cluster import LOCAL, keep_others_out

    if args.ray == LOCAL:
        keep_others_out()
    from lexiscope.precompute.build.cluster.job import NamedModel, build_on_ray
    from lexiscope.precompute.build.cluster.progress import ClusterProgress

    models = [NamedModel(model, partial(_find, model, args)) for model in dict.fromkeys(args.models)]
    with stopping(ClusterProgress()) as progress:
        return build_on_ray(models, args.data, _options(args), args.ray, args.gpus_per_task, progress)


def _find(model: str, args: argparse.Namespace) -> "Checkpoint | Difference":
    from lexiscope.app.weights import find_difference, find_weights

    if args.minus is None:
        return find_weights(model, args.data, args.revision)
    return find_difference(model, args.minus, args.data, args.name, args.revision)


def _options(args: argparse.Namespace) -> "BuildOptions":
    from lexiscope.precompute.build.options import BuildOptions

    return BuildOptions(
        args.k, args.pairs, args.kinds, args.lenses, args.layers, args.force, args.device, args.threads, args.parts
    )
