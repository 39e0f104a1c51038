"""A parameter's page as a label: what is copied is a good file, and all of its list is in ours."""

import json
from pathlib import Path

import pytest

from lexiscope.app.lists.labels import as_label, in_ours
from lexiscope.precompute.index.index import Index
from lexiscope.precompute.index.label_files import parse_labels
from tests.support.site import DIFFERENCE, GPT2, LLAMA
from tests.support.views import direction_view, head_view, neuron_view, pairs_view, subhead_view

LENSES = ("dot", "cosine")


@pytest.mark.parametrize("model", [GPT2, LLAMA, DIFFERENCE])
@pytest.mark.parametrize("lens", LENSES)
def test_whatever_is_copied_is_a_good_file(site_data: Path, model: str, lens: str) -> None:
    index = Index.open(site_data / model)
    copied = [as_label(neuron_view(index, 1, neuron, lens)) for neuron in range(0, 40, 3)]
    copied += [as_label(subhead_view(index, 1, 2, subhead, lens)) for subhead in range(4)]
    copied += [as_label(direction_view(index, 1, head, direction, lens)) for head in (2, 3) for direction in (0, 7)]
    copied += [as_label(pairs_view(index, matrix, 1, 2, lens, "words")) for matrix in ("vo", "qk")]
    copied += [as_label(head_view(index, 1, head, lens, preset)) for head in (2, 3) for preset in ("all", "distinct")]
    for text in copied:
        assert text.isprintable() or set(filter(lambda c: not c.isprintable(), text)) == {"\n"}
        file = parse_labels(text.encode(), "x.json")
        assert file.faults == ()
        assert file.labels
        for filed in file.labels:
            length = len(filed.label.pairs or filed.label.tokens or ())
            found = in_ours(index, filed.label)
            assert max((of.exactly for of in found), default=0) == length
            assert filed.label.title


def test_addresses_and_lists(site_data: Path) -> None:
    index = Index.open(site_data / LLAMA)
    (label,) = json.loads(as_label(neuron_view(index, 1, 3, "cosine")))
    assert (label["address"], label["lens"], len(label["tokens"])) == (f"{LLAMA}/ff/1/3", "cosine", 10)
    assert "preset" not in label
    (label,) = json.loads(as_label(subhead_view(index, 1, 2, 0)))
    assert label["address"] == f"{LLAMA}/sub/1/2/0"
    assert "lens" not in label
    (label,) = json.loads(as_label(pairs_view(index, "qk", 1, 2, "dot", "distinct")))
    assert (label["address"], label["preset"], len(label["pairs"])) == (f"{LLAMA}/qk/1/2", "distinct", 10)
    both = json.loads(as_label(direction_view(index, 1, 2, 3)))
    assert [label["address"] for label in both] == [f"{LLAMA}/vo_out/1/2/3", f"{LLAMA}/qk_key/1/2/3"]
    both = json.loads(as_label(head_view(index, 1, 2)))
    assert [label["address"] for label in both] == [f"{LLAMA}/vo/1/2", f"{LLAMA}/qk/1/2"]
