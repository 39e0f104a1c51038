"""Read the manifest of an index that somebody else made, and refuse what no build of ours would write. Hashes guard
against damage on the way; these checks guard against a manifest that means harm."""

import re
from collections.abc import Callable

from lexiscope.precompute.errors import ForeignIndex, NewerFormat, NotPublished, OldFormat
from lexiscope.precompute.files import strict_json
from lexiscope.precompute.index.index_files import layout_of
from lexiscope.precompute.index.layout import Piece, layout_bytes, shard_size
from lexiscope.precompute.index.manifest import MANIFEST, MOST_MANIFEST_BYTES, Manifest, is_old_format
from lexiscope.precompute.index.origin import LONGEST_NAME, model_name
from lexiscope.precompute.index.tensor_file import FORMAT, MAX_HEADER
from lexiscope.precompute.plain_text import file_size
from lexiscope.precompute.travel.published import PublishedIndex

MOST_GENERATIONS = 1 << 20
LONGEST_TEXT, MOST_TEXTS = 1000, 100  # characters of a text that pages show, and texts in a list
LONGEST_TOKEN = 256  # bytes, on average: the shape does not tell how long the file of a vocabulary may be


def read_manifest(published: PublishedIndex, is_reserved: Callable[[str], bool]) -> Manifest:
    """Read the manifest of a published index; `is_reserved` tells which names no model may have."""
    content = published.read(MANIFEST, MOST_MANIFEST_BYTES)
    if content is None:
        raise NotPublished(
            f"There is no index in {published.where}: it has no {MANIFEST}. Give the folder of one model, such as gpt2"
        )
    manifest = parse_manifest(content, published.where)
    name = manifest.model
    if len(name) > LONGEST_NAME or is_reserved(name) or model_name(name) != name:  # `demo` means another model
        raise ForeignIndex(
            f"{published.where} holds an index called {name[:LONGEST_NAME]!a}, a name that no model can have here: "
            "whoever published it has to build it under another name"
        )
    return manifest


def parse_manifest(content: bytes, where: str) -> Manifest:
    try:
        _check_format(strict_json(content), where)
        manifest = Manifest.parse(content)
        _check_texts(manifest)
        _check_files(manifest)
    except ValueError as error:
        raise ForeignIndex(f"{MANIFEST} in {where} is not that of an index, or is damaged: {error}") from None
    return manifest


def _check_format(fields: object, where: str) -> None:
    if not isinstance(fields, dict):
        return
    version = fields.get("format")
    if type(version) is int and version > FORMAT:
        raise NewerFormat(
            f"{where} has format {str(version)[:20]}; this Lexiscope reads format {FORMAT}: "
            "`pip install --upgrade lexiscope`"
        )
    if is_old_format(fields):
        raise OldFormat(
            f"{where} was published by an older Lexiscope; this one reads format {FORMAT}. Ask for it to be built and "
            "pushed anew, or build it yourself: `lexiscope precompute MODEL`"
        )


def _check_texts(manifest: Manifest) -> None:
    """Raise ValueError for texts that would spoil every page that shows them."""
    shape, minus = manifest.shape, manifest.minus
    texts = {
        "revision": (manifest.revision,),
        "source": (manifest.source,),
        "shape.architecture": (shape.architecture,),
        "shape.name": (shape.name,),
        "shape.left_out": shape.left_out,
        "shape.left_out_writing": shape.left_out_writing,
    }
    if minus:
        names = ("tuned", "model", "source", "revision")
        texts |= {f"minus.{name}": (getattr(minus, name),) for name in names}
    for field, of_field in texts.items():
        if len(of_field) > MOST_TEXTS:
            raise ValueError(f"{field} has {len(of_field)} texts, and can have {MOST_TEXTS} at most")
        if (longest := max(map(len, of_field), default=0)) > LONGEST_TEXT:
            raise ValueError(f"{field} has {longest} characters, and can have {LONGEST_TEXT} at most")


def _check_files(manifest: Manifest) -> None:
    """Raise ValueError unless every file has the name and at most the size that such a file can have. Parts that are
    not known here are not fetched, so they need no check."""
    if manifest.generation > MOST_GENERATIONS:  # a rebuild here counts on from this number
        raise ValueError(f"its generation is {manifest.generation}, and can be {MOST_GENERATIONS} at most")
    for piece, entry in manifest.entries().items():
        if not piece.is_known(entry.file):
            continue
        generation = re.search(r"\.g([1-9][0-9]{0,7})\.", entry.file)
        if entry.file != piece.file(int(generation[1]) if generation else 1, piece.version_in(entry.file)):
            raise ValueError(f"the file of {piece} is called {entry.file[:80]!a}")
        most = _most_bytes(manifest, piece, entry.file) + MAX_HEADER + 8
        if entry.bytes > most:
            raise ValueError(
                f"{entry.file} is to have {file_size(entry.bytes)}, and can have {file_size(most)} at most"
            )


def _most_bytes(manifest: Manifest, piece: Piece, file: str) -> int:
    """Return the largest size that the file of a piece can have, from its arrays."""
    if piece.part == "lists":
        return shard_size(manifest.stored)[0]
    of_tokens = manifest.shape.d_vocab * LONGEST_TOKEN if piece.part == "vocabulary" else 0
    return layout_bytes(layout_of(manifest, piece, file)) + of_tokens
