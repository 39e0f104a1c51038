"""Read files of labels, which are what people said of parameters: DATA/labels/*.json, each a JSON list of objects. They
may come from anybody: every error is named, by file, entry and field, and all other entries are used."""

import os
import unicodedata
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import islice
from pathlib import Path
from typing import Annotated, Any, Literal, TypeAlias
from urllib.parse import urlsplit

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, StringConstraints, ValidationError, model_validator

from lexiscope.precompute.files import open_regular, strict_json
from lexiscope.precompute.index.label_address import LabelAddress, parse_label_address
from lexiscope.precompute.plain_text import plain
from lexiscope.precompute.shape import MATRICES, Preset

LABELS = "labels"  # the folder in the data folder
MOST_FILE_BYTES, MOST_LABELS = 4_000_000, 20_000  # limits of a file
MOST_FILES, MOST_FOLDER_BYTES = 200, 16_000_000  # limits of a folder
MOST_ENTRIES = 1_000  # most entries of a label's list
MOST_ERRORS = 20  # errors of a file that are named one by one

_JOINERS = "\u200c\u200d"  # characters that some scripts, and emoji, are written with
_BLANK = "\u2800\u115f\u1160\u3164\uffa0"  # signs and letters without ink
# Categories of characters that hide what follows, turn it round or break the line.
_UNSEEN = ("Cc", "Cf", "Cs", "Zl", "Zp")


def _check_visible(text: str, allowed: str = "") -> str:
    for character in text if not text.isprintable() else "":
        if unicodedata.category(character) in _UNSEEN and character not in allowed + _JOINERS:
            raise ValueError(f"it holds U+{ord(character):04X}, which cannot be seen: leave it out")
    return text


def _line(text: str) -> str:
    if text and all(character.isspace() or character in _BLANK for character in text):
        raise ValueError("it is empty: say in a few words what was found")
    return _check_visible(text)


def _lines(text: str) -> str:
    return _check_visible(text, "\n\r\t")


def _address(text: str) -> str:
    parse_label_address(text)
    return text


def _web(url: str) -> str:
    _check_visible(url)
    try:
        parts = urlsplit(url)
        fine = parts.scheme in ("http", "https") and bool(parts.hostname) and "@" not in parts.netloc
        fine = fine and parts.port != 0  # `port` raises a ValueError if it is no number of a port
    except ValueError:
        fine = False
    if url and (not fine or " " in url or "\\" in url):
        raise ValueError("it is http:// or https:// and a host, such as https://arxiv.org/abs/2209.02535")
    return url


Token: TypeAlias = Annotated[str, StringConstraints(max_length=500)]
Pair: TypeAlias = Annotated[list[Token], Field(min_length=2, max_length=2)]  # the tokens at the sides from and to


class Label(BaseModel):
    """One label of a file. A leading space of a token is written as a space."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True, allow_inf_nan=False)

    address: Annotated[str, StringConstraints(max_length=400), AfterValidator(_address)]
    title: Annotated[str, StringConstraints(min_length=1, max_length=200, pattern=r"\S"), AfterValidator(_line)]
    text: Annotated[str, StringConstraints(max_length=4000), AfterValidator(_lines)] = ""
    # The person who said so, and where.
    source: Annotated[str, StringConstraints(max_length=400), AfterValidator(_line)] = ""
    url: Annotated[str, StringConstraints(max_length=2000), AfterValidator(_web)] = ""
    pairs: Annotated[list[Pair] | None, Field(min_length=1, max_length=MOST_ENTRIES)] = None  # only for vo and qk
    tokens: Annotated[list[Token] | None, Field(min_length=1, max_length=MOST_ENTRIES)] = None
    end: Literal["top", "bottom"] = "top"  # the end of the stored list with which the label's list is compared
    lens: Literal["dot", "cosine"] = "dot"
    preset: Preset = "all"  # the preset of pairs

    @model_validator(mode="after")
    def _one_list(self) -> "Label":
        if self.pairs is not None and self.tokens is not None:
            raise ValueError("give pairs or tokens, not both")
        if self.pairs is not None and self.about.kind not in MATRICES:
            raise ValueError("pairs are for addresses with vo or qk; others have tokens")
        if self.tokens is not None and not self.about.kind:
            raise ValueError("a label of a whole model has no tokens")
        return self

    @cached_property
    def about(self) -> LabelAddress:
        return parse_label_address(self.address)


@dataclass(frozen=True, slots=True)
class FiledLabel:
    """A label with the name of its file and its number in that file."""

    label: Label
    file: str  # the name of the file, for people
    entry: int  # number of the label in the file, from 1


@dataclass(frozen=True, slots=True)
class LabelFile:
    labels: tuple[FiledLabel, ...] = ()
    errors: tuple[str, ...] = ()  # errors, each with the name of the file


def label_paths(folder: Path) -> list[Path]:
    """Return the paths of all label files of a folder, sorted by name, without opening them; none if there is no
    folder. Raise OSError if it is no folder."""
    try:
        with os.scandir(folder) as entries:
            names = [entry.name for entry in entries if entry.name.endswith(".json") and not entry.name.startswith(".")]
    except (FileNotFoundError, NotADirectoryError):
        if folder.exists():
            raise
        return []
    return [folder / name for name in sorted(names)]


def read_label_file(path: Path, name: str, inside: Path | None = None) -> LabelFile:
    """Read a file of labels. `name` is its name for people; `inside` is the folder that a link may not lead out of."""
    try:
        found = path.resolve(strict=True)
        if inside is not None and not found.is_relative_to(inside.resolve()):
            return LabelFile(errors=(f"{name}: it is a link to a file outside of {LABELS}/: put the file itself here",))
        with open_regular(found) as file:
            content = file.read(MOST_FILE_BYTES + 1)
    except (OSError, RuntimeError) as error:  # RuntimeError: links in a circle
        why = error.strerror if isinstance(error, OSError) and error.strerror else "a link that leads nowhere"
        return LabelFile(errors=(f"{name}: it cannot be read ({why}): put a JSON file here that the server may read",))
    return parse_labels(content, name)


def parse_labels(content: bytes, name: str) -> LabelFile:
    """Return the labels in the content of a file; entries that are no labels are left out, and their errors are
    returned, too."""
    try:
        if len(content) > MOST_FILE_BYTES:
            raise ValueError(f"it is longer than {MOST_FILE_BYTES} bytes: split it into several files")
        if content.startswith(b"\xef\xbb\xbf"):
            raise ValueError("it begins with a byte order mark: save it as UTF-8 without one")
        entries = strict_json(content)
        if not isinstance(entries, list):
            raise ValueError('it is no list: write [{"address": "gpt2/ff/10/2361", "title": "..."}, ...]')
        if len(entries) > MOST_LABELS:
            raise ValueError(f"it has {len(entries)} entries: {MOST_LABELS} at most, split it into several files")
    except ValueError as error:
        why = "it holds a number of thousands of digits" if "digits" in str(error) else plain(str(error))
        return LabelFile(errors=(f"{name}: {why}",))
    labels: list[FiledLabel] = []
    errors: list[str] = []
    unnamed = 0
    for number, entry in enumerate(entries, 1):
        try:
            labels.append(FiledLabel(Label.model_validate(entry), name, number))
        except ValidationError as error:
            if len(errors) < MOST_ERRORS:
                errors += (f"{name}, entry {number}{what}" for what in islice(_explained(error), MOST_ERRORS))
            else:
                unnamed += 1
    return LabelFile(tuple(labels), tuple(first_errors(name, errors, unnamed)))


def first_errors(name: str, errors: Sequence[str], unnamed: int = 0) -> list[str]:
    """Return the first errors of a file, and a line with how many more there are, including the `unnamed` ones, which
    were only counted."""
    more = len(errors) - MOST_ERRORS + unnamed
    return [*errors[:MOST_ERRORS], *([f"{name}: {more} more errors like these"] if more > 0 else ())]


def plain_path(path: Path | str) -> str:
    """Return the name of a file as text that can be printed, whatever bytes it consists of."""
    return plain(str(path).encode("utf-8", "backslashreplace").decode())


def _explained(error: ValidationError) -> Iterator[str]:
    """Yield each error of an entry: the field, what is wrong with it, and what would work."""
    for fault in error.errors(include_url=False, include_input=False):
        where = ".".join(str(at + 1) if isinstance(at, int) else at for at in fault["loc"])
        what = _SAYINGS.get(fault["type"], "{msg}").format(msg=fault["msg"], **fault.get("ctx", {}))
        yield plain((f", {where[:80]}: " if where else ": ") + what.removeprefix("Value error, "))


_FIELDS = ", ".join(Label.model_fields)
_SAYINGS: dict[str, Any] = {
    "missing": "it is missing, and every label has an address and a title",
    "extra_forbidden": f"there is no such field; there are {_FIELDS}",
    "model_type": 'an entry is an object, such as {{"address": "gpt2/ff/10/2361", "title": "..."}}',
    "string_type": 'it is no text: write it in quotes, "..."',
    "string_unicode": "it is no valid Unicode: half of a character is missing",
    "string_too_long": "it is longer than {max_length} characters: shorten it",
    "string_too_short": "it is empty: say in a few words what was found",
    "string_pattern_mismatch": "it is empty: say in a few words what was found",
    "list_type": "it is no list: write [...]",
    "too_long": "its length is {actual_length}, and {max_length} is the most",
    "too_short": "its length is {actual_length}, and {min_length} is the least",
    "literal_error": "it is none of {expected}",
}
