"""Which model the home page begins with."""

import pytest

from lexiscope.app.library.library import ModelCard
from lexiscope.app.pages.home import HomeView
from lexiscope.precompute.index.origin import DEMO_NAME


def card(model: str, ready: int, n_layers: int = 12, n_bytes: int = 1, base: str = "") -> ModelCard:
    layers = tuple(range(ready))
    return ModelCard(model=model, n_layers=n_layers, layers=layers, bytes=n_bytes, base=base, faults=())


@pytest.mark.parametrize(("cards", "names"), [
    ([card("a", 3), card(DEMO_NAME, 1, 30), card("z", 12)], [DEMO_NAME, "z", "a"]),
    ([card("a", 11), card("b", 6, 6), card("c", 24, 24, 9)], ["c", "b", "a"]),
    ([card("a", 12, base="b"), card("b", 1), card("c", 1)], ["b", "c", "a"]),
    ([card("a", 0, 0), card("b", 1)], ["b", "a"]),
])  # fmt: skip
def test_the_demo_then_the_most_complete(cards: list[ModelCard], names: list[str]) -> None:
    view = HomeView(models=tuple(cards), comparisons=(), start=None)
    assert [card.model for card in view.ordered] == names
    assert list(view.searched) == [card.model for card in view.ordered if card.layers]
