"""`lexiscope precompute`: builds indexes of models, or goes on with builds that were stopped."""

import argparse
import os
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from app.commands import options
from precompute.errors import BuildError, LexiscopeError
from precompute.plain_text import plain

if TYPE_CHECKING:
    from app.commands.options import Subparsers


def add_parser(subparsers: "Subparsers") -> None:
    parser = subparsers.add_parser(
        "precompute",
        help="build the index of a model",
        description="Build the index of a model, or go on with a build that was stopped.",
    )
    parser.add_argument(
        "models", nargs="+", metavar="MODEL", help="a Hub id, a folder in Hub format, a .gguf file, `demo` or `minilm`"
    )
    options.add_data(parser)
    options.add_build(parser)
    parser.add_argument("--revision", help="a branch, tag or commit on the Hub (default: as built, else main)")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """A model that fails does not keep the others from being built."""
    failed = 0
    with _exit_on_signals():
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
    _check_folder(args.data)
    from app.commands.weights import find_weights
    from precompute.build.job import Options, build
    from precompute.build.progress import Progress

    build_options = Options(
        args.k, args.pairs, args.kinds, args.lenses, args.layers, args.force, args.device, args.threads
    )
    progress = Progress()
    try:
        build(find_weights(model, args.data, args.revision), args.data, build_options, progress)
    except OSError as error:  # a disk or a folder that does not do what every disk does
        raise BuildError(f"{model} cannot be built in {args.data}: {error}") from error
    finally:
        progress.stop()


def _check_folder(data: Path) -> None:
    """Checks the data folder before anything is fetched or computed for it."""
    if data.exists() and not data.is_dir():
        raise BuildError(f"--data {data} is a file: give a folder, or a place where one can be made")
    if data.exists() and not os.access(data, os.W_OK | os.X_OK):
        raise BuildError(f"--data {data} cannot be written to: check its permissions, or choose another folder")


@contextmanager
def _exit_on_signals() -> Iterator[None]:
    """Says how to go on, on Ctrl-C, SIGTERM or a closed terminal, and leaves with the exit code that a shell expects.

    Threads that still search cannot be interrupted and Python would wait for them; they have nothing to lose.
    """
    exit_code = 130

    def interrupt(number: int, _: object) -> None:
        nonlocal exit_code
        exit_code = 128 + number
        raise KeyboardInterrupt

    former_handlers: dict[signal.Signals, Any] = {}
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        if signal.getsignal(number) != signal.SIG_IGN:  # as nohup has it
            former_handlers[number] = signal.signal(number, interrupt)
    try:
        yield
    except KeyboardInterrupt:
        for number in former_handlers:
            signal.signal(number, signal.SIG_IGN)
        print("Stopped. Finished layers are kept; the same command goes on from here.", file=sys.stderr)
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(exit_code)
    finally:
        for number, handler in former_handlers.items():
            signal.signal(number, handler)
