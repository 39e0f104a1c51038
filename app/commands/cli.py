"""The command `lexiscope`: find the subcommand, run it, and turn an error into a message and an exit code."""

import argparse
import errno
import os
import sys
from collections.abc import Sequence
from pkgutil import resolve_name

from lexiscope.app.commands import command
from lexiscope.app.commands.command import Command
from lexiscope.precompute.errors import LexiscopeError
from lexiscope.precompute.plain_text import plain

NAMES = (
    "demo.run", "precompute.run", "compare.run", "stitch.run", "lab.run", "serve.run", "show.run", "run.run",
    "seeds.run", "reproduce.run", "verify.run", "labels.run", "vocabulary.run", "export.run", "travel.publish",
    "travel.fetch", "models.run", "worker.run",
)  # fmt: skip
COMMANDS: tuple[Command, ...] = tuple(resolve_name(f"lexiscope.app.commands.{name}") for name in NAMES)

# The modules that a plain install lacks, each with the extra of pyproject.toml that installs it.
EXTRAS = {
    **dict.fromkeys(
        ("gguf", "huggingface_hub", "numba", "safetensors", "scipy", "torch", "transformers"), "precompute"
    ),
    "pyarrow": "parquet",
    "ray": "ray",
}

# the errors of a standard output that cannot be written
UNWRITABLE = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO, errno.EBADF}


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command and return its exit code: 0 for success, 1 after an error (with a message), 130 if interrupted.
    argparse exits with 2 if the command line is wrong."""
    if sys.stdout is None:
        _print_error("standard output is closed: let it go somewhere, such as a terminal, a file or /dev/null")
        return 1
    _allow_any_text()
    args = argparse.Namespace()
    try:
        args = make_parser().parse_args(argv)
        code: int = args.run(args)
        sys.stdout.flush()
        return code
    except LexiscopeError as error:
        _print_error(str(error))
        return 1
    except ModuleNotFoundError as error:
        if error.name not in EXTRAS:
            raise
        extra = args.run.extra or EXTRAS[error.name]
        remedy = f"pip install 'lexiscope[{extra}]'"
        _print_error(f"this command needs {error.name}, which a plain install leaves out: {remedy}")
        return 1
    except BrokenPipeError:
        _give_up_stdout()  # the program that reads the output, such as `head`, has closed it
        return 1
    except OSError as error:
        if error.filename is not None or error.errno not in UNWRITABLE:
            raise
        _give_up_stdout()
        _print_error(f"cannot write to standard output: {error.strerror}")
        return 1
    except KeyboardInterrupt:
        return 130


def _print_error(text: str) -> None:
    """Print a message to standard error, without the control characters of file names and texts that it quotes."""
    print(plain(f"lexiscope: {text}"), file=sys.stderr)


def _give_up_stdout() -> None:
    """Write nothing more to standard output, not even when Python flushes it at exit."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def make_parser() -> argparse.ArgumentParser:
    parser = command.make_parser(COMMANDS)
    parser.add_argument("--version", action=_Version, nargs=0, help="print the version and stop")
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
    """Print the escape of a character that the terminal's encoding lacks, because tokens may be of any script."""
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="backslashreplace")


if __name__ == "__main__":
    sys.exit(main())
