"""Read the lists that the paper printed in its appendices (of heads, neurons, looked-up neurons and fine-tuned vectors)
and its numbers. README.md beside the files says where they are from and how far to trust them."""

from functools import cache
from pathlib import Path
from typing import Any, Literal, TypeVar

from pydantic import BaseModel, ConfigDict, TypeAdapter

from lexiscope.precompute.index.manifest import Manifest

MEDIUM, BASE = "gpt2-medium", "gpt2"  # the models whose lists are printed
PUBLISHED_MODELS = (MEDIUM, BASE)
HUB_OWNERS = ("", "openai-community/")  # owners that may stand before a model's name in the source of an index
TITLE = "Analyzing Transformers in Embedding Space"
CITATION = f"Dar, Geva, Gupta, Berant: {TITLE} (2022)"
URL = "https://arxiv.org/abs/2209.02535"
LICENCE = "CC BY 4.0"

T = TypeVar("T", bound="Printed")


class Printed(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")

    section: str


class PrintedHead(Printed):
    """The first 50 pairs that the paper printed of a head, of which some could not be read."""

    model: str
    matrix: Literal["vo", "qk"]
    layer: int
    head: int
    note: str
    excluded: tuple[str, ...]
    pairs: tuple[tuple[str, str], ...]
    low_confidence: frozenset[int]  # pairs from garbled print
    space_uncertain: frozenset[tuple[int, Literal[0, 1]]]  # a pair and its side whose leading space was lost
    comments: tuple[str, ...] = ()  # what the authors wrote beside pairs

    @property
    def without_same_token(self) -> bool:
        """Return True if pairs of a token with itself were left out in print."""
        return "same token" in self.excluded


class PrintedNeuron(Printed):
    model: str
    layer: int
    neuron: int
    key: tuple[str, ...]
    value: tuple[str, ...]
    unassigned: tuple[str, ...]  # tokens of which it is not known whether they are of the key or the value
    uncertain: tuple[str, ...]  # tokens of key or value that may be misread


class LookupResult(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")

    layer: int
    neuron: int
    rank: int
    tokens: tuple[str, ...]  # tokens of the neuron's value


class PrintedLookup(Printed):
    model: str
    seeds: tuple[str, ...]
    results: tuple[LookupResult, ...]


class PrintedDifference(Printed):
    """What fine-tuning changed in a vector (after minus before), as words; the paper does not say which vector it
    is."""

    model: str
    task: str
    layer: int | None
    kind: str
    index: None
    table: int
    diff: tuple[str, ...]
    minus_diff: tuple[str, ...]
    layer_inferred: bool
    note: str


class PrintedNumber(Printed):
    id: str
    value: Any
    kind: Literal["number", "approximate", "counted", "method", "claim", "not given"]
    description: str


def published_lists(model: str, source: str) -> str | None:
    """Return the model whose printed lists belong to the model with this name or source; None if there are none."""
    for name in PUBLISHED_MODELS:
        if model == name or source in [owner + name for owner in HUB_OWNERS]:
            return name
    return None


def lists_of(manifest: Manifest) -> str | None:
    """Return the model whose printed lists belong to an index; for a difference, that is the model of its base."""
    if manifest.minus:
        base = published_lists(manifest.minus.model, manifest.minus.source)
        return base if base == BASE else None
    return published_lists(manifest.model, manifest.source)


@cache
def heads() -> tuple[PrintedHead, ...]:
    return _read("pairs.json", PrintedHead)


@cache
def neurons() -> tuple[PrintedNeuron, ...]:
    return _read("ff.json", PrintedNeuron)


@cache
def lookups() -> tuple[PrintedLookup, ...]:
    return _read("lookup.json", PrintedLookup)


@cache
def differences() -> tuple[PrintedDifference, ...]:
    return _read("finetuning.json", PrintedDifference)


def printed_number(name: str) -> PrintedNumber:
    """Return a number of the paper by its id."""
    return next(number for number in numbers() if number.id == name)


@cache
def numbers() -> tuple[PrintedNumber, ...]:
    return _read("numbers.json", PrintedNumber)


def _read(name: str, printed: type[T]) -> tuple[T, ...]:
    return TypeAdapter(tuple[printed, ...]).validate_json(Path(__file__).with_name(name).read_bytes())  # type: ignore[valid-type]
