"""Options that several commands have: where the data is, and numbers of things.
What a command does with them is its own affair."""

import argparse
import os
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    Subparsers: TypeAlias = argparse._SubParsersAction[argparse.ArgumentParser]


def add_data(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--data",
        metavar="DIR",
        type=Path,
        default=Path(os.environ.get("LEXISCOPE_DATA") or "data"),
        help="where the indexes are (default: the environment's LEXISCOPE_DATA, else ./data)",
    )


def positive(text: str) -> int:
    """An argparse type: a whole number from 1 on."""
    try:
        if (number := int(text)) >= 1:
            return number
    except ValueError:
        pass
    raise argparse.ArgumentTypeError(f"{text!r} is not a whole number from 1 on")
