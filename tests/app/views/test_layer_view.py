"""A layer's table against the arrays of a small index: every order, every filter, every page."""

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.views.layer import FIRST, SORTS, layer_view, token_named
from precompute.errors import BadRequest, NotFound, ShardDamaged
from precompute.index.index import Index
from precompute.shape import LENSES
from tests.support.lists import READY, SHAPES, all_listings, token
from tests.support.synthetic import D_VOCAB, make_manifest, rewrite_shard, shard_arrays, write_index


def arrays_of(name: str, layer: int) -> dict[str, Any]:
    """With ties, and with values that are undefined."""
    arrays = {key: array.copy() for key, array in shard_arrays(SHAPES[name], seed=layer).items()}
    arrays["ff_value.coherence"][1] = np.nan
    arrays["ff_value.norm"][2:4] = 0.5
    return arrays


@pytest.fixture(scope="module")
def indexes(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Index]:
    opened: dict[str, Index] = {}
    for name, shape in SHAPES.items():
        folder = tmp_path_factory.mktemp("data") / name
        manifest = write_index(folder, make_manifest(shape, name), READY[name])
        rewrite_shard(folder, manifest, 0, arrays_of(name, 0))
        opened[name] = Index.open(folder)
    return opened


ROWS = {
    (name, lens): [
        {
            "neuron": neuron,
            "key": [token(t) for t in arrays["ff_key.ids"][neuron, at, 0, :FIRST].tolist()],
            "value": [token(t) for t in arrays["ff_value.ids"][neuron, at, 0, :FIRST].tolist()],
            "norm": arrays["ff_value.norm"][neuron].item(),
            "coherence": None if neuron == 1 else arrays["ff_value.coherence"][neuron, at, 0].item(),
            "similarity": arrays["ff.similarity"][neuron, at].item(),
        }
        for neuron in range(shape.d_mlp)
    ]
    for name, shape in SHAPES.items()
    for arrays in [arrays_of(name, 0)]
    for at, lens in enumerate(LENSES)
}
LISTINGS = {name: list(all_listings(shape, (0,))) for name, shape in SHAPES.items()}


def ordered(rows: list[dict[str, Any]], sort: str) -> list[dict[str, Any]]:
    by, sign = sort.removeprefix("-"), -1 if sort.startswith("-") else 1
    if by == "neuron":
        return rows[::sign]
    return sorted(rows, key=lambda row: (math.inf if row[by] is None else -sign * row[by], row["neuron"]))


@given(
    name=st.sampled_from(sorted(SHAPES)),
    lens=st.sampled_from(LENSES),
    sort=st.sampled_from([sign + sort for sort in SORTS for sign in ("", "-")]),
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


@pytest.mark.parametrize(
    ("text", "named"), [("dog", " dog"), (" dog ", " dog"), ("Dog", " Dog"), ("DOG", None), ("#40", "("), ("40", "(")]
)
def test_a_token_by_its_word(indexes: dict[str, Index], text: str, named: str | None) -> None:
    index = indexes["gpt2-like"]
    found = index.tokens.text(token_named(index, text))
    assert found == named if named else found.strip().lower() == text.lower()


@pytest.mark.parametrize("text", ["xyzzyqq", f"#{D_VOCAB}", "#999999999"])
def test_a_word_that_is_no_token(indexes: dict[str, Index], text: str) -> None:
    with pytest.raises(NotFound, match="token"):
        token_named(indexes["gpt2-like"], text)


@pytest.mark.parametrize(
    ("arguments", "error", "said"),
    [
        ({"layer": 2}, NotFound, "not built yet"),
        ({"layer": 4}, NotFound, "layers 0 to 3"),
        ({"layer": -1}, NotFound, "layers 0 to 3"),
        ({"layer": 0, "lens": "x"}, NotFound, "dot, cosine"),
        ({"layer": 0, "sort": "x"}, NotFound, "neuron, norm, coherence, similarity"),
        ({"layer": 0, "sort": "--norm"}, NotFound, "neuron, norm"),
        ({"layer": 0, "token": D_VOCAB}, NotFound, "tokens 0 to"),
        ({"layer": 0, "token": -1}, NotFound, "tokens 0 to"),
        ({"layer": 0, "page": 0}, NotFound, "page"),
        ({"layer": 0, "page": 2}, NotFound, "only page 1"),
        ({"layer": 0, "page": 10**9, "size": 2}, NotFound, "pages 1 to 3"),
        ({"layer": 0, "size": 0}, BadRequest, "1 or more"),
    ],
)
def test_what_does_not_exist_is_named(
    indexes: dict[str, Index], arguments: dict[str, Any], error: type[Exception], said: str
) -> None:
    with pytest.raises(error, match=said):
        layer_view(indexes["gpt2-like"], **arguments)


@pytest.mark.parametrize(
    ("array", "value"),
    [
        ("ff_key.ids", D_VOCAB),
        ("ff_value.ids", D_VOCAB),
        ("ff_value.norm", np.inf),
        ("ff_value.norm", -1),
        ("ff_value.norm", np.nan),
        ("ff.similarity", 2),
        ("ff.similarity", np.nan),
    ],
)
def test_a_damaged_layer_says_so(tmp_path_factory: pytest.TempPathFactory, array: str, value: float) -> None:
    folder = tmp_path_factory.mktemp("data") / "tiny"
    manifest = write_index(folder, make_manifest(), (0, 1))
    arrays = {name: part.copy() for name, part in shard_arrays(manifest.shape, seed=1).items()}
    arrays[array][3] = value
    rewrite_shard(folder, manifest, 1, arrays)
    with pytest.raises(ShardDamaged, match=r"layer-1\.safetensors is damaged"):
        layer_view(Index.open(folder), 1)
    assert layer_view(Index.open(folder), 0).total == manifest.shape.d_mlp
