"""Read vocabularies, DATA/vocabularies/NAME.txt: corpora or word lists of one's own, a word or a text on each line. A
page can keep its lists to the tokens that occur in one."""

import hashlib
import re
import threading
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from lexiscope.precompute.errors import BuildError, IndexFault, NotFound
from lexiscope.precompute.files import Stamp, open_regular, read_regular, stamp_of, write_beside
from lexiscope.precompute.index.index import Index
from lexiscope.precompute.index.tensor_file import Array
from lexiscope.precompute.live.wire.errors import LiveDown

if TYPE_CHECKING:
    from tokenizers import Tokenizer

VOCABULARIES = "vocabularies"  # the folder in the data folder
FOUND = ".tokens"  # the folder, below that one, of the tokens that were found for each tokenizer
NAME = re.compile(r"[a-z0-9][a-z0-9_-]{0,63}", re.ASCII)
MOST_BYTES = 256_000_000  # of a vocabulary's file
MOST_NAMES = 200  # vocabularies of a data folder
LINES_AT_ONCE = 256
LONGEST_TEXT = 20_000  # characters of a line that are tokenised at once
RETRY_SECONDS = 5


@dataclass(frozen=True, eq=False)
class Vocabulary:
    """The tokens of one model that occur in a corpus or word list."""

    name: str
    stamp: Stamp | None  # of the file
    tokens: Array  # flags (d_vocab,)


class Vocabularies:
    """The vocabularies of a data folder. To find the tokens of one takes as long as to tokenise it, so they are kept in
    memory and in a file beside it."""

    def __init__(self, data: Path) -> None:
        self.folder = data / VOCABULARIES
        self._known: dict[tuple[str, str], Vocabulary] = {}
        self._finding = threading.Lock()

    def names(self) -> tuple[str, ...]:
        try:
            paths = [path for path in self.folder.iterdir() if path.suffix == ".txt" and NAME.fullmatch(path.stem)]
            paths = [path for path in paths if path.is_file()]
        except OSError:
            return ()
        return tuple(sorted(path.stem for path in paths)[:MOST_NAMES])

    def path(self, name: str) -> Path:
        return self.folder / f"{name}.txt"

    def stamp(self, name: str) -> Stamp:
        """Return the stamp of a vocabulary's file; raise NotFound, which names those that there are."""
        stamp = stamp_of(self.path(name)) if NAME.fullmatch(name) else None
        if stamp is None:
            there = ", ".join(self.names()) or "none: `lexiscope vocabulary add FILE` adds one"
            raise NotFound(f"no vocabulary of the name {name[:64]!r}; there are {there}")
        return stamp

    def remove(self, name: str) -> None:
        self.stamp(name)  # raises NotFound if there is none
        try:
            for path in (self.path(name), *(self.folder / FOUND).glob(f"{name}.*")):
                path.unlink()
        except OSError as error:
            raise BuildError(f"{error.filename} cannot be removed: {error.strerror}") from None

    def held(self, name: str, index: Index) -> Vocabulary | None:
        """Return the vocabulary's tokens if they are in memory and the file has not changed."""
        known = self._known.get((name, index.manifest.tokenizer_sha256))
        stamp = self.stamp(name)
        return known if known and known.stamp == stamp and len(known.tokens) == index.shape.d_vocab else None

    def find(self, name: str, index: Index, tokenizer: "Tokenizer | None") -> Vocabulary:
        """Return the tokens of a vocabulary. Raise LiveDown if one is read just now, which may take a minute."""
        if held := self.held(name, index):
            return held
        if tokenizer is None:
            raise IndexFault(f"{index.manifest.model} has no tokenizer here, without which no vocabulary can be read")
        if not self._finding.acquire(timeout=1):
            raise LiveDown("a vocabulary is being read for the first time", RETRY_SECONDS)
        try:
            key, stamp = (name, index.manifest.tokenizer_sha256), self.stamp(name)
            tokens = self._read_found(key, stamp, index.shape.d_vocab)
            if tokens is None:
                tokens = tokens_of_texts(read_texts(self.path(name)), tokenizer, index.shape.d_vocab)
                self._write_found(key, stamp, tokens)
            self._known[key] = Vocabulary(name, stamp, tokens)
            return self._known[key]
        finally:
            self._finding.release()

    def _read_found(self, key: tuple[str, str], stamp: Stamp, d_vocab: int) -> Array | None:
        try:
            content = read_regular(self._found_file(*key))
        except OSError:
            return None
        mark, bits = content[: len(_mark(stamp))], content[len(_mark(stamp)) :]
        if mark != _mark(stamp) or len(bits) != -(-d_vocab // 8):
            return None
        return np.unpackbits(np.frombuffer(bits, np.uint8), count=d_vocab).astype(bool)

    def _write_found(self, key: tuple[str, str], stamp: Stamp, tokens: Array) -> None:
        with suppress(OSError, BuildError):  # a server may not write here; it keeps the tokens in memory
            self._found_file(*key).parent.mkdir(parents=True, exist_ok=True)
            write_beside(self._found_file(*key), (_mark(stamp), np.packbits(tokens).tobytes()))

    def _found_file(self, name: str, tokenizer_sha256: str) -> Path:
        return self.folder / FOUND / f"{name}.{tokenizer_sha256[:16]}"


def _mark(stamp: Stamp) -> bytes:
    return hashlib.blake2b(str(stamp).encode(), digest_size=16).digest()


def read_text(path: Path) -> str:
    """Read a file of text; raise IndexFault if it is too long, no text, or cannot be read."""
    try:
        with open_regular(path) as file:
            content = file.read(MOST_BYTES + 1)
        if len(content) > MOST_BYTES:
            raise IndexFault(f"{path.name} is longer than {MOST_BYTES:,} bytes: take a part of it")
        return content.decode("utf-8-sig")
    except OSError as error:
        raise IndexFault(f"{path.name} cannot be read: {error.strerror}") from error
    except UnicodeDecodeError as error:
        line = content[: error.start].count(b"\n") + 1
        raise IndexFault(f"{path.name} is not UTF-8 (line {line}): save it as UTF-8") from None


def read_texts(path: Path) -> Iterator[str]:
    """Yield the words and texts of a vocabulary: a word by itself also with a space before it, a long line in parts."""
    for line in dict.fromkeys(map(str.strip, read_text(path).split("\n"))):
        while len(text := line[:LONGEST_TEXT]) < len(line):
            end = text.rfind(" ") if " " in text[1:] else LONGEST_TEXT
            yield line[:end]
            line = line[end:]
        yield line
        if line and not any(map(str.isspace, line)):
            yield f" {line}"


def tokens_of_texts(texts: Iterator[str], tokenizer: "Tokenizer", d_vocab: int) -> Array:
    """Return flags (d_vocab,) of the tokens that occur in texts."""
    found: set[int] = set()
    while some := [*islice(texts, LINES_AT_ONCE)]:
        for encoding in tokenizer.encode_batch_fast(some, add_special_tokens=False):
            found.update(encoding.ids)
    flags = np.zeros(d_vocab, bool)
    flags[[token for token in found if token < d_vocab]] = True
    return flags
