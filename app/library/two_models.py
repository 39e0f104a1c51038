"""The two models of a difference, as far as a data folder has indexes of them."""

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass

from lexiscope.app.library.library import Library
from lexiscope.precompute.errors import LexiscopeError
from lexiscope.precompute.index.index import Index
from lexiscope.precompute.index.manifest import Manifest


@dataclass(frozen=True)
class OfTwo:
    """One of the two."""

    name: str  # as the difference has it
    index: str | None  # the name of an index of the very weights; None: there is none here


@dataclass(frozen=True)
class TwoModels:
    """tuned - base"""

    tuned: OfTwo
    base: OfTwo

    def __iter__(self) -> Iterator[OfTwo]:
        return iter((self.tuned, self.base))


def two_models(library: Library, index: Index) -> TwoModels | None:
    """None of an index that is no difference."""
    minus = index.manifest.minus
    if minus is None:
        return None
    weights = ((minus.tuned, index.manifest.weights_sha256), (minus.model, minus.weights_sha256))
    tuned, base = (OfTwo(name, _index_of(library, name, sha256)) for name, sha256 in weights)
    return TwoModels(tuned, base)


def _index_of(library: Library, name: str, weights_sha256: str) -> str | None:
    """The index of a model with these weights, the one of that name first."""
    for other in (name, *library.names()):
        with suppress(LexiscopeError):
            if _is_of(library.index(other).manifest, weights_sha256):
                return other
    return None


def _is_of(manifest: Manifest, weights_sha256: str) -> bool:
    return manifest.minus is None and manifest.weights_sha256 == weights_sha256
