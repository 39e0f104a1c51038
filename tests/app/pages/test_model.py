"""A model's page: its maps, and what is worth reading, from the right places of an index."""

import math

import pytest
from starlette.testclient import TestClient

from lexiscope.app import urls
from lexiscope.app.html.numbers import ratio
from lexiscope.app.html.tokens import plain_pairs
from lexiscope.app.pages.model import COHERENCE_STEPS, READABLE_PAIRS
from lexiscope.precompute.index.index import Index
from lexiscope.precompute.shape import LENSES, MATRICES, PRESETS
from tests.support.lists import SHAPES, all_pairs, stored_arrays, token
from tests.support.pages import parsed
from tests.support.site import GPT2, LLAMA
from tests.support.views import model_view, random_neuron


@pytest.fixture(params=SHAPES)
def index(request: pytest.FixtureRequest, indexes: dict[str, Index]) -> Index:
    return indexes[request.param]


@pytest.mark.parametrize("lens", LENSES)
@pytest.mark.parametrize("preset", PRESETS)
def test_maps(index: Index, lens: str, preset: str) -> None:
    view, at = model_view(index, lens, preset), LENSES.index(lens)
    arrays = {layer: stored_arrays(index.shape, layer) for layer in index.layers}
    pairs = list(all_pairs(index.shape, index.layers))
    assert [row.layer for row in view.rows] == list(range(index.shape.n_layers))[::-1]
    for row in view.rows:
        assert row.ready == (row.layer in arrays)
        if not row.ready:
            assert (row.fault, row.coherence, row.vo, row.qk) == (None, (), (), ())
            continue
        numbers = arrays[row.layer]["ff_value.coherence"][:, at, 0].tolist()
        steps = [min(max(int(x * COHERENCE_STEPS), 0), COHERENCE_STEPS - 1) for x in numbers if not math.isnan(x)]
        assert list(row.coherence) == [steps.count(step) for step in range(COHERENCE_STEPS)]
        for matrix in MATRICES:
            for head, cell in enumerate(getattr(row, matrix)):
                number = arrays[row.layer][f"{matrix}.coherence"][head, at, PRESETS.index(preset), 0].item()
                assert cell["coherence"] == (None if math.isnan(number) else number)
                words = LENSES.index("cosine"), PRESETS.index("words")
                number = arrays[row.layer][f"{matrix}.readability"][head, *words, 0].item()
                assert cell["readability"] == (None if math.isnan(number) else number)
                listed = (matrix, row.layer, head, "cosine", "words", "top")
                readable = [p.pair for p in pairs if (p.matrix, p.layer, p.head, p.lens, p.preset, p.end) == listed]
                shown = [(pair["from"]["id"], pair["to"]["id"]) for pair in cell["readable"]]
                assert shown == readable[:READABLE_PAIRS]
                place = (matrix, row.layer, head, lens, preset, "top", 1)
                first = [p for p in pairs if (p.matrix, p.layer, p.head, p.lens, p.preset, p.end, p.rank) == place]
                expected = [{"from": token(p.pair[0]), "to": token(p.pair[1]), "score": p.score} for p in first]
                assert cell["first"] == (expected[0] if expected else None)


def test_provenance(index: Index) -> None:
    provenance, manifest = model_view(index).provenance, index.manifest
    assert (provenance.build, provenance.weights_sha256) == (manifest.build, manifest.weights_sha256)
    assert (provenance.k, provenance.pairs, provenance.source) == (manifest.k, manifest.pairs, manifest.source)


def test_random_neurons_are_of_ready_layers(index: Index) -> None:
    found = {random_neuron(index) for _ in range(300)}
    assert {layer for layer, _ in found} == set(index.layers)
    assert {neuron for _, neuron in found} == set(range(index.shape.d_mlp))


def test_maps_show_readability_or_coherence(client: TestClient) -> None:
    """With a legend; cells lead to heads, and say their first pairs of words."""
    rows = {row["layer"]: row for row in client.get(f"/{LLAMA}.json").json()["rows"]}
    for query, number in (("", "readability"), ("?map=coherence&lens=cosine", "coherence")):
        view = client.get(f"/{LLAMA}.json{query.replace('map=coherence&', '')}").json()
        html = client.get(f"/{LLAMA}{query}").text
        page = parsed(html)
        chosen = [a.text.strip() for a in page.all("a", **{"aria-current": "true"})]
        assert [text for text in chosen if text in ("readability", "coherence")] == [number]
        head = urls.link("head", LLAMA, 1, 2, lens=view["lens"])
        cells = [cell for cell in page.all("a", href=head) if "data-heat" in cell.attributes]
        assert [cell.text.strip() for cell in cells] == [ratio(view["rows"][0][m][2][number]) for m in ("vo", "qk")]
        title = cells[0].attributes["title"]
        assert title.startswith("L1H2, Label: Carries greyhounds; ")
        assert title.endswith(f": {plain_pairs(rows[1]['vo'][2]['readable'])}")
        hottest = max(cell[number] or 0 for row in view["rows"] for m in ("vo", "qk") for cell in row[m])
        assert f'<span data-heat="8">{ratio(hottest)}</span>' in html
    assert client.get(f"/{LLAMA}.json?map=coherence").json() == client.get(f"/{LLAMA}.json").json()
    assert client.get(f"/{LLAMA}?map=beauty").status_code == 422


def test_an_unfinished_model_says_in_a_line_what_is_missing(client: TestClient) -> None:
    page = " ".join(client.get(f"/{GPT2}").text.split())
    assert "2 of 3 layers are ready</b>: 1-2. Not built yet: 0." in page
    assert "layer 0" not in page
    assert page.count("ot built yet") == 1
    assert "ot built yet" not in client.get(f"/{LLAMA}").text
