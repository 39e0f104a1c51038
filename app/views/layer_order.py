"""How well an assignment of layers to layers follows the order of two models: what one line says of a heat map."""

from bisect import bisect_left
from collections.abc import Sequence
from math import cbrt, sqrt

from typing_extensions import TypedDict

LayerPair = tuple[int, int]  # a layer of A, and the layer of B that it is assigned to


class Verdict(TypedDict):
    layers: int  # that are assigned: as many as the shorter model has
    in_order: int  # the most of them that follow each other in both models
    in_place: int  # those assigned to the layer at the same relative depth


def verdict(assignment: Sequence[LayerPair], n_layers_a: int, n_layers_b: int) -> Verdict:
    in_place = [pair for pair in assignment if _is_in_place(*pair, n_layers_a, n_layers_b)]
    return {"layers": len(assignment), "in_order": in_order(assignment), "in_place": len(in_place)}


def in_order(assignment: Sequence[LayerPair]) -> int:
    """The length of the longest sequence of pairs that rises on both sides."""
    ends: list[int] = []  # by length: the lowest layer of B in which a rising sequence of that length can end
    for _, layer in sorted(assignment):
        at = bisect_left(ends, layer)
        ends[at : at + 1] = [layer]
    return len(ends)


def in_order_by_chance(layers: int) -> float:
    """About how many of so many layers are in order if they are assigned at random: the mean length of a longest
    increasing subsequence, by Baik, Deift and Johansson (1999); 0.6 more fits the true means of few layers."""
    return max(1.0, 2 * sqrt(layers) - 1.7711 * sqrt(cbrt(layers)) + 0.6)


def _is_in_place(a: int, b: int, n_layers_a: int, n_layers_b: int) -> bool:
    """Whether the layer of the shorter model is the one nearest to the other's relative depth."""
    if n_layers_a > n_layers_b:
        a, b, n_layers_a, n_layers_b = b, a, n_layers_b, n_layers_a
    return abs(b * (n_layers_a - 1) - a * (n_layers_b - 1)) * 2 <= n_layers_b - 1
