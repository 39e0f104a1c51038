"""The first tokens of vectors in layers that an index does not have yet, as exact as the lists it will have.

Whoever answers names the vectors of which a page shows words; those of other layers are left out: theirs are stored.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass

import numpy as np
from torch import Tensor

from lexiscope.precompute.live.exact_lists import exact_lists
from lexiscope.precompute.live.wire.answers import ActiveNeuron, FirstTokens
from lexiscope.precompute.live.wire.fields import End, Unbuilt
from lexiscope.precompute.live.words import Vocabulary
from lexiscope.precompute.shape import SIDES, Shape

LENGTH = 25  # how many first tokens a list has


@dataclass(frozen=True)
class ListEnd:
    """One end of a vector's list."""

    kind: str
    layer: int
    index: int
    end: End = "top"


def first_tokens(
    vectors: Callable[[str, int], Tensor], reads: Vocabulary, writes: Vocabulary, unbuilt: Unbuilt | None,
    wanted: Iterable[ListEnd],
) -> list[FirstTokens]:  # fmt: skip
    """Return the lists of those `wanted` ends whose layers are not built, each once.

    `vectors` gives all of a kind and a layer (count, d_model); they are compared with W_E (`reads`) or W_U (`writes`).
    """
    if unbuilt is None:
        return []
    missing = [each for each in dict.fromkeys(wanted) if each.layer in unbuilt.layers]
    found: list[FirstTokens] = []
    ends: tuple[End, ...] = ("top", "bottom")
    for side, vocabulary in (("reads", reads), ("writes", writes)):
        for end in ends:
            some = [each for each in missing if SIDES[each.kind] == side and each.end == end]
            if not some:
                continue
            rows = np.stack([vectors(each.kind, each.layer)[each.index].cpu().numpy() for each in some])
            lists = exact_lists(vocabulary, rows.astype(np.float64), unbuilt.lens, LENGTH, end)
            found += [
                FirstTokens(
                    kind=each.kind,
                    layer=each.layer,
                    index=each.index,
                    end=end,
                    tokens=[token["id"] for token in tokens],
                )
                for each, tokens in zip(some, lists, strict=True)
            ]
    return found


def first_tokens_cost(shape: Shape, unbuilt: Unbuilt | None) -> float:
    """Return the multiplications that the first tokens of one shown vector take on average: only those of layers that
    are not built are computed."""
    return shape.d_vocab * shape.d_model * len(unbuilt.layers) / shape.n_layers if unbuilt else 0.0


def ends_of_neuron(neuron: ActiveNeuron, *, up: bool = False) -> Iterable[ListEnd]:
    """Yield the ends of lists that a page shows of a neuron: one of its key, one of its value and, with `up`, both of
    its up vector."""
    layer, number = neuron["layer"], neuron["neuron"]
    yield ListEnd("ff_key", layer, number)
    yield ListEnd("ff_value", layer, number, neuron["end"])
    if up:
        yield ListEnd("ff_up", layer, number, "top")
        yield ListEnd("ff_up", layer, number, "bottom")


def promoted_end(coefficient: float) -> End:
    """Return the end of a value's list with the tokens that this coefficient promotes: a negative one turns the value
    round."""
    return "top" if coefficient >= 0 else "bottom"
