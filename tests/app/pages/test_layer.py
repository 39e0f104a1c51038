"""A layer's table against the arrays of a small index: every order, every filter, every page."""

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lexiscope.app.lists.find_tokens import token_named
from lexiscope.app.pages.layer import ROW_TOKENS, SORTS
from lexiscope.precompute.errors import NotFound
from lexiscope.precompute.index.index import Index
from lexiscope.precompute.shape import LENSES
from tests.support.lists import SHAPES, all_listings, stored_arrays, token
from tests.support.synthetic import D_VOCAB
from tests.support.views import layer_view, make_view

ROWS = {
    (name, lens): [
        {
            "neuron": neuron,
            "key": [token(t) for t in arrays["ff_key.ids"][neuron, at, 0, :ROW_TOKENS].tolist()],
            "value": [token(t) for t in arrays["ff_value.ids"][neuron, at, 0, :ROW_TOKENS].tolist()],
            "value_bottom": [token(t) for t in arrays["ff_value.ids"][neuron, at, 1, :ROW_TOKENS].tolist()],
            "norm": arrays["ff_value.norm"][neuron].item(),
            "coherence": None if neuron == 1 else arrays["ff_value.coherence"][neuron, at, 0].item(),
            "similarity": arrays["ff.similarity"][neuron, at, 0].item(),
            "similarity_bottom": arrays["ff.similarity"][neuron, at, 1].item(),
            "z": None,
            "cosines": None,
        }
        for neuron in range(shape.d_mlp)
    ]
    for name, shape in SHAPES.items()
    for arrays in [stored_arrays(shape, 0)]
    for at, lens in enumerate(LENSES)
}
LISTINGS = {name: list(all_listings(shape, (0,))) for name, shape in SHAPES.items()}


def ordered(rows: list[dict[str, Any]], sort: str) -> list[dict[str, Any]]:
    by, sign = sort.removeprefix("-"), -1 if sort.startswith("-") else 1
    if by == "neuron":
        return rows[::sign]

    def number(row: dict[str, Any]) -> float:
        value = max(row[by], row["similarity_bottom"]) if by == "similarity" else row[by]
        return math.inf if value is None else -sign * value

    return sorted(rows, key=lambda row: (number(row), row["neuron"]))


@given(
    name=st.sampled_from(sorted(SHAPES)),
    lens=st.sampled_from(LENSES),
    sort=st.sampled_from([sign + sort for sort in SORTS if sort != "z" for sign in ("", "-")]),  # z is not stored here
    number=st.none() | st.integers(0, D_VOCAB - 1),
    size=st.integers(1, 7),
)
def test_every_page(indexes: dict[str, Index], name: str, lens: str, sort: str, number: int | None, size: int) -> None:
    expected = ordered(ROWS[name, lens], sort)
    if number is not None:
        listing = {
            entry.number
            for entry in LISTINGS[name]
            if (entry.token, entry.lens) == (number, lens) and entry.kind in ("ff_key", "ff_value")
        }
        expected = [row for row in expected if row["neuron"] in listing]
    shown: list[Any] = []
    pages = max(1, -(-len(expected) // size))
    for page in range(1, pages + 1):
        view = layer_view(indexes[name], 0, lens, sort, number, page, size)
        assert (view.total, view.pages, view.page) == (len(expected), pages, page)
        assert view.token == (None if number is None else token(number))
        shown += view.rows
    assert shown == expected
    arrays = stored_arrays(SHAPES[name], 0)
    notable = [max(pair) >= np.float32(0.15) for pair in arrays["ff.similarity"][:, LENSES.index(lens)]]
    by_chance = arrays["ff.shuffled"][:, LENSES.index(lens)]
    assert view.share_15 == sum(notable) / len(notable)
    assert view.shuffled == {
        "similarity": pytest.approx(by_chance[:, 0].mean()), "similarity_bottom": pytest.approx(by_chance[:, 1].mean()),
        "share_15": sum(max(pair) >= np.float32(0.15) for pair in by_chance) / len(by_chance),
    }  # fmt: skip


@pytest.mark.parametrize("name", SHAPES)
@pytest.mark.parametrize("lens", LENSES)
def test_each_bin_of_the_histogram_counts_the_neurons_that_its_address_shows(
    indexes: dict[str, Index], name: str, lens: str
) -> None:
    histogram = layer_view(indexes[name], 0, lens).histogram or []
    by_chance = stored_arrays(SHAPES[name], 0)["ff.shuffled"][:, LENSES.index(lens)].max(axis=1)
    shown: list[int] = []
    for each in histogram:
        low, high = each["min_similarity"], each["max_similarity"]
        bin_of = {"min_similarity": low, "max_similarity": high}
        view = make_view(indexes[name], "layer", {"layer": 0}, {"rows": "all"}, lens=lens, **bin_of)
        expected = [
            row["neuron"] for row in ROWS[name, lens]
            if np.float32(low) <= np.float32(max(row["similarity"], row["similarity_bottom"])) < np.float32(high or 9)
        ]  # fmt: skip
        assert [row["neuron"] for row in view.rows] == expected
        assert (view.total, each["neurons"]) == (len(expected),) * 2
        assert each["shuffled"] == ((by_chance >= np.float32(low)) & (by_chance < np.float32(high or 9))).sum()
        shown += expected
    assert sorted(shown) == [row["neuron"] for row in ROWS[name, lens]]


@pytest.mark.parametrize(
    ("text", "named"), [("dog", " dog"), (" dog ", " dog"), ("Dog", " Dog"), ("DOG", None), ("#40", "("), ("40", "(")]
)
def test_a_token_by_its_word(index: Index, text: str, named: str | None) -> None:
    found = index.tokens.text(token_named(index, text))
    assert found == named if named else found.strip().lower() == text.lower()


@pytest.mark.parametrize("text", ["xyzzyqq", f"#{D_VOCAB}", "#999999999"])
def test_a_word_that_is_no_token(index: Index, text: str) -> None:
    with pytest.raises(NotFound, match="token"):
        token_named(index, text)
