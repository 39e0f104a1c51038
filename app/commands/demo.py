"""`lexiscope demo`: fetches a small real model, builds its index and shows what is in it.
Everything it does is another command, which it prints."""

import argparse
from typing import TYPE_CHECKING

from app.commands import options, precompute

if TYPE_CHECKING:
    from app.commands.options import Subparsers

TOUR = (
    ("Which neurons write words like these?", "seeds demo horse dog lion --k 8"),
    ("What does a neuron look for, and what does it write?", "show demo ff 29 808 --k 8"),
    ("Which words does a head connect?", "show demo vo 27 5 --lens cosine --preset words --k 8"),
    ("What is built?", "models"),
)


def add_parser(subparsers: "Subparsers") -> None:
    parser = subparsers.add_parser("demo", help="fetch a small real model, build its index, show a few lists")
    options.add_data(parser)
    options.add_build(parser)
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    from app.cli import make_parser

    print("Building the index of SmolLM2-135M. It can be stopped (Ctrl-C) and goes on when started again.", flush=True)
    precompute.run(argparse.Namespace(**vars(args), models=["demo"]))
    for question, command in TOUR:
        print(f"\n{question}\n$ lexiscope {command}", flush=True)
        step = make_parser().parse_args([*command.split(), "--data", str(args.data)])
        step.run(step)
    return 0
