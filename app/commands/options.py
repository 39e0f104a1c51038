"""Options that several commands have: where the data is, how to build, how much of texts; types for argparse."""

import argparse
import os
import re
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

from precompute.errors import BuildError
from precompute.shape import LENSES, SIDES

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


def check_folder(data: Path) -> None:
    """Checks the data folder before anything is fetched or computed for it."""
    try:
        data.exists()
    except OSError as error:
        raise BuildError(f"--data {str(data)[:80]} cannot be used ({error.strerror}): give another folder") from None
    if data.exists() and not data.is_dir():
        raise BuildError(f"--data {data} is a file: give a folder, or a place where one can be made")
    if data.exists() and not os.access(data, os.W_OK | os.X_OK):
        raise BuildError(f"--data {data} cannot be written to: check its permissions, or choose another folder")


def positive(text: str) -> int:
    """An argparse type: a whole number from 1 on."""
    try:
        if (number := int(text)) >= 1:
            return number
    except ValueError:
        pass
    raise argparse.ArgumentTypeError(f"{text!r} is not a whole number from 1 on")


def natural(text: str) -> int:
    """An argparse type: a whole number from 0 on."""
    if text.isascii() and text.isdecimal():
        return int(text)
    raise argparse.ArgumentTypeError(f"{text!r} is not a whole number from 0 on")


def amount(text: str) -> float:
    """An argparse type: a number from 0 on, such as 1 or 0.5."""
    try:
        if 0 <= (number := float(text)) < float("inf"):
            return number
    except ValueError:
        pass
    raise argparse.ArgumentTypeError(f"{text!r} is not a number from 0 on, such as 1 or 0.5")


def add_build(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--layers", type=layers, metavar="A-B", help="only these layers, such as 30-35 or 0,5,7")
    parser.add_argument("--k", type=positive, metavar="N", help="tokens per list and end (default: as built, else 100)")
    parser.add_argument(
        "--pairs", type=natural, metavar="N", help="pairs per head and end, 0 for none (default: as built, else 500)"
    )
    parser.add_argument(
        "--kinds",
        type=some_of(tuple(SIDES)),
        metavar="KIND,...",
        help=f"only these vectors, of {', '.join(SIDES)} (default: as built, else all)",
    )
    parser.add_argument(
        "--lenses",
        type=some_of(LENSES),
        metavar="LENS,...",
        help=f"only these, of {', '.join(LENSES)} (default: as built, else both)",
    )
    parser.add_argument("--device", default="auto", help="auto, cpu, cuda, cuda:1, ... (default: auto)")
    parser.add_argument("--threads", type=positive, metavar="N", help="on the CPU (default: one per core)")
    parser.add_argument("--force", action="store_true", help="rebuild beside an existing index, then replace it")


def add_text_limits(parser: argparse.ArgumentParser, limit: int, length: int) -> None:
    """How much of a file of texts is read."""
    parser.add_argument(
        "--limit",
        type=positive,
        default=limit,
        metavar="N",
        help=f"at most so many texts, evenly spread over the file ({limit})",
    )
    parser.add_argument(
        "--tokens", type=positive, default=length, metavar="N", help=f"of each text, the rest is left out ({length})"
    )


def ray_address(text: str) -> str:
    """An argparse type: where a Ray cluster is."""
    if text in ("auto", "local") or re.fullmatch(r"ray://[^/\s]+:[0-9]{1,5}", text):
        return text
    raise argparse.ArgumentTypeError(f"{text!r} is none of auto, local and ray://HOST:PORT")


def layers(text: str) -> tuple[int, ...]:
    """An argparse type: numbers and ranges, as in 0,5,30-35."""
    numbers: list[int] = []
    for part in text.split(","):
        match = re.fullmatch(r"([0-9]{1,5})(?:-([0-9]{1,5}))?", part.strip())
        first, last = (int(match[1]), int(match[2] or match[1])) if match else (1, 0)
        if last < first:
            raise argparse.ArgumentTypeError(f"{text!r} is not a range of layers such as 30-35 or 0,5,7")
        numbers += range(first, last + 1)
    return tuple(numbers)


def some_of(known: tuple[str, ...]) -> Callable[[str], tuple[str, ...]]:
    """An argparse type: names with commas between, in the order of the known ones."""

    def names(text: str) -> tuple[str, ...]:
        given = [name.strip() for name in text.split(",")]
        if wrong := [name for name in given if name not in known]:
            raise argparse.ArgumentTypeError(f"{wrong[0]!r} is none of {', '.join(known)}")
        return tuple(name for name in known if name in given)

    return names
