"""`lexiscope models`: what is built, how far, how large, and which models are compared.
Reads manifests and headers, never lists."""

import argparse
from typing import TYPE_CHECKING

from app.commands import options

if TYPE_CHECKING:
    from app.commands.options import Subparsers


def add_parser(subparsers: "Subparsers") -> None:
    parser = subparsers.add_parser(
        "models",
        help="what is built, how far, how large",
        description="Show which models are built, how far, how large their indexes are, and which are compared.",
    )
    options.add_data(parser)
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    from rich.console import Console

    from app.formats.terminal import print_comparisons, print_models
    from app.library.comparisons import Comparisons
    from precompute.index.data_folder import list_models

    models = list_models(args.data)
    if models:
        print_models(Console(highlight=False), models)
    else:
        print(f"No index in {args.data}; `lexiscope precompute demo` makes one.")
    if compared := Comparisons(args.data).cards():
        print_comparisons(Console(highlight=False), compared)
    return 0
