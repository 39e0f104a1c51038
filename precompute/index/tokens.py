"""Hold a vocabulary as bytes: what each token writes, which tokens are the same word, which are whole words. This
module only reads the tokenizer's file; text is encoded by the tokenizer itself."""

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cached_property, partial
from itertools import pairwise
from pathlib import Path
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from lexiscope.precompute.errors import BadWeights, NotFound
from lexiscope.precompute.files import strict_json

MASKS = ("[MASK]", "<mask>")  # the token that an encoder is to guess, in vocabularies that have one
CONTINUES = "##"  # a WordPiece vocabulary puts it before a piece that continues a word
_METASPACE = "▁"
_BYTE_PIECE = re.compile(r"<0x([0-9A-Fa-f]{2})>")
_SPACED_WORD = re.compile(rb" [A-Za-z]{3,}")
_BARE_WORD = re.compile(rb"[A-Za-z]{3,}")
# How makers of vocabularies write tokens that stand for no text. Tags such as <p> are text.
_SPECIAL = re.compile(
    r"<\|[^\s|]{1,60}\|>|\[(?:CLS|SEP|PAD|MASK|UNK|unused\d+)\]|<[a-z]+(?:_[a-z]+)+>|"
    r"<(?:/?s|unk|pad|mask|bos|eos|filename|reponame|unused\d+)>"
)


class TokenTable:
    """The bytes of every token, in two arrays: a token's bytes are between its offset and the next one's."""

    def __init__(self, offsets: NDArray[np.uint32], data: NDArray[np.uint8]) -> None:
        if not len(offsets) or offsets[0] != 0 or offsets[-1] != len(data) or np.any(offsets[:-1] > offsets[1:]):
            raise ValueError("the offsets of the tokens do not rise from the first byte to the last")
        self._offsets = offsets
        self._data = data

    @classmethod
    def of(cls, raws: Sequence[bytes]) -> Self:
        return cls(*pack(raws))

    def __len__(self) -> int:
        return len(self._offsets) - 1

    def raw(self, token: int) -> bytes:
        if not 0 <= token < len(self):
            raise NotFound(f"token {token}: the vocabulary has tokens 0 to {len(self) - 1}")
        return self._data[self._offsets[token] : self._offsets[token + 1]].tobytes()

    def text(self, token: int) -> str:
        r"""Return the token as text; a byte that is no UTF-8 by itself becomes \xNN."""
        return self.raw(token).decode("utf-8", "backslashreplace")

    @cached_property
    def texts(self) -> list[str]:
        """Return the texts of all tokens, as a list, because looking up hundreds of tokens one by one mostly waits for
        memory."""
        return [raw.decode("utf-8", "backslashreplace") for raw in self]

    @cached_property
    def numbers(self) -> dict[str, int]:
        """Return the id of the token with each text; if several tokens have the same text, the first."""
        return {text: token for token, text in reversed([*enumerate(self.texts)])}

    @cached_property
    def is_wordpiece(self) -> bool:
        return is_wordpiece(self)

    @cached_property
    def mask(self) -> str | None:
        """Return the mask token of this vocabulary as text; None if it has none."""
        return next((mask for mask in MASKS if mask in self.texts), None)

    def surface(self, text: str) -> str:
        """Return the surface of a text, which may be a token's or a visitor's: the text without case and surrounding
        space. Bytes that are not UTF-8 stay different from each other."""
        return text_surface(text, self.is_wordpiece)

    def continues_word(self, token: int) -> bool:
        """Return True if a token is marked as continuing a word, as in ##ing; for other vocabularies, where only a
        missing space may mean that, return False."""
        return self.is_wordpiece and self.texts[token].startswith(CONTINUES)

    def __iter__(self) -> Iterator[bytes]:
        data, offsets = self._data.tobytes(), self._offsets.tolist()
        return (data[start:stop] for start, stop in pairwise(offsets))


def pack(raws: Sequence[bytes]) -> tuple[NDArray[np.uint32], NDArray[np.uint8]]:
    """Pack the bytes of all tokens into the two arrays of a TokenTable: offsets (d_vocab + 1) and data."""
    offsets = np.zeros(len(raws) + 1, np.uint32)
    np.cumsum([len(raw) for raw in raws], out=offsets[1:])
    return offsets, np.frombuffer(b"".join(raws), np.uint8)


def is_wordpiece(raws: Iterable[bytes]) -> bool:
    """Return True if words have no space before them and pieces that continue them begin with ##, as in BERT's
    vocabulary.

    All vocabularies of the other kinds have words with a space before them, even if they have a token ##.
    """
    beginnings = {raw[:3] for raw in raws}
    spaced = any(start[:1] == b" " and start[1:2].isalpha() for start in beginnings)
    return not spaced and any(len(start) == 3 and start.startswith(CONTINUES.encode()) for start in beginnings)


def surface(raw: bytes, wordpiece: bool = False) -> str:
    """Return a token's text without the differences that do not count: case, surrounding space, and the ## of a
    WordPiece vocabulary."""
    return text_surface(raw.decode("utf-8", "replace"), wordpiece)


def text_surface(text: str, wordpiece: bool) -> str:
    text = text.strip().lower()
    return (text.removeprefix(CONTINUES) if wordpiece else text) or text


def distinct_classes(raws: Sequence[bytes]) -> NDArray[np.int32]:
    """Number tokens so that those with the same surface (text without case and surrounding space) have the same number:
    (d_vocab,)."""
    wordpiece = is_wordpiece(raws)
    numbers: dict[str, int] = {}
    return np.array([numbers.setdefault(surface(raw, wordpiece), len(numbers)) for raw in raws], np.int32)


def whole_words(raws: Sequence[bytes]) -> NDArray[np.bool_]:
    """Return flags (d_vocab,) of the tokens that are whole words: a space (none in a WordPiece vocabulary), then three
    or more ASCII letters and nothing else."""
    word = _BARE_WORD if is_wordpiece(raws) else _SPACED_WORD
    return np.array([word.fullmatch(raw) is not None for raw in raws], np.bool_)


def is_special(text: str) -> bool:
    """Return True if a token looks like one that stands for no text: <|endoftext|>, [CLS], <unk>, [unused7]."""
    return _SPECIAL.fullmatch(text) is not None


def token_bytes(tokenizer_json: Path, d_vocab: int) -> list[bytes]:
    """Return the raw bytes of every token; b"" for embedding rows without a token."""
    try:
        document = strict_json(tokenizer_json.read_bytes())
        pieces = _pieces(document)
        added = _added(document)
        decode, decode_added = _decoders(document)
        raws = [b""] * d_vocab
        for token, piece in pieces.items():
            if token >= d_vocab and token not in added:
                raise ValueError(f"its token {piece!a} has the id {token}, the embedding only {d_vocab} rows")
            if token < d_vocab:
                raws[token] = decode(piece)
        for token, content in added.items():
            if token < d_vocab:  # a padding token that was added to the tokenizer and not to the model has no row
                raws[token] = decode_added(content)
    except OSError as error:
        raise BadWeights(f"cannot read the tokenizer {tokenizer_json}: {error.strerror}") from error
    except ValueError as error:
        raise BadWeights(f"cannot use the tokenizer {tokenizer_json}: {error}") from None
    return raws


def _pieces(document: Any) -> dict[int, str]:
    """Return the pieces of a tokenizer's vocabulary by id; the vocabulary is an object (BPE) or a list of [piece,
    score] (Unigram)."""
    match document:
        case {"model": {"vocab": dict(vocabulary)}}:
            pairs = list(vocabulary.items())
        case {"model": {"vocab": list(entries)}} if all(isinstance(entry, list) and entry for entry in entries):
            pairs = [(entry[0], token) for token, entry in enumerate(entries)]
        case _:
            raise ValueError("it has no vocabulary")
    return _numbered(pairs)


def _added(document: Any) -> dict[int, str]:
    entries = document.get("added_tokens") or []
    if not isinstance(entries, list) or not all(isinstance(entry, dict) for entry in entries):
        raise ValueError("its added_tokens are not a list of objects")
    return _numbered([(entry.get("content"), entry.get("id")) for entry in entries])


def _numbered(pairs: Iterable[tuple[Any, Any]]) -> dict[int, str]:
    numbered: dict[int, str] = {}
    for text, token in pairs:
        if not isinstance(text, str) or type(token) is not int or token < 0:
            raise ValueError(f"it maps {ascii(text)[:40]} to {ascii(token)[:40]}, which is no id")
        if token in numbered:
            raise ValueError(f"{numbered[token]!a} and {text!a} have the same id {token}")
        numbered[token] = text
    return numbered


def _decoders(document: Any) -> tuple[Callable[[str], bytes], Callable[[str], bytes]]:
    """Return two functions that turn pieces into bytes: one for pieces of this vocabulary, one for tokens that were
    added to it.

    How bytes are written is found in the tokenizer's decoder or, without one, in what it does before encoding.
    """
    fallback = bool(document["model"].get("byte_fallback"))
    kind = document["model"].get("type")
    if kind == "WordPiece" or "WordPiece" in _mentions(document.get("decoder"))[0]:
        prefix = document["model"].get("continuing_subword_prefix")
        return partial(_decode_wordpiece, prefix if isinstance(prefix, str) else CONTINUES), str.encode
    for part in ("decoder", "pre_tokenizer", "normalizer"):
        types, texts = _mentions(document.get(part))
        if "ByteLevel" in types:
            return _decode_byte_level, str.encode
        if "Metaspace" in types or _METASPACE in texts:
            return _decode_fallback if fallback or "ByteFallback" in types else _decode_metaspace, _decode_metaspace
    raise ValueError(
        f"its vocabulary (type {kind!a}) is neither byte-level nor metaspace nor WordPiece; those three are supported"
    )


def _mentions(part: Any) -> tuple[set[str], set[str]]:
    """Return the values of `type` anywhere in a part of a tokenizer's file, and all other texts in it."""
    types: set[str] = set()
    texts: set[str] = set()
    todo = [("", part)]
    while todo:
        name, value = todo.pop()
        if isinstance(value, dict):
            todo += value.items()
        elif isinstance(value, list):
            todo += [("", element) for element in value]
        elif isinstance(value, str):
            (types if name == "type" else texts).add(value)
    return types, texts


def _byte_alphabet() -> dict[str, int]:
    """Return the byte for each letter with which GPT-2 writes bytes: printable Latin-1 stands for itself, the letters
    from U+0100 on stand for the other bytes in turn."""
    printable = {*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)}
    others = [byte for byte in range(256) if byte not in printable]
    return {chr(byte): byte for byte in printable} | {chr(0x100 + n): byte for n, byte in enumerate(others)}


_ALPHABET = _byte_alphabet()


def _decode_byte_level(piece: str) -> bytes:
    try:
        return bytes([_ALPHABET[character] for character in piece])
    except KeyError:
        # It is not written in letters for bytes, so it is text as it is, as for the tokenizer's own decoder.
        return piece.encode("utf-8")


def _decode_wordpiece(prefix: str, piece: str) -> bytes:
    """Return the bytes of a WordPiece piece: ## comes first if the piece continues a word, whatever prefix this
    vocabulary uses for that."""
    is_continuing = prefix and piece.startswith(prefix)
    return (CONTINUES + piece.removeprefix(prefix) if is_continuing else piece).encode()


def _decode_metaspace(piece: str) -> bytes:
    return piece.replace(_METASPACE, " ").encode("utf-8")


def _decode_fallback(piece: str) -> bytes:
    match = _BYTE_PIECE.fullmatch(piece)
    return bytes.fromhex(match[1]) if match else _decode_metaspace(piece)
