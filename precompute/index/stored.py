"""Describe what an index stores of a model: which kinds of vectors, under which lenses, and how long its lists are. A
build can leave out kinds, a lens, or all pairs of heads; a model's Shape says what the model has."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from lexiscope.precompute.errors import NotFound
from lexiscope.precompute.shape import COMPARED, DIRECTION_KINDS, DIRECTIONS, LENSES, MATRICES, Shape


@dataclass(frozen=True)
class Stored:
    shape: Shape
    kinds: tuple[str, ...]  # in the order of Shape.kinds, in which a shard numbers them
    lenses: tuple[str, ...]  # in the order of LENSES
    k: int  # entries of a list
    pairs: int  # entries of a list of pairs; 0: no pairs are stored
    difference: bool = False  # whether this is a difference of two checkpoints, and not a model

    @property
    def matrices(self) -> tuple[str, ...]:
        return MATRICES if self.pairs else ()

    @cached_property
    def n_vectors(self) -> int:
        """Return how many vectors a layer has, all kinds together."""
        return sum(map(self.shape.count, self.kinds))

    @cached_property
    def weight_kinds(self) -> tuple[str, ...]:
        """Return the stored kinds whose vectors are rows or columns of weights: all except directions."""
        return tuple(kind for kind in self.kinds if kind not in DIRECTION_KINDS)

    @cached_property
    def counted_kinds(self) -> tuple[str, ...]:
        """Return the kinds whose lists decide which tokens are hubs and which lens reads best. Directions count only if
        nothing else is stored, so that no number of another list depends on them."""
        return self.weight_kinds or self.kinds

    @property
    def directions(self) -> tuple[str, ...]:
        """Return the matrices (`vo`, `qk`) of which directions and their singular values are stored."""
        return tuple(matrix for matrix, kinds in DIRECTIONS.items() if not {*kinds}.isdisjoint(self.kinds))

    @property
    def compared(self) -> tuple[str, ...]:
        """Return which pairs of kinds are compared, because both kinds are stored: of `ff` (key, value), `vo` (v, o),
        `qk` (q, k)."""
        return tuple(name for name, kinds in COMPARED.items() if {*kinds} <= {*self.kinds})

    @property
    def similarity(self) -> bool:
        """Return True if the keys of neurons are compared with their values."""
        return "ff" in self.compared

    @property
    def in_and_out(self) -> bool:
        """Return True if what neurons read is compared with what they write. That of a difference is not: a change of
        a key does not say what the neuron reads."""
        return self.similarity and not self.difference

    @property
    def neurons(self) -> bool:
        """Return True if the index has what a page about a neuron shows."""
        return any(kind.startswith("ff_") for kind in self.kinds)

    @property
    def subheads(self) -> bool:
        return any(kind.startswith("w_") for kind in self.kinds)

    @property
    def heads(self) -> bool:
        """Return True if the index has what a page about a head shows."""
        return self.subheads or self.pairs > 0 or bool(self.directions)

    @property
    def lens(self) -> str:
        """Return the lens that is shown when a page is asked for without one."""
        return self.lenses[0]

    @property
    def options(self) -> str:
        """Return the options of `lexiscope precompute` with which something was left out; "" if everything is stored,
        or everything except directions."""
        usual = (self.shape.kinds, self.shape.weight_kinds)
        options = [
            "" if self.kinds in usual else f"--kinds {','.join(self.kinds)}",
            "" if self.lenses == LENSES else f"--lenses {','.join(self.lenses)}",
            "" if self.pairs else "--pairs 0",
        ]
        return " ".join(option for option in options if option)


def position(what: str, asked: str, known: Sequence[str]) -> int:
    """Return the position of a name among the known ones. Files use this position to number lenses, ends, presets and
    kinds."""
    if asked not in known:
        raise NotFound(f"{what} {asked!r}: there are {', '.join(known)}")
    return known.index(asked)
