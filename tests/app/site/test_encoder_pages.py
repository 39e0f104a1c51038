"""Pages of encoders, over HTTP with real workers: a BERT that predicts masked tokens, and one that predicts none."""

import re
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from starlette.testclient import TestClient

from lexiscope.precompute.index.manifest import Manifest
from lexiscope.precompute.live.engine import Engine
from lexiscope.precompute.weights.checkpoint import Checkpoint
from tests.support.builds import quick_build
from tests.support.families import FAMILIES
from tests.support.pages import parsed
from tests.support.shared import make_once_per_run
from tests.support.site import PAIRS, K, visit
from tests.support.tables import rows
from tests.support.workers import listening, worker_app

pytestmark = pytest.mark.slow
MASKED, BARE = "tiny-bert", "tiny-bert-bare"
TEXT = "the dog and the [MASK] run"
STORED = ("", "/layer/1", "/ff/1/3", "/head/1/2", "/head/1/2/vo", "/head/1/2/qk", "/head/1/2/sub/1", "/token/92")


@pytest.fixture(scope="module")
def encoders(tmp_path_factory: pytest.TempPathFactory) -> Iterator[TestClient]:
    def build(folder: Path) -> None:
        for name, family in ((MASKED, "bert"), (BARE, "bert-bare")):
            checkpoint = FAMILIES[family].save(folder / "sources" / name, n_layers=2)
            quick_build(checkpoint, folder / "data", k=K, pairs=PAIRS)

    data = make_once_per_run(tmp_path_factory, "encoders", build) / "data"
    with ExitStack() as stack:
        urls = []
        for model in (MASKED, BARE):
            manifest = Manifest.load(data / model)
            engine = Engine.load(Checkpoint.open(Path(manifest.source)), "cpu", 1)
            app = worker_app(engine, model, manifest.weights_sha256)
            urls.append(f"{model}={stack.enter_context(listening(app))}")
        yield stack.enter_context(visit(data, worker_url=",".join(urls)))


def run(client: TestClient, model: str, **arguments: Any) -> Any:
    answer = client.get(f"/{model}/prompt.json", params={"text": TEXT, **arguments})
    assert answer.status_code == 200, answer.text
    return answer.json()


def page(client: TestClient, model: str, **arguments: Any) -> str:
    answer = client.get(f"/{model}/prompt", params=arguments)
    assert answer.status_code == 200, answer.text
    return " ".join(answer.text.split())


@pytest.mark.parametrize("path", STORED)
def test_stored_pages(encoders: TestClient, path: str) -> None:
    answer = encoders.get(f"/{MASKED}{path}")
    assert answer.status_code == 200
    for link in {link for link in parsed(answer.text).links() if link.startswith(f"/{MASKED}/prompt?text")}:
        assert encoders.get(link).status_code == 200, link


def test_an_encoder_is_called_one(encoders: TestClient) -> None:
    cards = {card["model"]: card for card in encoders.get("/index.json").json()["models"]}
    for model in (MASKED, BARE):
        assert (cards[model]["architecture_name"], cards[model]["causal"]) == ("BERT", False)
    assert "/-/help/glossary#encoder" in parsed(encoders.get("/").text).links()
    view = encoders.get(f"/{MASKED}.json").json()
    assert (view["architecture"], view["architecture_name"], view["causal"]) == ("bert", "BERT", False)
    assert "BERT architecture, an" in encoders.get(f"/{MASKED}").text
    assert "Put before every text" in encoders.get(f"/{MASKED}/token/6").text
    assert "What it is" not in encoders.get(f"/{MASKED}/token/92").text


def test_the_mask_is_found_and_its_own_token_predicted(encoders: TestClient) -> None:
    view = run(encoders, MASKED)
    assert view["predicts"] == "masked"
    assert view["tokens"][view["position"]]["token"] == "[MASK]"
    assert 0 < view["prediction"][0]["p"] <= 1
    assert view["evolution"][-1]["cells"][view["position"]][0]["id"] == view["prediction"][0]["id"]
    html = page(encoders, MASKED, text=TEXT)
    assert re.search(r"At <span class=.t.>(<bdi[^>]*>)?\S*\[MASK\]\S*</span> <small>the model predicts</small>", html)
    assert "probability" in html
    for words in ("goes on with", "next token", "likeliest next", "cosine "):
        assert words not in html
    at_dog = page(encoders, MASKED, text=TEXT, position=2)
    assert "The model sees" in at_dog
    assert "The model sees" not in html


def test_the_form_says_how_to_write_a_mask(encoders: TestClient) -> None:
    html = page(encoders, MASKED)
    assert "Write <code>[MASK]</code>" in html
    assert 'placeholder="The capital of France is [MASK]."' in html
    assert "Write <code>" not in page(encoders, BARE)
    assert "[MASK]" not in page(encoders, BARE)
    assert run(encoders, MASKED, text="")["predicts"] == "masked"
    assert run(encoders, BARE, text="")["predicts"] == "nearest"


def test_without_a_head_tokens_are_near_and_not_likely(encoders: TestClient) -> None:
    view = run(encoders, BARE, text="the lion and the dog")
    assert view["predicts"] == "nearest"
    assert view["tokens"][view["position"]]["token"] == "dog"
    for entry in (*view["prediction"], *view["evolution"][0]["cells"][1]):
        assert entry.keys() == {"id", "token", "score"}
        assert -1 <= entry["score"] <= 1
    html = page(encoders, BARE, text=TEXT)
    assert "the stream is nearest to" in html
    assert '<th scope="col">cosine' in html
    for words in ("the model predicts", "probability<", "likeliest", "model’s own prediction"):
        assert words not in html
    table = rows(encoders, f"/{BARE}/prompt.csv?text=the+dog")
    assert {row["measure"] for row in table if row["panel"].startswith(("prediction", "evolution"))} == {"cosine"}
    first = run(encoders, BARE, text="the dog")["prediction"][0]["score"]
    assert next(row["value"] for row in table if row["panel"] == "prediction") == str(first)


def test_attention_goes_both_ways(encoders: TestClient) -> None:
    view = run(encoders, MASKED, panel="attention,patterns", position=1, head=2, layer=0)
    n_tokens = len(view["tokens"])
    for head in view["attention"]:
        assert [len(row) for row in head["weights"]] == [n_tokens] * n_tokens
        assert [sum(row) for row in head["weights"]] == pytest.approx([1] * n_tokens, abs=1e-5)
    (chosen,) = (head for head in view["patterns"] if head["head"] == 2)
    assert {message["position"] for message in chosen["messages"]} == set(range(n_tokens))
    found = parsed(page(encoders, MASKED, text=TEXT, panel="attention", position=1))
    assert {e.attributes["width"] for e in found.all("rect", **{"class": "row"})} == {str(n_tokens)}
    table = rows(encoders, f"/{MASKED}/prompt.csv?text=the+dog&panel=attention")
    assert any(int(row["to_position"]) > int(row["position"]) for row in table if row["panel"] == "attention")


@pytest.mark.parametrize(("model", "panel"), [(MASKED, "evolution"), (BARE, "patterns"), (MASKED, "attribution")])
def test_every_position_can_be_chosen_in_every_panel(encoders: TestClient, model: str, panel: str) -> None:
    """The last one, too, which is not what an address without a position shows."""
    view = run(encoders, model, panel=panel)
    last = len(view["tokens"]) - 1
    assert view["position"] != last
    html = encoders.get(f"/{model}/prompt", params={"text": TEXT, "panel": panel}).text.partition('class="strip"')[2]
    link = parsed(html.partition("</nav>")[0]).links()[last]
    assert f"position={last}" in link
    assert encoders.get(link).status_code == 200
    assert run(encoders, model, panel=panel, position=last)["position"] == last
