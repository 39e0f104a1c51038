"""Reads the manifest of an index that somebody else made, and refuses what no build of ours would write: hashes guard
against damage on the way, this against a manifest that means harm."""

import math
import re
from collections.abc import Callable

import numpy as np

from lexiscope.precompute.errors import ForeignIndex, NewerFormat, NotPublished, OldFormat
from lexiscope.precompute.files import strict_json
from lexiscope.precompute.index.layout import (
    Layout,
    classifier_layout,
    neighbours_layout,
    shard_size,
    vocabulary_layout,
)
from lexiscope.precompute.index.manifest import MANIFEST, Manifest
from lexiscope.precompute.index.manifest_entries import FileEntry
from lexiscope.precompute.index.manifest_format import MAX_BYTES, is_old_format
from lexiscope.precompute.index.model_names import model_name
from lexiscope.precompute.index.tensor_file import FORMAT, MAX_HEADER
from lexiscope.precompute.plain_text import file_size
from lexiscope.precompute.travel.published import PublishedIndex

LONGEST_NAME = 96  # characters, as of the names that people give
MOST_GENERATIONS = 1 << 20
LONGEST_TEXT, MOST_TEXTS = 1000, 100  # characters of a text that pages show, and how many a list of them has
LONGEST_TOKEN = 256  # bytes, on average: the vocabulary alone does not say how long its file may be


def read_manifest(published: PublishedIndex, is_reserved: Callable[[str], bool]) -> Manifest:
    """`is_reserved` tells the names that no model may have."""
    content = published.read(MANIFEST, MAX_BYTES)
    if content is None:
        raise NotPublished(
            f"There is no index in {published.where}: it has no {MANIFEST}. Give the folder of one model, such as gpt2"
        )
    manifest = parse_manifest(content, published.where)
    name = manifest.model
    if len(name) > LONGEST_NAME or is_reserved(name) or model_name(name) != name:  # `demo` means another one
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
    """ValueError for texts that would spoil every page that shows them."""
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
    """ValueError unless every file has the name and at most the size that such a file can have."""
    stored, shape = manifest.stored, manifest.shape
    if manifest.generation > MOST_GENERATIONS:  # a rebuild here counts on from it
        raise ValueError(f"its generation is {manifest.generation}, and can be {MOST_GENERATIONS} at most")
    most_of_shard = shard_size(stored)[0]
    for layer, entry in manifest.shards.items():
        _check(entry, f"layer-{layer}", most_of_shard)
    assert manifest.vocabulary  # a manifest that was parsed has one
    _check(manifest.vocabulary, "vocabulary", _size(vocabulary_layout(shape)) + shape.d_vocab * LONGEST_TOKEN)
    if manifest.neighbours:
        _check(manifest.neighbours, "neighbours", _size(neighbours_layout(shape)))
    if head := manifest.classifier:
        _check(head, "classifier", _size(classifier_layout(stored, head.counts, head.subtracted)))


def _check(entry: FileEntry, stem: str, most_of_arrays: int) -> None:
    if not re.fullmatch(rf"{stem}(\.g[1-9][0-9]{{0,7}})?\.safetensors", entry.file):
        raise ValueError(f"the file of {stem} is called {entry.file[:80]!a}")
    most = most_of_arrays + MAX_HEADER + 8
    if entry.bytes > most:
        raise ValueError(f"{entry.file} is to have {file_size(entry.bytes)}, and can have {file_size(most)} at most")


def _size(layout: Layout) -> int:
    """Bytes of all arrays; one whose length is open counts as empty."""
    return sum(np.dtype(dtype).itemsize * max(0, math.prod(dims)) for dtype, dims in layout.values())
