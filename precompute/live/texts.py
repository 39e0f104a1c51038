"""Read files of texts that models run on (lines of a .txt, or a CSV with or without labels), and cut a text into
tokens."""

import csv
import hashlib
import io
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

from tokenizers import Tokenizer

from lexiscope.precompute.errors import BadRequest, BadWeights
from lexiscope.precompute.files import read_regular
from lexiscope.precompute.index.tokenizer import parse_tokenizer
from lexiscope.precompute.weights.difference import Parameters

TEXT_COLUMNS = ("text", "label")
Encoded: TypeAlias = tuple[tuple[int, ...], tuple[int, ...], tuple[int, ...]]
LONGEST_FILE_NAME = 255  # longest name of a file that records keep
LONGEST_FIELD = 10_000_000  # characters of a CSV's field


@dataclass(frozen=True)
class Texts:
    name: str  # the file's name
    sha256: str
    texts: tuple[str, ...]
    labels: tuple[str, ...] | None  # the labels in a CSV, one for each text

    def spread(self, limit: int) -> "Texts":
        """Return at most `limit` of the texts, evenly spread over the file, because files are often sorted by label."""
        count = len(self.texts)
        if count <= limit:
            return self
        chosen = [n * count // limit for n in range(limit)]
        labels = None if self.labels is None else tuple(self.labels[n] for n in chosen)
        return Texts(self.name, self.sha256, tuple(self.texts[n] for n in chosen), labels)


def read_texts(path: Path, *, labelled: bool = True) -> Texts:
    """Read a file of texts; raise BadRequest if the file is something else. If `labelled`, a CSV must have labels;
    otherwise labels are not read."""
    columns = TEXT_COLUMNS if labelled else TEXT_COLUMNS[:1]
    if path.suffix.lower() not in (".txt", ".csv"):
        wanted = f"the columns {','.join(columns)}" if labelled else "a column text"
        raise BadRequest(f"--texts {path}: give a .txt with a text in each line, or a .csv with {wanted}")
    try:
        content = read_regular(path)
        text = content.decode("utf-8-sig")
    except OSError as error:
        raise BadRequest(f"--texts {path} cannot be read: {error.strerror or error}") from None
    except UnicodeDecodeError as error:
        raise BadRequest(f"--texts {path} is not UTF-8 (byte {error.start}): save it in that encoding") from None
    sha256 = hashlib.sha256(content).hexdigest()
    if path.suffix.lower() == ".txt":
        lines = tuple(line.strip() for line in text.split("\n") if line.strip())
        if not lines:
            raise BadRequest(f"--texts {path} is empty: give a text in each line")
        return Texts(_name(path), sha256, lines, None)
    rows = _rows(path, text, columns)
    if not rows:
        raise BadRequest(f"--texts {path} has no rows with {' and '.join(f'a {name}' for name in columns)}")
    labels = tuple(row[1] for row in rows) if labelled else None
    return Texts(_name(path), sha256, tuple(row[0] for row in rows), labels)


def _name(path: Path) -> str:
    """Return the name of a file, with question marks for bytes that are not UTF-8."""
    return path.name.encode("utf-8", "replace").decode()[:LONGEST_FILE_NAME]


def _rows(path: Path, text: str, columns: tuple[str, ...]) -> list[tuple[str, ...]]:
    """Return the values of these columns in every row of a CSV that has a text."""
    former = csv.field_size_limit(LONGEST_FIELD)
    try:
        reader = csv.DictReader(io.StringIO(text, newline=""))
        names = reader.fieldnames or ()
        if missing := [name for name in columns if name not in names]:
            has = ", ".join(names)[:100] or "nothing"
            raise BadRequest(f"--texts {path} has no column {missing[0]!r}: its first line must name "
                             f"{' and '.join(columns)}, and has {has}")  # fmt: skip
        rows = [tuple((row[name] or "").strip() for name in columns) for row in reader]  # None where a row is too short
    except csv.Error as error:
        raise BadRequest(f"--texts {path} is no CSV that can be read: {error}") from None
    finally:
        csv.field_size_limit(former)
    if unlabelled := [number for number, row in enumerate(rows, 1) if row[0] and not row[-1]]:
        raise BadRequest(f"--texts {path}: row {unlabelled[0]} has a text and no label")
    return [row for row in rows if row[0]]


def encode(tokenizer: Tokenizer, text: str) -> Encoded:
    """Return three parts of an encoded text: tokens that the tokenizer puts before it, its own tokens, and tokens that
    the tokenizer puts after it."""
    encoding = tokenizer.encode(text)
    own = [at for at, special in enumerate(encoding.special_tokens_mask) if not special]
    if not own:
        return tuple(encoding.ids), (), ()
    first, stop = own[0], own[-1] + 1
    return tuple(encoding.ids[:first]), tuple(encoding.ids[first:stop]), tuple(encoding.ids[stop:])


def tokenizer_of(model: Parameters) -> Tokenizer:
    path = model.tokenizer_file()
    try:
        return parse_tokenizer(path.read_bytes())
    except Exception as error:  # the library raises nothing more special
        raise BadWeights(f"{path} is not a tokenizer ({error}). Get the checkpoint again.") from None
