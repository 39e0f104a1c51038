"""`lexiscope models`: list the models of the data folder: how much of each is built, its size, and which models are
compared. The command reads manifests and headers of files, never the lists."""

import argparse

from lexiscope.app.commands.command import command


@command(
    "models",
    "what is built, how far, how large",
    "Show which models are built, how far, how large their indexes are, and which are compared.",
)
def run(args: argparse.Namespace) -> None:
    from rich.console import Console

    from lexiscope.app.library.comparisons import Comparisons
    from lexiscope.app.terminal import print_comparisons, print_models
    from lexiscope.precompute.index.data_folder import list_models

    models = list_models(args.data)
    if models:
        print_models(Console(highlight=False), models)
    else:
        print(f"No index in {args.data}; `lexiscope precompute demo` makes one.")
    if compared := Comparisons(args.data).cards():
        print_comparisons(Console(highlight=False), compared)
