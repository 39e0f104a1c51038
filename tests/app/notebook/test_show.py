"""What objects show of themselves is safe, small, and readable without a style sheet or a network."""

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import lexiscope
from lexiscope.app.lists.view import visible
from lexiscope.app.notebook.show import MOST_ROWS
from tests.support.pages import parsed
from tests.support.site import SCRIPT
from tests.support.synthetic import HOSTILE, make_manifest, raw_tokens, write_index

TAGS = {"div", "style", "table", "caption", "thead", "tbody", "tr", "th", "td", "code", "bdi", "p"}
CONTROLS = re.compile(r"[\x00-\x09\x0b-\x1f\x7f-\x9f\u202e]")

SHOWN: dict[str, Callable[[lexiscope.Model], Any]] = {
    "neuron": lambda m: m.neuron(1, 3),
    "head": lambda m: m.head(1, 1),
    "pairs": lambda m: m.head(1, 1).vo(k=6),
    "subhead": lambda m: m.subhead(1, 1, 2),
    "direction": lambda m: m.direction(1, 1, 2),
    "token": lambda m: m.token(raw_tokens().index(HOSTILE[0])),
    "places": lambda m: m.token(raw_tokens().index(HOSTILE[0])).places(),
    "search": lambda m: m.search("<script"),
    "lists": lambda m: m.neurons(kinds=["ff_value"]),
    "pair lists": lambda m: m.pairs("vo"),
    "model": lambda m: m,
}


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> lexiscope.Model:
    """Whose lists hold every hostile token that there is."""
    data = tmp_path_factory.mktemp("data")
    vocabulary = len(raw_tokens())
    write_index(data / "tiny", make_manifest(k=vocabulary // 8, pairs=7))
    return lexiscope.open("tiny", data=data)


@pytest.mark.parametrize("what", SHOWN)
def test_html_is_safe_and_small(model: lexiscope.Model, what: str) -> None:
    html = SHOWN[what](model)._repr_html_()
    page = parsed(html)
    assert {element.tag for element in page.elements} <= TAGS
    assert {name for element in page.elements for name in element.attributes} <= {"class", "scope"}
    assert "http" not in html
    assert "url(" not in html
    assert not CONTROLS.search(html)
    assert len(html) < 60_000
    for body in re.findall("<tbody>.*?</tbody>", html, re.DOTALL):
        assert body.count("<tr>") <= MOST_ROWS


@pytest.mark.parametrize("what", SHOWN)
def test_text_is_safe_and_a_repr_is_a_line(model: lexiscope.Model, what: str) -> None:
    shown = SHOWN[what](model)
    assert not CONTROLS.search(str(shown))
    assert re.fullmatch(r"<lexiscope .+>", repr(shown))
    assert len(repr(shown)) < 300
    assert not CONTROLS.search(repr(shown))


def test_tokens_are_seen_as_they_are(llama: lexiscope.Model) -> None:
    places = llama.token(SCRIPT).places()
    assert "&lt;script&gt;" in places._repr_html_()
    assert "<script" not in places._repr_html_()
    assert "<script>" in str(places)


def test_a_table_has_what_the_list_has(llama: lexiscope.Model) -> None:
    neuron = llama.neuron(1, 3, k=5)
    chips = [element.text for element in parsed(neuron._repr_html_()).all("bdi")]
    vectors = [neuron.key, neuron.up, neuron.value]
    expected = [
        entry["token"]
        for vector in vectors
        if vector
        for pair in zip(vector.top, vector.bottom, strict=True)
        for entry in pair
    ]
    assert chips == [*map(visible, expected)]
    assert all(f"{entry['score']:.3f}" in str(neuron) for entry in neuron.value.top)  # type: ignore[union-attr]


def test_what_is_not_shown_is_said(model: lexiscope.Model) -> None:
    head = model.head(1, 1)
    assert head.view.subheads  # which are not shown, and are in the frame
    assert "subhead" in head.to_pandas().columns
    long = model.neuron(1, 3, k=30)
    assert f"{MOST_ROWS} of 30 rows are shown: to_pandas() has all." in long._repr_html_()


def test_a_list_of_nothing_says_so(difference: lexiscope.Model) -> None:
    unchanged = difference.neuron(1, 0)
    assert unchanged.value
    assert unchanged.value.unchanged
    html = unchanged._repr_html_()
    assert "<table>" not in html
    assert html.count(": nothing to list.") == 3  # key, up and value


def test_seeds_say_where_they_come_from(gpt2: lexiscope.Model) -> None:
    seeds = gpt2.seeds("dog", exact=False)
    assert not seeds.exact
    for shown in (repr(seeds), str(seeds), seeds._repr_html_()):
        assert "from the stored lists" in shown.lower()
    assert "take off the mean token's" in seeds._notes()[0]
    assert "mean token" not in gpt2.seeds("dog", lens="cosine", exact=False)._notes()[0]


def test_models_with_faults(tmp_path: Path) -> None:
    write_index(tmp_path / "tiny", make_manifest())
    (tmp_path / "broken").mkdir()
    (tmp_path / "broken" / "manifest.json").write_text("{")
    models = lexiscope.models(tmp_path)
    assert models.names == ("broken", "tiny")
    assert (len(models), models[1].model, [card.model for card in models[1:]]) == (2, "tiny", ["tiny"])
    assert "broken: " in str(models)
    assert "broken: " in models._repr_html_()
    assert repr(lexiscope.models(tmp_path / "nothing")) == "<lexiscope models: none>"
