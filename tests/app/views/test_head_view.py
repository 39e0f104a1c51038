"""A head at a glance, from the right places of an index."""

from pathlib import Path
from typing import Any

import pytest

from app.views.head import PAIRS, TOKENS, head_view
from precompute.errors import NotFound, ShardDamaged
from precompute.index.index import Index
from precompute.shape import LENSES, MATRICES, PRESETS
from tests.support.lists import SHAPES, all_pairs, token
from tests.support.synthetic import D_VOCAB, make_manifest, rewrite_shard, shard_arrays, write_index


@pytest.fixture(scope="module", params=SHAPES)
def index(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Index:
    folder = tmp_path_factory.mktemp("data") / request.param
    write_index(folder, make_manifest(SHAPES[request.param], request.param), (1,))
    return Index.open(folder)


@pytest.mark.parametrize("lens", LENSES)
@pytest.mark.parametrize("preset", PRESETS)
def test_every_head(index: Index, lens: str, preset: str) -> None:
    shape, at = index.shape, LENSES.index(lens)
    arrays, pairs = shard_arrays(shape, seed=1), list(all_pairs(shape, (1,)))
    for head in range(shape.n_heads):
        view = head_view(index, 1, head, lens, preset)
        for matrix in MATRICES:
            glance = getattr(view, matrix)
            everything = getattr(head_view(index, 1, head, lens), matrix).top[: len(glance.top)]
            assert glance.hidden == len([pair for pair in everything if pair not in glance.top])
            for end, shown in (("top", glance.top), ("bottom", glance.bottom)):
                place = (matrix, head, lens, preset, end)
                expected = [p for p in pairs if (p.matrix, p.head, p.lens, p.preset, p.end) == place][:PAIRS]
                assert list(shown) == [
                    {"from": token(p.pair[0]), "to": token(p.pair[1]), "score": p.score} for p in expected
                ]
            stored = arrays[f"{matrix}.coherence"][head, at, PRESETS.index(preset), 0]
            assert glance.coherence == stored.item()
        assert [row["subhead"] for row in view.subheads] == list(range(shape.d_head))
        for row in view.subheads:
            for part in "qkvo":
                ids = arrays[f"w_{part}.ids"][shape.row(f"w_{part}", head, row["subhead"]), at, 0, :TOKENS]
                assert row[part] == [token(number) for number in ids.tolist()]  # type: ignore[literal-required]


def test_notes(index: Index) -> None:
    note = head_view(index, 1, 1).note
    assert ("rotary" in note) == (index.shape.positions == "rotary")
    assert note.count("share") <= 1
    assert ("share" in note) == (index.shape.n_kv_heads < index.shape.n_heads)
    assert head_view(index, 1, 0).vo.columns == ("reads", "writes")


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ({"layer": 1, "head": 9}, "heads 0 to"),
        ({"layer": 1, "head": -1}, "heads 0 to"),
        ({"layer": 9, "head": 0}, "layers 0 to"),
        ({"layer": 0, "head": 0}, "not built yet"),
        ({"layer": 1, "head": 0, "lens": "x"}, "dot, cosine"),
        ({"layer": 1, "head": 0, "preset": "x"}, "all, distinct, words"),
    ],
)
def test_what_does_not_exist_is_named(index: Index, arguments: dict[str, Any], said: str) -> None:
    with pytest.raises(NotFound, match=said):
        head_view(index, **arguments)


def test_a_damaged_layer_says_so(tmp_path: Path) -> None:
    manifest = write_index(tmp_path / "tiny", make_manifest(), (0,))
    arrays = {name: part.copy() for name, part in shard_arrays(manifest.shape, seed=0).items()}
    arrays["w_o.ids"][-1] = D_VOCAB
    rewrite_shard(tmp_path / "tiny", manifest, 0, arrays)
    with pytest.raises(ShardDamaged, match=r"w_o 7 \(dot, top\) lists token"):
        head_view(Index.open(tmp_path / "tiny"), 0, 1)
    assert head_view(Index.open(tmp_path / "tiny"), 0, 0).head == 0
