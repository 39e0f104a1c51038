"""Declare commands: the name, help and options of each; and what long commands do at their start and end.

Options are declared for argparse: with pydantic-settings, typer or cyclopts every command would be a class or a long
signature of annotations, of the same length, and importing these libraries takes longer than many commands run.
"""

import argparse
import os
import re
import signal
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol, TypeAlias, TypeVar

from lexiscope.precompute.errors import BuildError, LexiscopeError
from lexiscope.precompute.shape import LENSES, SIDES

GOES_ON = "Finished {} are kept; the same command goes on from here"


# A function that adds an argument of a command, or a group of arguments, to the command's parser.
Option: TypeAlias = Callable[[Any], object]


def option(names: str, words: str, parse: Callable[[str], Any] = str, **settings: Any) -> Option:
    """Declare an option or a positional argument: its names, separated by spaces, its line of help, and the function
    that parses its value."""
    if parse in METAVARS:
        settings.setdefault("metavar", METAVARS[parse])
    return lambda parser: parser.add_argument(*names.split(), help=words, type=parse, **settings)


def flag(name: str, words: str) -> Option:
    """Declare an option without a value."""
    return lambda parser: parser.add_argument(name, help=words, action="store_true")


def group(title: str, *options: Option) -> Option:
    """Group options under a heading in the help."""

    def add(parser: argparse.ArgumentParser) -> None:
        headed = parser.add_argument_group(title)
        for add_option in options:
            add_option(headed)

    return add


@dataclass(frozen=True)
class Command:
    """A subcommand of `lexiscope`. Calling it with parsed arguments runs it."""

    name: str
    summary: str  # its line in the list of commands
    description: str
    options: tuple[Option, ...]
    run: Callable[[argparse.Namespace], int | None]
    # the extra of pyproject.toml to name if a module is missing; None: cli.py chooses it by the module
    extra: str | None
    examples: str

    def __call__(self, args: argparse.Namespace) -> int:
        return self.run(args) or 0


def command(
    name: str, summary: str, description: str, *options: Option, extra: str | None = None, examples: str = ""
) -> Callable[[Callable[[argparse.Namespace], int | None]], Command]:
    """Turn the decorated function into a command with these options. The function returns an exit code, or None for
    0."""
    return lambda run: Command(name, summary, description, options, run, extra, examples)


def make_parser(commands: Sequence[Command]) -> argparse.ArgumentParser:
    """Make the parser of `lexiscope` with these commands; each of them also gets the option --data. The parsed
    arguments hold the chosen command as `run`."""
    parser = argparse.ArgumentParser(prog="lexiscope", description="Read a transformer's weights as words.")
    subparsers = parser.add_subparsers(title="commands", metavar="COMMAND", required=True)
    for each in commands:
        subparser = subparsers.add_parser(each.name, help=each.summary, description=each.description)
        if each.examples:
            subparser.epilog, subparser.formatter_class = each.examples, argparse.RawDescriptionHelpFormatter
        # the environment is read when a command starts, not when this module is imported
        data = Path(os.environ.get("LEXISCOPE_DATA") or "data")
        words = "where the indexes are (default: the environment's LEXISCOPE_DATA, else ./data)"
        for add_option in (*each.options, option("--data", words, Path, metavar="DIR", default=data)):
            add_option(subparser)
        subparser.set_defaults(run=each, usage_error=subparser.error)
    return parser


# Types of values: argparse calls one with the text of an argument.


def number(kind: type[int] | type[float], meaning: str, least: float, most: float = sys.float_info.max) -> Any:
    """Make an argparse type for numbers from `least` to `most`. `meaning` describes them in the message about a wrong
    number."""

    def parse(text: str) -> float:
        try:
            if least <= (value := kind(text)) <= most:
                return value
        except ValueError:
            pass
        raise argparse.ArgumentTypeError(f"{text!r} is not {meaning}")

    return parse


positive = number(int, "a whole number from 1 on", 1)
natural = number(int, "a whole number from 0 on", 0)
amount = number(float, "a number from 0 on, such as 1 or 0.5", 0)


def layers(text: str) -> tuple[int, ...]:
    """Parse numbers of layers and ranges of them, such as 0,5,30-35."""
    numbers: list[int] = []
    for part in text.split(","):
        match = re.fullmatch(r"([0-9]{1,5})(?:-([0-9]{1,5}))?", part.strip())
        first, last = (int(match[1]), int(match[2] or match[1])) if match else (1, 0)
        if last < first:
            raise argparse.ArgumentTypeError(f"{text!r} is not a range of layers such as 30-35 or 0,5,7")
        numbers += range(first, last + 1)
    return tuple(numbers)


def some_of(known: tuple[str, ...]) -> Callable[[str], tuple[str, ...]]:
    """Make an argparse type for known names with commas between them. It returns the names in the order of `known`."""

    def names(text: str) -> tuple[str, ...]:
        given = [name.strip() for name in text.split(",")]
        if wrong := [name for name in given if name not in known]:
            raise argparse.ArgumentTypeError(f"{wrong[0]!r} is none of {', '.join(known)}")
        return tuple(name for name in known if name in given)

    return names


# the placeholder of a value in the help, unless an option has its own
METAVARS = {positive: "N", natural: "N", int: "N", amount: "N", layers: "A-B"}


# Options that several commands have.

MODEL = option("model", "a model that is built, or demo", metavar="MODEL")
TWO_MODELS = tuple(
    option(name, "a model that is built, or whatever `lexiscope precompute` takes", metavar=name.upper())
    for name in ("a", "b")
)
LAYERS = option("--layers", "only these layers, such as 30-35 or 0,5,7", layers)
DEVICE = option("--device", "auto, cpu, cuda, cuda:1, ... (default: auto)", default="auto")
THREADS = option("--threads", "on the CPU (default: one per core)", positive)
JSON = flag("--json", "print JSON instead of tables")


def kinds(default: str) -> Option:
    words = f"only these vectors, of {', '.join(SIDES)} (default: {default})"
    return option("--kinds", words, some_of(tuple(SIDES)), metavar="KIND,...")


def text_limits(limit: int, length: int) -> tuple[Option, Option]:
    """Declare two options: how many texts of a file are read, and how many tokens of each text."""
    return (
        option("--limit", f"at most so many texts, evenly spread over the file ({limit})", positive, default=limit),
        option("--tokens", f"of each text, the rest is left out ({length})", positive, default=length),
    )


BUILD = (
    LAYERS,
    option("--k", "tokens per list and end (default: as built, else 100)", positive),
    option("--pairs", "pairs per head and end, 0 for none (default: as built, else 500)", natural),
    kinds("as built, else all"),
    option(
        "--lenses",
        f"only these, of {', '.join(LENSES)} (default: as built, else both)",
        some_of(LENSES),
        metavar="LENS,...",
    ),
    DEVICE,
    THREADS,
    flag("--force", "rebuild beside an existing index, then replace it"),
)
LISTEN = (
    option("--host", "the address to listen at (default: LEXISCOPE_HOST, else 127.0.0.1)"),
    option("--port", "the port; 0: any (default: LEXISCOPE_PORT, else 8000)", int),
)
CHILD = flag("--child", argparse.SUPPRESS)  # with this flag, a command ends when its standard input is closed


def print_answer(view: Any, as_json: bool, rows: int | None = None) -> None:
    """Print what a page shows, as JSON or as tables for people; `rows` limits the rows of each table."""
    if as_json:
        from lexiscope.app.formats.json_format import ascii_json

        print(ascii_json(view))
        return

    from rich.console import Console

    from lexiscope.app.terminal import print_view

    print_view(Console(highlight=False), view, rows)


# How long commands begin, run and end.


def check_folder(data: Path) -> None:
    """Raise a BuildError if the data folder cannot be used, before anything is downloaded or computed for it."""
    try:
        data.exists()
    except OSError as error:
        raise BuildError(f"--data {str(data)[:80]} cannot be used ({error.strerror}): give another folder") from None
    if data.exists() and not data.is_dir():
        raise BuildError(f"--data {data} is a file: give a folder, or a place where one can be made")
    if data.exists() and not os.access(data, os.W_OK | os.X_OK):
        raise BuildError(f"--data {data} cannot be written to: check its permissions, or choose another folder")


class Progress(Protocol):
    def stop(self) -> None: ...


P = TypeVar("P", bound=Progress)


@contextmanager
def stopping(progress: P, failed: str = "", error: type[LexiscopeError] = BuildError) -> Iterator[P]:
    """Stop the display of progress at the end. Raise an OSError, such as that of a full disk, as `error`, with a
    message that begins with `failed` if that is given."""
    try:
        yield progress
    except OSError as reason:
        if not failed:
            raise
        raise error(f"{failed}: {reason}") from reason
    finally:
        progress.stop()


@contextmanager
def exit_on_signals(state: str) -> Iterator[None]:
    """On Ctrl-C, SIGTERM or a closed terminal, print how to continue and exit with the code that a shell expects.

    `state` is the text that says what has been saved, and what running the command again would do. The process ends at
    once: Python would wait for threads that still compute, which cannot be interrupted and have nothing to lose.
    """
    exit_code: int | None = None

    def interrupt(number: int, _: object) -> None:
        nonlocal exit_code
        exit_code = 128 + number
        raise KeyboardInterrupt

    former_handlers: dict[signal.Signals, Any] = {}
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        if signal.getsignal(number) != signal.SIG_IGN:  # nohup makes a process ignore this signal
            former_handlers[number] = signal.signal(number, interrupt)
    try:
        yield
    except BaseException:  # code in C may turn the interrupt into an error of its own
        if exit_code is None:
            raise
        for number in former_handlers:
            signal.signal(number, signal.SIG_IGN)
        print(f"Stopped. {state}.", file=sys.stderr)
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(exit_code)
    finally:
        for number, handler in former_handlers.items():
            signal.signal(number, handler)


def say_line(line: str) -> None:
    """Write a line in one piece: `print` writes the line's end separately, and another thread's line may come
    between."""
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()
