"""Read the arrays of one layer's file, with what all readers need: the position of a lens, columns that are read only
once, and a ShardDamaged for a value that cannot be right."""

from collections.abc import Iterable

from lexiscope.precompute.errors import NotFound, ShardDamaged
from lexiscope.precompute.files import damaged
from lexiscope.precompute.index.layer.checks import LARGEST_COHERENCE, list_error
from lexiscope.precompute.index.stored import Stored, position
from lexiscope.precompute.index.tensor_file import Array, Floats, TensorFile
from lexiscope.precompute.shape import ENDS


class ShardArrays:
    def __init__(self, file: TensorFile, stored: Stored, layer: int) -> None:
        self.file = file
        self.stored = stored
        self.shape = stored.shape
        self.layer = layer
        self._columns: dict[str, Array] = {}

    def lens_at(self, lens: str) -> int:
        """Return the position that a lens has in the arrays."""
        return position("lens", lens, self.stored.lenses)

    def column(self, name: str) -> Array:
        """Return an array with one or two numbers for each vector or head; it is read from the file once."""
        if name not in self._columns:
            self._columns[name] = self.file.array(name)
        return self._columns[name]

    def cosines(self, what: str, stored: Floats) -> list[float]:
        """Return mean cosines, which may be NaN; raise ShardDamaged if they cannot be cosines."""
        values: list[float] = stored.tolist()
        for value in values:
            if abs(value) > LARGEST_COHERENCE:
                raise self.damage(f"{what} is {value}")
        return values

    def check_ends(self, what: str, ids: Iterable[Array], falling: Iterable[Floats]) -> None:
        for end, listed, scores in zip(ENDS, ids, falling, strict=True):
            if said := list_error(listed, scores, self.shape.d_vocab):
                raise self.damage(f"{what}{end}) {said}")

    def check_range(self, what: str, number: int, count: int) -> None:
        if not 0 <= number < count:
            raise NotFound(f"{what} {number}: layer {self.layer} has {what} 0 to {count - 1}")

    def damage(self, what: str) -> ShardDamaged:
        return damaged(self.file.path, f"is damaged: {what}")
