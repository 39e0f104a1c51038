"""Runs and exact seeds in a notebook: here with the weights, from a server by its JSON, equal to each other."""

import re
import shutil
import time
from pathlib import Path
from typing import Any

import httpx2
import pytest

import lexiscope
from tests.support.builds import quick_build
from tests.support.models import tiny_gpt2
from tests.support.site import GPT2, TEXT

pytestmark = pytest.mark.slow

PANELS = ("evolution", "attention", "patterns", "neurons", "coverage", "attribution")


@pytest.fixture(scope="module")
def with_weights(site_data: Path) -> lexiscope.Model:
    return lexiscope.open(GPT2, data=site_data, weights=True, device="cpu")


@pytest.fixture(scope="module")
def run(with_weights: lexiscope.Model) -> lexiscope.Run:
    return lexiscope.run(with_weights, TEXT)


def close(one: Any, other: Any) -> bool:
    """Equal, but for the last digits of numbers: engines of other threads add up in another order."""
    if isinstance(one, float) and isinstance(other, float):
        return one == pytest.approx(other, rel=1e-4, abs=1e-5)
    if isinstance(one, dict):
        return one.keys() == other.keys() and all(close(one[name], other[name]) for name in one)
    if isinstance(one, list):
        return len(one) == len(other) and all(map(close, one, other))
    return bool(one == other)


def test_a_run_has_all_panels(run: lexiscope.Run, live_url: str) -> None:
    there = lexiscope.run(f"{live_url}/{GPT2}", TEXT)
    assert close(run.json(), there.json())
    assert run.view.panel == ",".join(PANELS)
    assert "".join(token["token"] for token in run.tokens).strip() == TEXT
    for panel in PANELS:
        shown = getattr(run, panel)
        assert shown.data == run.json()[panel]
        assert shown._repr_html_().count("<table>") >= 1
        assert str(shown)
        assert set(shown.to_pandas()["panel"]) <= set(run.to_pandas()["panel"])
        assert len(shown.to_pandas())
    assert set(run.to_pandas()["panel"]) >= {*PANELS, "prediction", "tokens"}


def test_the_prediction_is_shown(run: lexiscope.Run) -> None:
    first = run.prediction[0]
    assert f"{first['p']:.3f}" in str(run)  # type: ignore[typeddict-item]
    assert "prediction" in run._repr_html_()
    assert "which predicts" in repr(run)


@pytest.mark.parametrize("arguments", [
    {"panels": ["evolution"]},
    {"panels": "neurons", "position": 1, "layer": 1, "neuron": 3, "lens": "cosine"},
    {"panels": ["patterns"], "rows": "tokens", "head": 1, "convention": "exact", "k": 3},
    {"panels": ["evolution"], "off": ["1.3", "1.h1"], "set": ["2.4:2.5"]},
    {"panels": ["evolution"], "from_": "the lion and the dog", "patch": ["1.h1@3"], "mean": "0.5", "means": "texts"},
    {"panels": ["attribution"], "token": "dog", "against": "lion"},
    {"panels": ["attribution"], "token": 28, "off": "1.3", "set": "2.4:2.5"},
])  # fmt: skip
def test_arguments_mean_the_same_here_and_there(
    with_weights: lexiscope.Model, live_url: str, arguments: dict[str, Any]
) -> None:
    there = lexiscope.open(f"{live_url}/{GPT2}").run(TEXT, **arguments)
    assert close(with_weights.run(TEXT, **arguments).json(), there.json())


def test_a_long_text_is_packed(with_weights: lexiscope.Model, live_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("lexiscope.app.pages.prompt.page.LONGEST_PLAIN_TEXT", 10)
    text = "the dög and the lion <&> "
    there = lexiscope.open(f"{live_url}/{GPT2}").run(text, panels=["evolution"])
    assert there.view.text == text
    assert close(with_weights.run(text, panels=["evolution"]).json(), there.json())


@pytest.mark.parametrize(("arguments", "error", "said"), [
    ({"text": ""}, lexiscope.BadRequest, "there is no text"),
    ({"panels": ["dreams"]}, lexiscope.BadRequest, "panel 'dreams': there are evolution"),
    ({"k": 1000}, lexiscope.BadRequest, "k = "),
    ({"text": "the dog " * 99}, lexiscope.LiveError, r"this text has \d+ tokens: tiny-gpt2 has 64 positions"),
    ({"layer": 77}, lexiscope.LexiscopeError, "77"),
    ({"off": ["x"]}, lexiscope.BadRequest, "x"),
])  # fmt: skip
def test_what_cannot_be_run(
    with_weights: lexiscope.Model, arguments: dict[str, Any], error: type[Exception], said: str
) -> None:
    with pytest.raises(error, match=said):
        with_weights.run(**{"text": TEXT, **arguments})


def test_a_panel_that_was_not_asked_for(with_weights: lexiscope.Model) -> None:
    run = with_weights.run(TEXT, panels=["coverage"])
    assert run.coverage.data
    with pytest.raises(lexiscope.BadRequest, match=r"no evolution: it was asked for coverage"):
        _ = run.evolution


def test_a_difference_cannot_run(difference: lexiscope.Model) -> None:
    with pytest.raises(lexiscope.NotFound, match="is a difference of two models"):
        difference.run(TEXT)


def test_exact_seeds_are_those_of_the_page(with_weights: lexiscope.Model, live_url: str) -> None:
    here, there = with_weights.seeds("dog", "lion", k=7), lexiscope.open(f"{live_url}/{GPT2}").seeds("dog", "lion", k=7)
    assert (here.exact, there.exact) == (True, True)
    assert close(here.json(), there.json())
    assert "from the weights" in repr(here)
    assert "Computed from the weights" in str(here)


@pytest.mark.parametrize("ask", [
    lambda m: m.relation("dog>lion", "cat>horse"),
    lambda m: m.relation(["dog>lion"], matrix="qk", lens="cosine", source="norm"),
    lambda m: m.heads("dog", "cat+lion"),
    lambda m: m.heads("dog lion", "cat", layers=[1, 2], head=1, k=3, end="bottom"),
    lambda m: m.heads("dog", layers="0-2", lens="cosine", source="first"),
])  # fmt: skip
def test_words_through_heads_are_those_of_the_page(with_weights: lexiscope.Model, live_url: str, ask: Any) -> None:
    here, there = ask(with_weights), ask(lexiscope.open(f"{live_url}/{GPT2}"))
    assert here.view.heads
    assert close(here.json(), there.json())
    assert len(here.to_pandas())
    assert here.view.model in repr(here)
    assert "<table>" in here._repr_html_()


def test_seeds_are_ranked_as_where_the_site_leads(with_weights: lexiscope.Model, live_url: str) -> None:
    home = httpx2.get(f"{live_url}/{GPT2}").text
    address = re.findall(rf'href="(/{GPT2}/seeds\?words=[^"]+)"', home)[0].replace("&amp;", "&")
    path, query = address.split("?")
    page = httpx2.get(f"{live_url}{path}.json?{query}").json()
    seeds = with_weights.seeds(page["words"], lens=page["lens"])
    assert (page["rank"], page["widen"]) == ("fit", 1)
    assert close(seeds.json(), page)


def test_seeds_from_lists_where_they_are_asked_for_or_the_weights_are_gone(
    gpt2: lexiscope.Model, with_weights: lexiscope.Model, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert gpt2.seeds("dog").exact
    assert not with_weights.seeds("dog", exact=False).exact
    by_score = gpt2.seeds("dog", rank="score", widen=False).view
    assert (by_score.rank, by_score.widen, by_score.kind) == ("score", 0, "ff_value")

    def gone(*_: object) -> None:
        raise lexiscope.WeightsError("they are gone")

    monkeypatch.setattr("lexiscope.app.notebook.source.load_engine", gone)
    other = lexiscope.open(gpt2.source.where)
    found = other.seeds("dog")
    assert (found.exact, found.view.rank) == (False, "listed")
    assert all(result["fit"] is None and result["top"] for result in found.view.results)
    with pytest.raises(lexiscope.WeightsError, match="they are gone"):
        other.seeds("dog", exact=True)
    weighted = with_weights.seeds("dog - lion", "2*horse", k=3, kind=["ff_key", "w_o"], lens="cosine")
    assert [seed["weight"] for seed in weighted.view.seeds] == [1, -1, 2]
    assert {result["kind"] for result in weighted.view.results} <= {"ff_key", "w_o"}


def test_an_index_of_other_weights_runs_those(tmp_path: Path) -> None:
    """Built anew under the same name, while the model of the former is in memory."""
    folders = []
    for seed in (1, 2):
        source = tiny_gpt2(tmp_path / f"source-{seed}" / "tiny", n_layers=1, n_heads=1, d_model=8, d_mlp=6, seed=seed)
        folders.append(quick_build(source, tmp_path / f"data-{seed}"))
    data = folders[0].parent
    model = lexiscope.open("tiny", data=data, device="cpu")
    first = model.run("the dog", panels=["evolution"]).prediction
    shutil.rmtree(folders[0])
    shutil.copytree(folders[1], folders[0])
    expected = lexiscope.open(folders[1], device="cpu").run("the dog", panels=["evolution"]).prediction
    deadline = time.monotonic() + 240
    while (found := model.run("the dog", panels=["evolution"]).prediction) == first:
        assert time.monotonic() < deadline
        time.sleep(0.1)
    assert found == expected


def test_the_sheet_is_a_frame(with_weights: lexiscope.Model, live_url: str) -> None:
    run = with_weights.run(TEXT, panels=["sheet"])
    heads, neurons = run.sheet.data["heads"], run.sheet.data["neurons"]
    frame = run.sheet().to_pandas()
    assert list(frame["of"]) == ["head"] * len(heads) + ["neuron"] * len(neurons)
    assert frame["sends"][0] == [token["token"] for token in heads[0]["sends"]]
    assert [*frame["moved"][: len(heads)]] == [row["moved"] for row in heads]
    assert run.sheet().to_arrow().column_names == [*frame] == run.sheet().to_polars().columns
    assert str(run.sheet)
    there = lexiscope.run(f"{live_url}/{GPT2}", TEXT, panels=["sheet"])
    assert close(there.json(), run.json())
