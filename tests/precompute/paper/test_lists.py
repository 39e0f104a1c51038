"""The shipped lists: as many as the README beside them says, and within the models that they are of."""

import json
from pathlib import Path

import pytest

from lexiscope.precompute.paper import lists

FOLDER = Path(lists.__file__).parent
LAYERS, HEADS, NEURONS = 24, 16, 4096  # of GPT-2 medium


def test_as_many_as_the_readme_says() -> None:
    readme = (FOLDER / "README.md").read_text()
    pairs = sum(len(head.pairs) for head in lists.heads())
    tokens = sum(len(each.key) + len(each.value) + len(each.unassigned) for each in lists.neurons())
    assert f"{len(lists.heads())} heads: {pairs} of 1,200 pairs" in readme
    assert f"{len(lists.neurons())} neurons: {tokens} of 900 tokens" in readme
    matrices = [head.matrix for head in lists.heads()]
    assert f"pairs of {matrices.count('vo')} VO and {matrices.count('qk')} QK heads" in readme
    assert [result.rank for lookup in lists.lookups() for result in lookup.results] == [3, 1, 2]
    for name in ("pairs", "ff", "lookup", "finetuning", "numbers"):
        assert f"`{name}.json`" in readme
    assert {str(path.name) for path in FOLDER.glob("*.json")} == {
        f"{name}.json" for name in ("pairs", "ff", "lookup", "finetuning", "numbers")
    }


@pytest.mark.parametrize("head", lists.heads(), ids=lambda head: f"{head.matrix}-{head.layer}-{head.head}")
def test_what_is_said_of_a_heads_pairs_is_of_its_pairs(head: lists.PrintedHead) -> None:
    assert head.layer < LAYERS and head.head < HEADS and head.model == lists.MEDIUM  # noqa: PT018
    assert head.low_confidence <= {*range(len(head.pairs))}
    assert {pair for pair, _ in head.space_uncertain} <= {*range(len(head.pairs))}
    assert len({*head.pairs}) == len(head.pairs) <= 50
    assert not head.without_same_token or all(first != second for first, second in head.pairs)


def test_neurons_are_those_of_the_model() -> None:
    for each in lists.neurons():
        assert each.layer < LAYERS and each.neuron < NEURONS  # noqa: PT018
        assert {*each.uncertain} <= {*each.key, *each.value}
    assert {each.kind for each in lists.differences()} == {"classification head", "FF keys", "W_Q", "W_K", "W_V"}


def test_numbers_have_their_own_names() -> None:
    names = [number.id for number in lists.numbers()]
    assert len({*names}) == len(names) == len(json.loads((FOLDER / "numbers.json").read_bytes()))


@pytest.mark.parametrize(
    ("model", "source", "expected"),
    [
        ("gpt2-medium", "/models/gpt2-medium", "gpt2-medium"),
        ("mine", "openai-community/gpt2-medium", "gpt2-medium"),
        ("mine", "gpt2-medium", "gpt2-medium"),
        ("gpt2", "openai-community/gpt2", "gpt2"),
        ("gpt2-large", "openai-community/gpt2-large", None),
        ("mine", "somebody/gpt2-medium", None),
        ("gpt2-mediums", "", None),
    ],
)
def test_whose_lists_belong_to_a_model(model: str, source: str, expected: str | None) -> None:
    assert lists.published_lists(model, source) == expected
