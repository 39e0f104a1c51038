"""A head at a glance, from the right places of an index."""

from html import unescape
from pathlib import Path

import numpy as np
import pytest
from starlette.testclient import TestClient

from lexiscope.app.html.tokens import plain_pairs
from lexiscope.app.pages.head import PAIRS_AT_A_GLANCE, VECTOR_TOKENS
from lexiscope.precompute.index.index import Index
from lexiscope.precompute.index.layout import shard_layout
from lexiscope.precompute.shape import LENSES, MATRICES, PRESETS
from tests.support.lists import SHAPES, all_pairs, token
from tests.support.pages import parsed
from tests.support.site import GPT2, copied, visit
from tests.support.synthetic import rewrite_shard, shard_arrays
from tests.support.views import head_view


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
                expected = [p for p in pairs if (p.matrix, p.head, p.lens, p.preset, p.end) == place][
                    :PAIRS_AT_A_GLANCE
                ]
                assert list(shown) == [
                    {"from": token(p.pair[0]), "to": token(p.pair[1]), "score": p.score} for p in expected
                ]
            stored = arrays[f"{matrix}.coherence"][head, at, PRESETS.index(preset), 0]
            assert glance.coherence == stored.item()
        assert view.subheads
        assert [row["subhead"] for row in view.subheads] == list(range(shape.d_head))
        for row in view.subheads:
            for part in "qkvo":
                ids = arrays[f"w_{part}.ids"][shape.row(f"w_{part}", head, row["subhead"]), at, 0, :VECTOR_TOKENS]
                assert row[part] == [token(number) for number in ids.tolist()]  # type: ignore[literal-required]
            top_bottom = {m: arrays[f"{m}.similarity"][head, row["subhead"], at].tolist() for m in MATRICES}
            assert row["similarity"] == {m: {"top": top, "bottom": b} for m, (top, b) in top_bottom.items()}
        by_chance = arrays["qk.shuffled"][:, :, at].reshape(-1, 2)
        assert view.shuffled["qk"] == {
            "similarity": pytest.approx(by_chance[:, 0].mean()),
            "similarity_bottom": pytest.approx(by_chance[:, 1].mean()),
            "share_15": (by_chance.max(axis=1) >= np.float32(0.15)).mean(),
        }


@pytest.mark.parametrize("lens", LENSES)
@pytest.mark.parametrize("preset", PRESETS)
def test_readable_pairs_come_first_and_those_of_the_address_or_the_paper_beside_them(
    index: Index, lens: str, preset: str
) -> None:
    layer = index.layers[1]
    for head in range(index.shape.n_heads):
        view = head_view(index, layer, head, lens, preset)
        words = head_view(index, layer, head, "cosine", "words")
        assert view.readable
        assert (view.readable.lens, view.readable.preset) == ("cosine", "words")
        assert (view.readable.vo, view.readable.qk) == (words.vo, words.qk)
        beside = ("dot", "all") if preset == "all" or (lens, preset) == ("cosine", "words") else (lens, preset)
        assert [(pairs.lens, pairs.preset) for pairs in view.shown] == [("cosine", "words"), beside]
        other = head_view(index, layer, head, *beside)
        assert (view.shown[1].vo, view.shown[1].qk) == (other.vo, other.qk)
        assert view.shown[1].as_in_the_paper == (beside == ("dot", "all"))
        assert view.paper == (None if beside == (lens, preset) else view.shown[1])


@pytest.mark.parametrize("query", ["", "?lens=cosine&preset=distinct", "?lens=cosine&preset=words"])
def test_the_page_opens_with_words(client: TestClient, query: str) -> None:
    """Both tops of each matrix, words first, in the page and in what is copied from it; bottoms one click away."""
    path = f"/{GPT2}/head/1/2"
    readable = client.get(f"{path}.json{query}").json()["readable"]
    page = parsed(client.get(path + query).text)
    beside = query.removeprefix("?") if "distinct" in query else ""
    for matrix in ("vo", "qk"):
        (first, second, *bottoms) = [a for a in page.links() if a.partition("?")[0] == f"{path}/{matrix}"]
        assert (first, second) == (
            f"{path}/{matrix}?lens=cosine&preset=words",
            f"{path}/{matrix}" + (beside and f"?{beside}"),
        )
        assert bottoms == [first, second]
    assert len([found for found in page.all("details") if found.attributes.get("class") == "bottoms"]) == 2
    tokens = [int(a.partition("?")[0].rpartition("/")[2]) for a in page.links() if "/token/" in a]
    assert tokens[:2] == [readable["vo"]["top"][0][side]["id"] for side in ("from", "to")]
    assert plain_pairs(readable["vo"]["top"][:4]) in unescape(client.get(path + query).text)
    text = client.get(f"{path}.md{query}").text
    assert text.index("vo, top (cosine, words)") < text.index(
        "vo, top (cosine, distinct)" if beside else "vo, top (dot, all)"
    )


def test_damaged_words_do_not_take_the_other_pairs_with_them(site_data: Path, tmp_path: Path) -> None:
    data = copied(site_data, tmp_path)
    index = Index.open(data / GPT2)
    arrays = {name: np.array(index.shard(1).array(name)) for name in shard_layout(index.stored)}
    arrays["vo.ids"][:, LENSES.index("cosine")] = index.shape.d_vocab
    rewrite_shard(data / GPT2, index.manifest, 1, arrays)
    with visit(data) as visitor:
        assert visitor.get(f"/{GPT2}/head/1/0?lens=cosine").status_code == 503
        assert visitor.get(f"/{GPT2}/head/1/0.json").json()["readable"] is None
        page = visitor.get(f"/{GPT2}/head/1/0")
        assert (page.status_code, "are damaged" in page.text) == (200, True)
