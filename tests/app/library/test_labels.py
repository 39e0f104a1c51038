"""The labels of a data folder, as files come, change and go."""

import os
import time
from pathlib import Path

import pytest

from lexiscope.app.library.labels import Labels
from lexiscope.precompute.index.index import Index
from lexiscope.precompute.index.label_files import FiledLabel, Label
from lexiscope.precompute.paper.labels import FILE as PAPER
from tests.support.site import LLAMA
from tests.support.site_labels import write_labels


@pytest.fixture
def index(site_data: Path) -> Index:
    return Index.open(site_data / LLAMA)


def label(place: str, title: str = "x", **fields: object) -> dict[str, object]:
    return {"address": f"{LLAMA}/{place}", "title": title, **fields}


def titles(labels: tuple[FiledLabel, ...]) -> list[str]:
    return [filed.label.title for filed in labels]


def test_of_all_parameters(tmp_path: Path, index: Index) -> None:
    group = index.shape.n_heads // index.shape.n_kv_heads
    places = ["ff/1/3", "ff_value/1/3", "ff_key/1/4", "head/1/2", "vo/1/2", "qk/1/2", "sub/1/0/5", "w_q/1/0/5"]
    places += [f"w_k/1/{group - 1}/5", "svd/1/0/5", "vo_out/1/0/5"]
    write_labels(tmp_path, entries=[label(place, place) for place in places])
    labels = Labels(tmp_path, 0.0, tuple).of(index)
    assert titles(labels.of_neuron(1, 3)) == ["ff/1/3", "ff_value/1/3"]
    assert titles(labels.of_head(1, 2, "vo")) == ["head/1/2", "vo/1/2"]
    assert titles(labels.of_head(1, 2)) == ["head/1/2"]
    assert titles(labels.of_subhead(1, 0, 5)) == ["sub/1/0/5", "w_q/1/0/5", f"w_k/1/{group - 1}/5"]
    assert titles(labels.of_direction(1, 0, 5)) == ["svd/1/0/5", "vo_out/1/0/5"]
    neuron = {"layer": 1, "index": 3, "head": None, "subhead": None}
    assert titles(labels.of_vector({"kind": "ff_value", **neuron})) == ["ff/1/3", "ff_value/1/3"]
    assert titles(labels.of_vector({"kind": "ff_key", **neuron})) == ["ff/1/3"]
    in_head = {"layer": 1, "index": 5, "head": 0}
    assert titles(labels.of_vector({"kind": "w_o", **in_head, "subhead": 5})) == ["sub/1/0/5"]
    direction = {"kind": "vo_out", **in_head, "subhead": None, "direction": 5}
    assert titles(labels.of_vector(direction)) == ["svd/1/0/5", "vo_out/1/0/5"]
    assert labels.of_neuron(0, 3) == labels.of_model == ()


@pytest.mark.parametrize(("words", "found"), [
    ("greyhounds", ["Dogs", "Kennel"]),
    ("GREY ken", ["Kennel"]),
    ("hounds", []),  # no word begins so
    ("dar 2022", ["Kennel"]),
    ("  ", []),
    ("<b>", []),
    (".*", []),
])  # fmt: skip
def test_by_words(tmp_path: Path, index: Index, words: str, found: list[str]) -> None:
    write_labels(tmp_path, entries=[
        label("ff/0/1", "Dogs", text="all Greyhounds"),
        label("ff/1/1", "Kennel", text="greyhounds, too", source="Dar et al., 2022"),
    ])  # fmt: skip
    assert titles(tuple(Labels(tmp_path, 0.0, tuple).of(index).with_words(words))) == found


def test_changes_are_seen(tmp_path: Path, index: Index) -> None:
    labels = Labels(tmp_path, 0.0, tuple)
    assert not labels.of(index)
    versions = [labels.version()]
    write_labels(tmp_path, "a.json", [label("ff/1/3", "one")])
    write_labels(tmp_path, "b.json", [label("ff/1/4", "two")])
    for change, expected in (
        (lambda: None, ["one", "two"]),
        (lambda: write_labels(tmp_path, "a.json", [label("ff/1/3", "other")]), ["other", "two"]),
        (lambda: write_labels(tmp_path, "b.json", b"no json"), ["other"]),
        (lambda: (tmp_path / "labels" / "b.json").unlink(), ["other"]),
        (lambda: (tmp_path / "labels").rename(tmp_path / "elsewhere"), []),
    ):
        change()
        assert titles(labels.of(index).labels) == expected
        versions.append(labels.version())
    assert len({*versions}) == len(versions) - 1  # there are none at the beginning and at the end
    assert labels.errors() == ()


def test_bad_files_hide_no_others(tmp_path: Path, index: Index) -> None:
    write_labels(tmp_path, "a.json", b"[")
    write_labels(tmp_path, "good.json", [label("ff/1/3", "good"), {}, label("ff/99/3")])
    folder = tmp_path / "labels"
    (folder / "c.json").mkdir()
    os.mkfifo(folder / "d.json")
    (folder / "e.json").symlink_to("/etc/passwd")
    labels = Labels(tmp_path, 0.0, tuple)
    assert titles(labels.of(index).labels) == ["good"]
    errors = labels.errors()
    assert [error.partition(":")[0].partition(",")[0] for error in errors] == [
        "labels/a.json", "labels/c.json", "labels/d.json", "labels/e.json", "labels/good.json", "labels/good.json",
    ]  # fmt: skip
    assert str(tmp_path) not in " ".join(errors)
    assert labels.of(index).errors == (
        f"labels/good.json, entry 3, address: layer 99: {LLAMA} has layers 0 to {index.shape.n_layers - 1}",
    )


def test_the_folder_itself_may_be_bad(tmp_path: Path, index: Index) -> None:
    path = tmp_path / "labels"
    path.touch()
    labels = Labels(tmp_path, 0.0, tuple)
    assert not labels.of(index)
    assert "make it a folder" in labels.errors()[0]
    path.unlink()
    assert labels.errors() == ()


def test_a_folder_has_a_limit(tmp_path: Path, index: Index) -> None:
    for number in range(202):
        write_labels(tmp_path, f"{number:03}.json", [label("ff/1/3", f"{number}")])
    labels = Labels(tmp_path, 0.0, tuple)
    assert len(labels.of(index).labels) == 200
    assert "202 files" in labels.errors()[0]


def test_large_files_are_read_while_others_are_served(tmp_path: Path, index: Index) -> None:
    """The rest of what does not fit is named; until a large folder is read, there are the labels from before."""
    padding = b" " * 3_900_000
    for name in "abcde":
        write_labels(tmp_path, f"{name}.json", b'[{"address": "%s/ff/1/3", "title": "%s"}]%s' % (
            LLAMA.encode(), name.encode(), padding,
        ))  # fmt: skip
    labels = Labels(tmp_path, 0.0, tuple)
    until = time.monotonic() + 240
    while len(labels.of(index).labels) < 4 and time.monotonic() < until:
        time.sleep(0.05)
    assert titles(labels.of(index).labels) == ["a", "b", "c", "d"]
    assert labels.errors()[0].startswith("labels/e.json: it is left out")


def test_those_that_come_with_the_program(tmp_path: Path, index: Index) -> None:
    def built_in() -> tuple[FiledLabel, ...]:
        return (FiledLabel(Label(address=f"{LLAMA}/ff/0/1", title="built in"), "the paper", 1),)

    labels = Labels(tmp_path, 0.0, built_in)
    assert titles(labels.of(index).labels) == ["built in"]
    write_labels(tmp_path, entries=[label("ff/1/3", "own")])
    assert titles(labels.of(index).labels) == ["built in", "own"]


def test_the_papers_lists_of_a_larger_model_are_no_faults(tmp_path: Path, index: Index) -> None:
    def built_in() -> tuple[FiledLabel, ...]:
        places = [f"{LLAMA}/vo/{layer}/0" for layer in (0, 16, 17)]
        return tuple(FiledLabel(Label(address=place, title="x"), PAPER, at) for at, place in enumerate(places, 1))

    labels = Labels(tmp_path, 0.0, built_in).of(index)
    assert len(labels.labels) == 1
    assert len(labels.errors) == 1
    assert labels.errors[0].startswith("2 lists of the paper are of parameters that this index does not have")
