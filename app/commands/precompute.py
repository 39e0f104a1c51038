"""`lexiscope precompute`: builds indexes of models, or goes on with builds that were stopped."""

import argparse
import sys
from typing import TYPE_CHECKING

from app.commands import options
from app.commands.interruption import GOES_ON, exit_on_signals
from precompute.errors import BuildError, LexiscopeError
from precompute.plain_text import plain

if TYPE_CHECKING:
    from app.commands.options import Subparsers


def add_parser(subparsers: "Subparsers") -> None:
    parser = subparsers.add_parser(
        "precompute",
        help="build the index of a model",
        description="Build the index of a model, or of what a fine-tune changed in it, or go on with a build that was "
        "stopped.",
    )
    parser.add_argument(
        "models", nargs="+", metavar="MODEL", help="a Hub id, a folder in Hub format, a .gguf file, `demo` or `minilm`"
    )
    options.add_data(parser)
    options.add_build(parser)
    parser.add_argument("--revision", help="a branch, tag or commit on the Hub (default: as built, else main)")
    parser.add_argument(
        "--minus",
        metavar="BASE",
        help="build the difference MODEL - BASE of two models with the same shapes and tokens",
    )
    parser.add_argument("--name", help="of the index of a difference (default: MODEL-minus-BASE)")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """A model that fails does not keep the others from being built."""
    if args.name is not None and (args.minus is None or len(args.models) > 1):
        raise BuildError(
            f"--name {args.name} is for one difference: lexiscope precompute MODEL --minus BASE --name NAME"
        )
    failed = 0
    with exit_on_signals(GOES_ON.format("layers")):
        for model in args.models:
            try:
                _build(model, args)
            except LexiscopeError as error:
                if len(args.models) == 1:
                    raise
                print(plain(f"lexiscope: {model}: {error}"), file=sys.stderr)
                failed += 1
    return 1 if failed else 0


def _build(model: str, args: argparse.Namespace) -> None:
    options.check_folder(args.data)
    from app.commands.weights import find_difference, find_weights
    from precompute.build.job import Options, build
    from precompute.build.progress import Progress

    build_options = Options(
        args.k, args.pairs, args.kinds, args.lenses, args.layers, args.force, args.device, args.threads
    )
    progress = Progress()
    try:
        weights = (
            find_weights(model, args.data, args.revision)
            if args.minus is None
            else find_difference(model, args.minus, args.data, args.name, args.revision)
        )
        build(weights, args.data, build_options, progress)
    except OSError as error:  # a disk or a folder that does not do what every disk does
        raise BuildError(f"{model} cannot be built in {args.data}: {error}") from error
    finally:
        progress.stop()
