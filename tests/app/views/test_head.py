"""A head at a glance, from the right places of an index."""

import pytest

from app.views.head import PAIRS, TOKENS, head_view
from precompute.index.index import Index
from precompute.shape import LENSES, MATRICES, PRESETS
from tests.support.lists import SHAPES, all_pairs, token
from tests.support.synthetic import shard_arrays


@pytest.fixture(params=SHAPES)
def index(request: pytest.FixtureRequest, indexes: dict[str, Index]) -> Index:
    return indexes[request.param]


@pytest.mark.parametrize("lens", LENSES)
@pytest.mark.parametrize("preset", PRESETS)
def test_every_head(index: Index, lens: str, preset: str) -> None:
    shape, at, layer = index.shape, LENSES.index(lens), index.layers[1]
    arrays, pairs = shard_arrays(shape, seed=layer), list(all_pairs(shape, (layer,)))
    for head in range(shape.n_heads):
        view = head_view(index, layer, head, lens, preset)
        for matrix in MATRICES:
            glance = getattr(view, matrix)
            everything = getattr(head_view(index, layer, head, lens), matrix).top[: len(glance.top)]
            assert glance.hidden == len([pair for pair in everything if pair not in glance.top])
            for end, shown in (("top", glance.top), ("bottom", glance.bottom)):
                place = (matrix, head, lens, preset, end)
                expected = [p for p in pairs if (p.matrix, p.head, p.lens, p.preset, p.end) == place][:PAIRS]
                assert list(shown) == [
                    {"from": token(p.pair[0]), "to": token(p.pair[1]), "score": p.score} for p in expected
                ]
            stored = arrays[f"{matrix}.coherence"][head, at, PRESETS.index(preset), 0]
            assert glance.coherence == stored.item()
        assert view.subheads
        assert [row["subhead"] for row in view.subheads] == list(range(shape.d_head))
        for row in view.subheads:
            for part in "qkvo":
                ids = arrays[f"w_{part}.ids"][shape.row(f"w_{part}", head, row["subhead"]), at, 0, :TOKENS]
                assert row[part] == [token(number) for number in ids.tolist()]  # type: ignore[literal-required]


def test_notes(index: Index) -> None:
    note = head_view(index, 0, 1).note
    assert ("rotary" in note) == (index.shape.positions == "rotary")
    assert note.count("share") <= 1
    assert ("share" in note) == (index.shape.n_kv_heads < index.shape.n_heads)
    vo = head_view(index, 0, 0).vo
    assert vo
    assert vo.columns == ("reads", "writes")
