"""Checks every field of a manifest that comes from a disk, and takes the fingerprint of those that identify a build.
Files, their replacement and the errors a user sees are for manifest.py."""

import hashlib
import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, get_args, get_type_hints

from precompute.files import canonical_json, damaged, sha256_of, strict_json, unreadable
from precompute.shape import LENSES, PRESETS, Shape

FORMAT_VERSION = 1
MODEL_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*", re.ASCII)
IDENTITY = (
    "format_version",
    "model",
    "revision",
    "weights_sha256",
    "tokenizer_sha256",
    "shape",
    "k",
    "pairs",
    "lenses",
    "presets",
)
FIELDS = (*IDENTITY, "source", "generation", "build", "vocabulary", "neighbours", "shards")

_RESERVED = ("docs", "index", "static", "help", "openapi.json", "robots.txt", "-")
_FACES = (".json", ".csv", ".md", ".tex")
_FILE_NAME = MODEL_NAME  # a plain name: no folders, nothing hidden
_SHA256 = re.compile(r"[0-9a-f]{64}")
_LAYER = re.compile(r"0|[1-9][0-9]{0,8}", re.ASCII)
_LARGEST = {"format_version": FORMAT_VERSION, "k": 1 << 16, "pairs": 1 << 32, "generation": 1 << 32}


class NewerVersionError(ValueError):
    """The manifest says a format version that is yet to come."""


@dataclass(frozen=True)
class FileEntry:
    file: str
    bytes: int
    sha256: str

    def check_sum(self, folder: Path) -> None:
        """ShardDamaged if the file is not the one that was written, to the byte."""
        path = folder / self.file
        try:
            found = sha256_of(path)
        except OSError as error:
            raise unreadable(path, error) from error
        if found != self.sha256:
            raise damaged(path, "is damaged: its contents do not have the checksum that the manifest records")


def is_reserved(name: str) -> bool:
    """Whether a page of the explorer has this address already, so that a model of this name could not be seen."""
    return name in _RESERVED or name.startswith("favicon.") or name.endswith(_FACES)


def fingerprint(values: Mapping[str, Any]) -> str:
    identity = {name: values[name] for name in IDENTITY} | {"shape": asdict(values["shape"])}
    return hashlib.sha256(canonical_json(identity)).hexdigest()[:16]


def parse_fields(content: bytes) -> dict[str, Any]:
    """The fields of a manifest, each one checked, without the fingerprint; ValueError says what is wrong."""
    value = strict_json(content)
    if not isinstance(value, dict):
        raise ValueError("it is not an object")
    version = value.get("format_version")
    if type(version) is int and version > FORMAT_VERSION:
        raise NewerVersionError(version)
    value.setdefault("neighbours", None)
    if differing := sorted(value.keys() ^ set(FIELDS)):
        raise ValueError(f"these fields are missing or unknown: {', '.join(ascii(name)[:40] for name in differing)}")
    for name, largest in _LARGEST.items():
        _check_number(name, value[name], largest)
    for name in ("model", "source", "revision", "weights_sha256", "tokenizer_sha256"):
        if not isinstance(value[name], str):
            raise ValueError(f"{name} is not a text")
        if not value[name].isascii() and value[name].encode("utf-8", "ignore").decode() != value[name]:
            raise ValueError(f"{name} holds halves of characters, which no page can show")
        if name.endswith("sha256") and not _SHA256.fullmatch(value[name]):
            raise ValueError(f"{name} is not a SHA-256")
    if not MODEL_NAME.fullmatch(value["model"]):
        raise ValueError(f"{value['model']!a} is no name of a model")
    for name, known in {"lenses": LENSES, "presets": PRESETS}.items():
        if value[name] != list(known):
            raise ValueError(f"{name} are not {', '.join(known)}")
        value[name] = known
    shape = value["shape"] = _parse_shape(value["shape"])
    if value["k"] > shape.d_vocab:
        raise ValueError(f"k is {value['k']}, more than the {shape.d_vocab} tokens there are")
    value["vocabulary"] = _parse_entry("the vocabulary", value["vocabulary"])
    if value["neighbours"] is not None:
        value["neighbours"] = _parse_entry("the nearest tokens", value["neighbours"])
    value["shards"] = _parse_shards(value["shards"], shape.n_layers)
    if value.pop("build") != fingerprint(value):
        raise ValueError("its fields do not have the fingerprint that it gives as build")
    return value


def _parse_shape(value: Any) -> Shape:
    hints = get_type_hints(Shape)
    if not isinstance(value, dict) or value.keys() != hints.keys():
        raise ValueError(f"shape is not an object with {', '.join(hints)}")
    for name, hint in hints.items():
        choices = get_args(hint)  # of a Literal
        if hint is int:
            _check_number(f"shape.{name}", value[name], 1 << 32)
        elif (value[name] not in choices) if choices else (type(value[name]) is not hint):
            raise ValueError(f"shape.{name} is {ascii(value[name])[:40]}")
    shape = Shape(**value)
    if shape.n_heads % shape.n_kv_heads:
        raise ValueError(f"{shape.n_heads} heads cannot share the keys and values of {shape.n_kv_heads}")
    return shape


def _parse_shards(value: Any, n_layers: int) -> dict[int, FileEntry]:
    if not isinstance(value, dict):
        raise ValueError("shards is not an object")
    for layer in value:
        if not _LAYER.fullmatch(layer) or int(layer) >= n_layers:
            raise ValueError(f"it lists a layer {ascii(layer)[:40]}; there are layers 0 to {n_layers - 1}")
    return {layer: _parse_entry(f"layer {layer}", value[str(layer)]) for layer in sorted(map(int, value))}


def _parse_entry(what: str, value: Any) -> FileEntry:
    match value:
        case {"file": str(file), "bytes": int(n_bytes), "sha256": str(sha256), **rest} if not rest:
            if (
                _FILE_NAME.fullmatch(file)
                and type(n_bytes) is int
                and 0 < n_bytes < 2**48
                and _SHA256.fullmatch(sha256)
            ):
                return FileEntry(file, n_bytes, sha256)
    raise ValueError(f"the file of {what} is not given by a plain name, bytes and sha256")


def _check_number(name: str, value: Any, largest: int) -> None:
    if type(value) is not int or not 1 <= value <= largest:
        raise ValueError(f"{name} is {ascii(value)[:40]}, not a number from 1 to {largest}")
