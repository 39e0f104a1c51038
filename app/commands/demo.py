"""`lexiscope demo`: fetches a small real model, builds its index, serves it meanwhile, and shows what is in it."""

import argparse
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from app.commands import options, precompute, serve
from app.workers.child_process import lexiscope_command
from precompute.errors import NotFound, ServeError

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
        help="fetch a small real model, build its index, browse it",
        description="Fetch SmolLM2-135M, build its index, show a few of its lists, and serve it all the while.",
    )
    options.add_data(parser)
    serve.add_address(parser)
    parser.add_argument("--no-serve", action="store_true", help="stop when it is built, without the explorer")
    options.add_build(parser)
    parser.set_defaults(
        run=run, revision=None, minus=None, name=None, ray=None, gpus_per_task=None
    )  # there is one demo


def run(args: argparse.Namespace) -> int:
    if args.no_serve:
        build_and_show(args)
        return 0
    with serve_meanwhile(args) as (child, address):
        build_and_show(args)
        print(f"\n{address}", flush=True)
        return child.wait()


def build_and_show(args: argparse.Namespace) -> None:
    print("Building the index of SmolLM2-135M. It can be stopped (Ctrl-C) and goes on when started again.", flush=True)
    precompute.run(argparse.Namespace(**vars(args), models=["demo"]))
    show_tour(args.data)


@contextmanager
def serve_meanwhile(args: argparse.Namespace) -> Iterator[tuple["subprocess.Popen[str]", str]]:
    """The server in a process of its own, which ends with this one however that ends, and what it says of its address.

    At any free port if the usual one is taken: whoever tries the demo may have another server.
    """
    words = ["serve", "--child", "--data", str(args.data), *(["--host", args.host] if args.host else [])]
    words += ["--port", str(args.port)] if args.port is not None else ["--or-any-port"]
    pipe = subprocess.PIPE
    with subprocess.Popen(lexiscope_command(words), stdin=pipe, stdout=pipe, text=True) as child:
        assert child.stdin
        assert child.stdout
        try:
            address = child.stdout.readline().strip()
            if not address:  # it has said why; nobody should wait for a build and have no explorer at its end
                raise ServeError("the explorer cannot start, so nothing is built; --no-serve builds without it")
            print(address, flush=True)
            yield child, address
        finally:
            child.stdin.close()


def show_tour(data: Path) -> None:
    """Prints the tour; what it would show of layers that are not built (--layers) is left out."""
    from app.cli import make_parser

    for question, words in TOUR:
        print(f"\n{question}\n$ lexiscope {words}", flush=True)
        step = make_parser().parse_args([*words.split(), "--data", str(data)])
        try:
            step.run(step)
        except NotFound as error:
            print(f"Skipped: {error}", flush=True)
