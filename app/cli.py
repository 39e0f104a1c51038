"""The command `lexiscope`: finds the subcommand, runs it, and turns what goes wrong into a message and an exit code."""

import argparse
import errno
import os
import sys
from collections.abc import Sequence

from app.commands import (
    compare,
    demo,
    export,
    lab,
    labels,
    models,
    precompute,
    pull,
    push,
    reproduce,
    seeds,
    serve,
    show,
    stitch,
    verify,
    worker,
)
from precompute.errors import LexiscopeError
from precompute.plain_text import plain

COMMANDS = (
    demo,
    precompute,
    compare,
    stitch,
    lab,
    serve,
    show,
    seeds,
    reproduce,
    verify,
    labels,
    export,
    push,
    pull,
    models,
    worker,
)  # modules with add_parser(subparsers); they import little until they run

# What the extras in pyproject.toml install, and what a plain install lacks.
EXTRAS = {
    **dict.fromkeys(
        ("gguf", "huggingface_hub", "numba", "safetensors", "scipy", "torch", "transformers"), "precompute"
    ),
    "pyarrow": "parquet",
    "ray": "ray",
}

UNWRITABLE = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO, errno.EBADF}  # of what is printed; files say more


def main(argv: Sequence[str] | None = None) -> int:
    """0: done; 1: a message says what is wrong; 2: not a command (argparse); 130: interrupted."""
    if sys.stdout is None:
        _complain("standard output is closed: let it go somewhere, such as a terminal, a file or /dev/null")
        return 1
    _allow_any_text()
    args = argparse.Namespace()
    try:
        args = make_parser().parse_args(argv)
        code = int(args.run(args))
        sys.stdout.flush()
        return code
    except LexiscopeError as error:
        _complain(str(error))
        return 1
    except ModuleNotFoundError as error:
        if error.name not in EXTRAS:
            raise
        extra = args.extra if "extra" in args else EXTRAS[error.name]  # the smaller one, where a command names it
        remedy = f"pip install 'lexiscope[{extra}]'"
        _complain(f"this command needs {error.name}, which a plain install leaves out: {remedy}")
        return 1
    except BrokenPipeError:
        _give_up_stdout()  # the reader (`| head`) has seen enough
        return 1
    except OSError as error:
        if error.filename is not None or error.errno not in UNWRITABLE:
            raise
        _give_up_stdout()
        _complain(f"cannot write to standard output: {error.strerror}")
        return 1
    except KeyboardInterrupt:
        return 130


def _complain(text: str) -> None:
    """Messages quote files and names: what these hold must not reach the terminal as commands to it."""
    print(plain(f"lexiscope: {text}"), file=sys.stderr)


def _give_up_stdout() -> None:
    """Nothing more can be written, not even when Python flushes at exit."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def make_parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="lexiscope", description="Read a transformer's weights as words.")
    parser.add_argument("--version", action=_Version, nargs=0, help="print the version and stop")
    subparsers = parser.add_subparsers(title="commands", metavar="COMMAND", required=True)
    for command in COMMANDS:
        command.add_parser(subparsers)
    return parser


class _Version(argparse.Action):
    def __call__(self, parser: argparse.ArgumentParser, *_: object) -> None:
        from importlib.metadata import PackageNotFoundError, version

        try:
            print(f"lexiscope {version('lexiscope')}")
        except PackageNotFoundError:
            print("lexiscope (run from its source, not installed)")
        parser.exit()


def _allow_any_text() -> None:
    """Tokens are of all scripts; where the terminal's encoding lacks a character, print its escape."""
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="backslashreplace")


if __name__ == "__main__":
    sys.exit(main())
