"""A worker's answer beside the stored lists; runs themselves are tested in tests/precompute/live."""

import csv
from pathlib import Path

from lexiscope.app.formats.tables import view_csv
from lexiscope.app.pages.prompt.neurons import TOKENS_OF_CHOSEN
from lexiscope.app.pages.prompt.page import PromptView
from lexiscope.precompute.index.index import Index
from lexiscope.precompute.live.wire.answers import ChosenNeuron, LikelyToken, PromptAnswer
from tests.support.site import LLAMA
from tests.support.views import make_view


def page_of(index: Index, layer: int, neuron: int) -> PromptView:
    chosen = ChosenNeuron(
        layer=layer,
        neuron=neuron,
        coefficient=-0.5,
        strength=1.0,
        first_only=False,
        end="bottom",
        rank=7,
        coefficients=[0.25, -0.5],
    )
    answer = PromptAnswer(
        predicts="next",
        tokens=[{"id": 300}, {"id": 301}],
        position=1,
        layer=layer,
        prediction=[LikelyToken(id=5, p=0.5)],
        untouched=[],
        lists=[],
        neuron=chosen,
    )
    asked = {"text": "a text", "layer": layer, "neuron": neuron, "panel": "neurons"}
    view: PromptView = make_view(index, "prompt", {}, {"answers": [answer]}, **asked)
    return view


def test_a_gated_neuron_that_was_asked_about_shows_its_up(site_data: Path) -> None:
    index = Index.open(site_data / LLAMA)
    view = page_of(index, 1, 3)
    assert view.neuron
    up = view.neuron["up"]
    assert up
    assert up["top"]
    assert up["bottom"]
    stored = index.shard(1).vector("ff_up", 3, "dot")
    assert [token["id"] for token in up["top"]] == stored.top_ids[:TOKENS_OF_CHOSEN].tolist()
    assert [token["id"] for token in up["bottom"]] == stored.bottom_ids[:TOKENS_OF_CHOSEN].tolist()
    rows = csv.DictReader("".join(view_csv(view)).splitlines())
    listed = [(row["end"], int(row["token_id"])) for row in rows if row["part"] == "up"]
    assert listed == [
        (end, token["id"]) for end, tokens in (("top", up["top"]), ("bottom", up["bottom"])) for token in tokens
    ]
