"""The lists of a classification head, which belongs to no layer: read from its file, and checked."""

import numpy as np

from lexiscope.precompute.errors import NotFound
from lexiscope.precompute.files import damaged
from lexiscope.precompute.index.list_checks import LARGEST_COHERENCE, SIGNS, fault
from lexiscope.precompute.index.lists import VectorLists
from lexiscope.precompute.index.manifest_entries import ClassifierEntry
from lexiscope.precompute.index.stored import Stored
from lexiscope.precompute.index.tensor_file import TensorFile
from lexiscope.precompute.shape import ENDS


class ClassifierLists:
    def __init__(self, file: TensorFile, stored: Stored, entry: ClassifierEntry) -> None:
        self.file = file
        self.entry = entry
        self._stored = stored

    def vector(self, kind: str, index: int, lens: str) -> VectorLists:
        counts, lenses = self.entry.counts, self._stored.lenses
        if kind not in counts:
            raise NotFound(f"kind {kind!r}: the classification head has {', '.join(counts)}")
        if not 0 <= index < counts[kind]:
            raise NotFound(f"{kind} {index}: there are 0 to {counts[kind] - 1}")
        if lens not in lenses:
            raise NotFound(f"lens {lens!r}: there are {', '.join(lenses)}")
        at = index, lenses.index(lens)
        ids, scores = (self.file.block(f"{kind}.{part}", *at) for part in ("ids", "scores"))
        for end, listed, falling in zip(ENDS, ids, scores * SIGNS, strict=True):
            if said := fault(listed, falling, self._stored.shape.d_vocab):
                raise damaged(self.file.path, f"is damaged: {kind} {index} ({lens}, {end}) {said}")
        coherences = self.file.block(f"{kind}.coherence", *at).tolist()
        norm = float(self.file.block(f"{kind}.norm", index))
        if any(abs(value) > LARGEST_COHERENCE for value in coherences) or not np.isfinite(norm):
            raise damaged(self.file.path, f"is damaged: the norm or coherence of {kind} {index} is no such number")
        return VectorLists(ids, scores, norm, *coherences)

    def base_norm(self, kind: str, index: int) -> float | None:
        """Of a difference from a base with such a head: |base vector|."""
        return float(self.file.block(f"{kind}.base_norm", index)) if self.entry.subtracted else None
