"""The labels of one model, found by what they are about and by their words."""

import re
from collections.abc import Iterable, Mapping
from functools import cached_property
from typing import Any, TypeAlias

from lexiscope.precompute.index.label_address import DIRECTIONS, NEURONS, SUBHEADS, LabelAddress
from lexiscope.precompute.index.label_files import FiledLabel, first_faults
from lexiscope.precompute.paper.labels import FILE as PAPER
from lexiscope.precompute.shape import Shape

_Key: TypeAlias = tuple[str, int | None, int | None, int | None]  # kind, layer, head or neuron, subhead or direction

_WORD = re.compile(r"\w+")


class ModelLabels:
    """Falsy where there are none. Labels stand in the order of the layers."""

    def __init__(self, labels: Iterable[FiledLabel] = (), shape: Shape | None = None) -> None:
        self._shape = shape
        self._at: dict[_Key, list[FiledLabel]] = {}
        fitting: list[FiledLabel] = []
        faults: dict[str, list[str]] = {}  # by file
        for filed in labels:
            if shape and (fault := filed.label.about.what_is_wrong(shape)):
                faults.setdefault(filed.file, []).append(f"{filed.file}, entry {filed.entry}, address: {fault}")
                continue
            fitting.append(filed)
            self._at.setdefault(self._key(filed.label.about), []).append(filed)
        self.labels = tuple(sorted(fitting, key=_order))
        # Of labels whose address the model does not have.
        self.faults = tuple(fault for file, of_file in faults.items() for fault in _misplaced(file, of_file))

    def __bool__(self) -> bool:
        return bool(self.labels)

    def at(self, kinds: Iterable[str], *numbers: int) -> tuple[FiledLabel, ...]:
        """Of any of these kinds, by layer, head or neuron, and subhead or direction."""
        if not self.labels:
            return ()
        keys = (self._key(LabelAddress("", kind, *numbers)) for kind in kinds)
        return tuple(filed for key in keys for filed in self._at.get(key, ()))

    @property
    def of_model(self) -> tuple[FiledLabel, ...]:
        return self.at([""])

    def of_neuron(self, layer: int, neuron: int) -> tuple[FiledLabel, ...]:
        return self.at(NEURONS, layer, neuron)

    def of_head(self, layer: int, head: int, *matrices: str) -> tuple[FiledLabel, ...]:
        """Of the head as such, and of these of its matrices."""
        return self.at(("head", *matrices), layer, head)

    def of_subhead(self, layer: int, head: int, subhead: int) -> tuple[FiledLabel, ...]:
        return self.at(SUBHEADS, layer, head, subhead)

    def of_direction(self, layer: int, head: int, direction: int) -> tuple[FiledLabel, ...]:
        return self.at(DIRECTIONS, layer, head, direction)

    def of_vector(self, vector: Mapping[str, Any]) -> tuple[FiledLabel, ...]:
        """Of one vector in a list of vectors, or of the neuron, subhead or direction that it is a side of."""
        kind, layer, head = vector["kind"], vector["layer"], vector["head"]
        if head is None:
            return self.at(("ff", kind), layer, vector["index"])
        if (direction := vector.get("direction")) is not None:
            return self.at(("svd", kind), layer, head, direction)
        return self.at(("sub", kind), layer, head, vector["subhead"])

    def with_words(self, text: str) -> list[FiledLabel]:
        """Those in whose title, text or source every word of a text begins a word, whatever the case."""
        words = [f" {word}" for word in _WORD.findall(text.casefold())]
        if not words:
            return []
        return [filed for filed, said in self._with_their_words if all(word in said for word in words)]

    @cached_property
    def _with_their_words(self) -> list[tuple[FiledLabel, str]]:
        """The words of every label, with a space before each; those of the title come first."""
        return [(filed, " " + " ".join(_WORD.findall(_words(filed).casefold()))) for filed in self.labels]

    def _key(self, address: LabelAddress) -> _Key:
        shared = address.in_shape(self._shape) if self._shape else address
        return shared.kind, shared.layer, shared.index, shared.sub


def _misplaced(file: str, faults: list[str]) -> list[str]:
    """What is said of labels of parameters that a model does not have: nothing is wrong with those of the paper."""
    if file != PAPER:
        return first_faults(file, faults)
    lists = "1 list of the paper is" if len(faults) == 1 else f"{len(faults)} lists of the paper are"
    return [f"{lists} of parameters that this index does not have: it is smaller than the model they were printed of"]


def _words(filed: FiledLabel) -> str:
    return f"{filed.label.title} {filed.label.text} {filed.label.source}"


def _order(filed: FiledLabel) -> tuple[int, ...]:
    about = filed.label.about
    return tuple(-1 if number is None else number for number in (about.layer, about.index, about.sub))
