"""What an index stores of a model: which kinds of vectors, under which lenses, and how long its lists are.
A build can leave out kinds, a lens, or all pairs of heads; what a model has is in its Shape."""

from dataclasses import dataclass
from functools import cached_property

from precompute.shape import LENSES, MATRICES, Shape


@dataclass(frozen=True)
class Stored:
    shape: Shape
    kinds: tuple[str, ...]  # in the order of Shape.kinds, in which a shard numbers them
    lenses: tuple[str, ...]  # in the order of LENSES
    k: int  # entries of a list
    pairs: int  # entries of a list of pairs; 0: there are none

    @property
    def matrices(self) -> tuple[str, ...]:
        return MATRICES if self.pairs else ()

    @cached_property
    def n_vectors(self) -> int:
        """How many vectors a layer has, all kinds together."""
        return sum(map(self.shape.count, self.kinds))

    @property
    def similarity(self) -> bool:
        """Whether a neuron's key is compared with its value: where both are stored."""
        return "ff_key" in self.kinds and "ff_value" in self.kinds

    @property
    def neurons(self) -> bool:
        """Whether neurons have a page."""
        return any(kind.startswith("ff_") for kind in self.kinds)

    @property
    def subheads(self) -> bool:
        return any(kind.startswith("w_") for kind in self.kinds)

    @property
    def heads(self) -> bool:
        """Whether heads have a page."""
        return self.subheads or self.pairs > 0

    @property
    def lens(self) -> str:
        """The lens of a page that is asked for without one."""
        return self.lenses[0]

    @property
    def options(self) -> str:
        """The options of `lexiscope precompute` that left something out; "" where everything is stored."""
        options = [
            "" if self.kinds == self.shape.kinds else f"--kinds {','.join(self.kinds)}",
            "" if self.lenses == LENSES else f"--lenses {','.join(self.lenses)}",
            "" if self.pairs else "--pairs 0",
        ]
        return " ".join(option for option in options if option)
