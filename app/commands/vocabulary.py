"""`lexiscope vocabulary`: add a corpus or word list to the data folder, list those that there are, remove one."""

import argparse
import csv
import io
import re
from contextlib import suppress
from pathlib import Path

from lexiscope.app.commands.command import command, option
from lexiscope.precompute.errors import BadRequest, BuildError, LexiscopeError
from lexiscope.precompute.plain_text import file_size, plain

COLUMNS = ("text", "review", "word", "words")  # names of the column of a table that holds its texts


@command(
    "vocabulary",
    "add a corpus or word list of one's own, to which lists can be kept",
    "A vocabulary is a file DATA/vocabularies/NAME.txt with a word or a text on each line: pages of every model can "
    "keep their lists to the tokens that occur in it. `add` takes a file of lines, or a CSV or TSV with a header: the "
    "column text, review or word, else the one with the longest texts.",
    option(
        "action",
        "add a file, list vocabularies (without an action, too), remove one",
        choices=("add", "list", "remove"),
        metavar="add|list|remove",
        nargs="?",
        default="list",
    ),
    option("file", "the file to add, or the name to remove", metavar="FILE", nargs="?"),
    option("--name", "its name: small letters, digits, - and _ (default: that of the file)"),
    examples="lexiscope vocabulary add reviews.csv --name reviews",
)
def run(args: argparse.Namespace) -> None:
    from lexiscope.app.library.library import Library
    from lexiscope.app.library.vocabularies import NAME
    from lexiscope.precompute.files import write_beside

    library = Library(args.data)
    vocabularies = library.vocabularies
    if args.action == "list":
        if not (names := vocabularies.names()):
            print(f"No vocabulary in {vocabularies.folder}; `lexiscope vocabulary add FILE` makes one.")
        for name in names:
            print(plain(f"{name}  {file_size(vocabularies.path(name).stat().st_size)}"))
        return
    if not args.file:
        raise BadRequest(f"{args.action} what? Give a {'file' if args.action == 'add' else 'name'}")
    if args.action == "remove":
        vocabularies.remove(args.file)
        return
    path = Path(args.file)
    name = args.name or re.sub(r"[^a-z0-9_-]+", "-", path.stem.lower()).strip("-_")
    if not NAME.fullmatch(name):
        raise BadRequest(f"{name[:64]!r} is no name of a vocabulary: give --name, of small letters, digits, - and _")
    texts = texts_of_file(path)
    try:
        vocabularies.folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise BuildError(f"{vocabularies.folder} cannot be made: {error.strerror}") from None
    write_beside(vocabularies.path(name), (f"{text}\n".encode() for text in texts))
    print(plain(f"{vocabularies.path(name)}: {len(texts):,} texts"))
    for model in library.names():
        with suppress(LexiscopeError):  # of an index that cannot be used; `lexiscope models` says why
            found = vocabularies.find(name, library.index(model), library.tokenizer(model)).tokens
            print(plain(f"  {found.sum():,} of {len(found):,} tokens of {model} occur in it"))


def texts_of_file(path: Path) -> list[str]:
    """Return the lines of a file or, of a table, one column; each text once, and as one line."""
    from lexiscope.app.library.vocabularies import read_text

    content, delimiter = read_text(path), {".csv": ",", ".tsv": "\t"}.get(path.suffix.lower())
    texts = content.splitlines() if delimiter is None else _column(content, delimiter, path.name)
    if not (found := [*dict.fromkeys(filter(None, (" ".join(text.split()) for text in texts)))]):
        raise BadRequest(f"{path.name} holds no text")
    return found


def _column(content: str, delimiter: str, file: str) -> list[str]:
    """Return the column of a table that is called a text, or else has the longest texts."""
    former = csv.field_size_limit(len(content) + 1)
    try:
        header, *rows = [*csv.reader(io.StringIO(content, newline=""), delimiter=delimiter)] or [[]]
    except csv.Error as error:
        raise BadRequest(f"{file} cannot be read as a table: {error}") from None
    finally:
        csv.field_size_limit(former)
    names = [name.strip().lower() for name in header]
    named = [names.index(name) for name in COLUMNS if name in names]
    lengths = [sum(len(row[at]) for row in rows if at < len(row)) for at in range(len(header))]
    chosen = named[0] if named else max(range(len(header)), key=lengths.__getitem__, default=0)
    return [row[chosen] for row in rows if chosen < len(row)]
