"""Layers of two models: heat maps, panels of a figure, and how well an assignment follows the order of both."""

import re
from itertools import combinations, pairwise, permutations

import pytest

from lexiscope.app.html.numbers import HEAT_STEPS
from lexiscope.app.pages.comparison.layers import KindView, LayerPair, in_order, in_order_by_chance, verdict
from lexiscope.app.pages.comparison.maps import LARGEST_TABLE, LayerMap, figure, layer_maps


def kind_view(n_a: int, n_b: int, feature_space: bool = True) -> KindView:
    values = [[0.04 + 0.001 * ((a * 7 + b * 3) % 11) for b in range(n_b)] for a in range(n_a)]
    diagonal = [(layer, layer) for layer in range(min(n_a, n_b))]
    return {
        "similarity": values, "assignment": diagonal,
        "feature_space": values if feature_space else None, "feature_assignment": diagonal if feature_space else None,
        "best": [[1.0 if a == b else 0.0 for b in range(n_b)] for a in range(n_a)], "best_layers": diagonal,
        "same_index": None, "chance": None, "feature_chance": None,
        "verdict": verdict(diagonal, n_a, n_b), "feature_verdict": None,
    }  # fmt: skip


def test_colours_go_from_the_smallest_to_the_largest() -> None:
    (similar, best, _) = layer_maps(kind_view(3, 4))
    cells = sorted(value for row in similar.values for value in row)
    assert (similar.step(cells[0]), similar.step(cells[-1])) == (0, HEAT_STEPS)
    darkness = [-sum(bytes.fromhex(similar.colour(value)[1:])) for value in cells]
    assert darkness == sorted(darkness)
    assert (similar.text(0.0594), best.text(0.984)) == (".059", "98")
    assert LayerMap("similarity", [[0.5]], [], 0.5, 0.5).step(0.5) == 0  # one number is neither small nor large


@pytest.mark.parametrize(("n_a", "n_b"), [(21, 20), (30, 24)])
def test_a_large_map_is_drawn_whole(n_a: int, n_b: int) -> None:
    drawn = layer_maps(kind_view(n_a, n_b))[0]
    assert not drawn.is_table
    assert n_a * n_b > LARGEST_TABLE
    squares = {
        (float(x), float(y)): step
        for step, path in drawn.squares()
        for x, y in re.findall(r"M([\d.]+) ([\d.]+)h1v1h-1z", path)
    }
    expected = {(b, n_a - 1 - a): drawn.step(drawn.values[a][b]) for a in range(n_a) for b in range(n_b)}
    assert squares == expected


@pytest.mark.parametrize(("n_a", "n_b"), [(1, 1), (6, 12), (12, 6), (30, 30), (96, 80)])
def test_panels_of_a_figure_do_not_overlap(n_a: int, n_b: int) -> None:
    made = figure({"ff_key": kind_view(n_a, n_b), "w_o": kind_view(n_a, n_b, False)}, n_a, n_b)
    assert len(made.panels) == 5
    width, height = n_b * made.cell, n_a * made.cell
    for panel in made.panels:
        assert 0 < panel.x < panel.x + width <= made.width
        assert 0 < panel.y < panel.y + height <= made.height
    for one, other in combinations(made.panels, 2):
        assert abs(one.x - other.x) >= width or abs(one.y - other.y) >= height
    assert made.every * made.cell >= 10  # numbers at the axes do not run into each other


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
