"""A model's page and the home page: maps, and what is worth reading, from the right places of an index."""

import math
from pathlib import Path

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
from tests.support.site import GPT2, LLAMA, visit
from tests.support.synthetic import GPT2 as SHAPE
from tests.support.synthetic import make_manifest, write_index
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


def test_models_are_also_called_by_the_name_others_know(tmp_path: Path) -> None:
    hub = make_manifest(SHAPE, "tiny").with_changes(source="owner/Tiny", revision="607a30d783df")
    local = make_manifest(SHAPE, "mine").with_changes(source="/somewhere/mine", revision="")
    write_index(tmp_path / "tiny", hub, (3,))
    write_index(tmp_path / "mine", local, (3,))
    with visit(tmp_path) as visitor:
        assert [(card["model"], card["name"]) for card in visitor.get("/index.json").json()["models"]] == [
            ("mine", ""), ("tiny", "owner/Tiny"),
        ]  # fmt: skip
        home = visitor.get("/").text
        assert home.count("<small>owner/Tiny</small>") == 1
        assert "<small>owner/Tiny</small>" in visitor.get("/tiny").text
        assert "<h1>mine</h1>" in visitor.get("/mine").text


def test_where_to_start(client: TestClient) -> None:
    """In the most complete model, by what its own page calls worth reading."""
    start = client.get("/index.json").json()["start"]
    view = client.get(f"/{LLAMA}.json?lens=cosine").json()
    assert (start["model"], start["lens"]) == (LLAMA, "cosine")  # the lens that reads best
    assert start["neuron"] == (view["agreeing"][0] if view["agreeing"] else None)
    assert start["head"] in (view["heads"] or [None])
    shown = parsed(client.get("/").text).links()
    assert urls.link("model", LLAMA, lens="cosine") in shown
    sentence = urls.link("prompt", LLAMA, text="The capital of France is", lens="cosine")
    (seeds,) = (link for link in shown if link.startswith(f"/{LLAMA}/seeds?"))
    live = {sentence, seeds}
    assert all(client.get(link).status_code == 200 for link in shown if link.startswith("/") and link not in live)


def test_no_sentence_to_run_where_no_worker_is(site_data: Path) -> None:
    with visit(site_data, worker="off") as visitor:
        links = parsed(visitor.get("/").text).links()
    assert urls.link("model", GPT2, lens="cosine") in links
    assert not [link for link in links if "/prompt" in link]
