"""`lexiscope compare`: how alike the layers of two models are, and which of their vectors match."""

import argparse
from typing import TYPE_CHECKING

from app.commands import options
from app.commands.interruption import GOES_ON, exit_on_signals
from precompute.errors import BuildError
from precompute.shape import SIDES

if TYPE_CHECKING:
    from app.commands.options import Subparsers


def add_parser(subparsers: "Subparsers") -> None:
    parser = subparsers.add_parser(
        "compare",
        help="compare two models: layers, and every vector's matches",
        description="Compare two models that share tokens: how alike their layers are, which layer goes with which,"
        " and the best matches of every vector in the other model. Goes on with a comparison that was stopped.",
    )
    for name in ("a", "b"):
        parser.add_argument(
            name, metavar=name.upper(), help="a model that is built, or whatever `lexiscope precompute` takes"
        )
    options.add_data(parser)
    parser.add_argument(
        "--kinds",
        type=options.some_of(tuple(SIDES)),
        metavar="KIND,...",
        help=f"only these vectors, of {', '.join(SIDES)} (default: all that both models have)",
    )
    parser.add_argument("--device", default="auto", help="auto, cpu, cuda, cuda:1, ... (default: auto)")
    parser.add_argument("--threads", type=options.positive, metavar="N", help="on the CPU (default: one per core)")
    parser.add_argument("--force", action="store_true", help="make the comparison anew")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    options.check_folder(args.data)
    with exit_on_signals(GOES_ON.format("kinds")):
        from app.weights import find_weights
        from precompute.compare.job import CompareOptions, CompareProgress, compare
        from precompute.weights.architectures import describe
        from precompute.weights.difference import Difference

        progress = CompareProgress()
        try:
            found = (find_weights(asked, args.data) for asked in (args.a, args.b))
            a, b = (weights if isinstance(weights, Difference) else describe(weights) for weights in found)
            compare(a, b, args.data, CompareOptions(args.kinds, args.force, args.device, args.threads), progress)
        except OSError as error:  # a disk or a folder that does not do what every disk does
            raise BuildError(f"{args.a} and {args.b} cannot be compared in {args.data}: {error}") from error
        finally:
            progress.stop()
    return 0
