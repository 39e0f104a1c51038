"""`lexiscope demo`: fetches a small real model, builds its index and shows what is in it.
Everything it does is another command, which it prints."""

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from app.commands import options, precompute
from precompute.errors import NotFound

if TYPE_CHECKING:
    from app.commands.options import Subparsers

TOUR = (
    ("Which neurons write words like these?", "seeds demo horse dog lion --k 8"),
    ("What does a neuron look for, and what does it write?", "show demo ff 29 808 --k 8"),
    ("Which words does a head connect?", "show demo vo 27 5 --lens cosine --preset words --k 8"),
    ("What is built?", "models"),
)


def add_parser(subparsers: "Subparsers") -> None:
    parser = subparsers.add_parser(
        "demo",
        help="fetch a small real model, build its index, show a few lists",
        description="Fetch SmolLM2-135M, build its index, and show a few of its lists.",
    )
    options.add_data(parser)
    options.add_build(parser)
    parser.set_defaults(run=run, revision=None)  # there is one demo


def run(args: argparse.Namespace) -> int:
    print("Building the index of SmolLM2-135M. It can be stopped (Ctrl-C) and goes on when started again.", flush=True)
    precompute.run(argparse.Namespace(**vars(args), models=["demo"]))
    tour(args.data)
    return 0


def tour(data: Path) -> None:
    """With --layers some of what it shows may not be built; the rest is shown."""
    from app.cli import make_parser

    for question, command in TOUR:
        print(f"\n{question}\n$ lexiscope {command}", flush=True)
        step = make_parser().parse_args([*command.split(), "--data", str(data)])
        try:
            step.run(step)
        except NotFound as error:
            print(f"Skipped: {error}", flush=True)
