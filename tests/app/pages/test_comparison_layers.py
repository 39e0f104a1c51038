"""How well an assignment of layers follows the order of two models."""

from itertools import combinations, pairwise, permutations

import pytest

from lexiscope.app.pages.comparison.layers import LayerPair, in_order, in_order_by_chance, verdict


@pytest.mark.parametrize("layers", [*permutations(range(5)), (0, 2, 5, 6, 8, 7), (9,), ()])
def test_in_order_is_the_longest_rising_choice(layers: tuple[int, ...]) -> None:
    pairs = [*enumerate(layers)]
    rising = [
        chosen
        for size in range(len(pairs) + 1)
        for chosen in combinations(pairs, size)
        if all(first[1] < second[1] for first, second in pairwise(chosen))
    ]
    assert in_order(pairs[::-1]) == max(map(len, rising))


@pytest.mark.parametrize(("assignment", "n_layers", "in_place"), [
    ([(0, 0), (1, 2), (2, 4), (3, 6), (4, 8), (5, 11)], (6, 12), 6),
    ([(0, 0), (2, 1), (4, 2), (6, 3), (8, 4), (11, 5)], (12, 6), 6),  # the other way round
    ([(0, 0), (1, 2), (2, 5), (3, 6), (4, 8), (5, 7)], (6, 12), 5),
    ([(0, 0), (1, 2), (2, 1)], (3, 3), 1),
    ([(0, 7)], (1, 9), 1),
    ([(0, 0)], (1, 1), 1),
])  # fmt: skip
def test_in_place_is_the_same_depth(assignment: list[LayerPair], n_layers: tuple[int, int], in_place: int) -> None:
    found = verdict(assignment, *n_layers)
    assert (found["layers"], found["in_place"]) == (len(assignment), in_place)


@pytest.mark.parametrize("layers", range(1, 7))
def test_in_order_by_chance(layers: int) -> None:
    lengths = [in_order([*enumerate(order)]) for order in permutations(range(layers))]
    assert in_order_by_chance(layers) == pytest.approx(sum(lengths) / len(lengths), abs=0.1)
