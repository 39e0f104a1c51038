"""`lexiscope demo`: fetch a small real model and build its index, while a server already shows it, and print a few of
its lists."""

import argparse
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from lexiscope.app.commands import models, precompute, seeds, show
from lexiscope.app.commands.command import BUILD, LISTEN, command, flag, make_parser
from lexiscope.precompute.errors import NotFound, ServeError

TOUR = (
    ("Which neurons write words like these?", "seeds demo horse dog lion --k 8"),
    ("What does a neuron look for, and what does it write?", "show demo ff 29 808 --k 8"),
    ("Which words does a head connect?", "show demo vo 27 5 --lens cosine --preset words --k 8"),
    ("What is built?", "models"),
)


@command(
    "demo",
    "fetch a small real model, build its index, browse it",
    "Fetch SmolLM2-135M, build its index, show a few of its lists, and serve it all the while.",
    *LISTEN,
    flag("--no-serve", "stop when it is built, without the explorer"),
    *BUILD,
)
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
    defaults = make_parser([precompute.run]).parse_args(["precompute", "demo"])
    precompute.run(argparse.Namespace(**{**vars(defaults), **vars(args)}))
    show_tour(args.data)


@contextmanager
def serve_meanwhile(args: argparse.Namespace) -> Iterator[tuple["subprocess.Popen[str]", str]]:
    """Start the server in a process of its own, and give the process and the line that it prints with its address.

    The server ends when this process does, even if this process is killed. Unless --port is given, it takes any free
    port if the usual one is taken: people who try the demo may have another server running.
    """
    from lexiscope.app.live.process import lexiscope_command

    words = ["serve", "--child", "--data", str(args.data), *(["--host", args.host] if args.host else [])]
    words += ["--port", str(args.port)] if args.port is not None else ["--or-any-port"]
    pipe = subprocess.PIPE
    with subprocess.Popen(lexiscope_command(words), stdin=pipe, stdout=pipe, text=True) as child:
        assert child.stdin
        assert child.stdout
        try:
            address = child.stdout.readline().strip()
            if not address:  # the server has printed why it did not start; a build alone is not what was asked for
                raise ServeError("the explorer cannot start, so nothing is built; --no-serve builds without it")
            print(address, flush=True)
            yield child, address
        finally:
            child.stdin.close()


def show_tour(data: Path) -> None:
    """Print the tour of a few lists, without those in layers that are not built because of --layers."""
    parser = make_parser([seeds.run, show.run, models.run])
    for question, words in TOUR:
        print(f"\n{question}\n$ lexiscope {words}", flush=True)
        step = parser.parse_args([*words.split(), "--data", str(data)])
        try:
            step.run(step)
        except NotFound as error:
            print(f"Skipped: {error}", flush=True)
