"""Which weights are meant by what a user names: a folder, the name of an index, two models and their difference."""

from pathlib import Path

import pytest

from lexiscope.app.weights import find_checkpoint, find_difference, find_weights
from lexiscope.precompute.errors import BuildError, OptionsDiffer, SourceNotFound, WeightsError
from lexiscope.precompute.index.manifest import Manifest
from lexiscope.precompute.weights.difference import Difference
from tests.support.builds import copy, quick_build, small_gpt2
from tests.support.differences import BASE, DIFFERENCE, TUNED


@pytest.fixture(autouse=True)
def offline(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    monkeypatch.chdir(tmp_path)


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("built")
    return quick_build(small_gpt2(folder / "sources" / "tiny", n_layers=2), folder / "data")


def test_a_folder_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(SourceNotFound):
        find_checkpoint("./nothing", tmp_path / "data")


def test_another_folder_of_the_same_name_is_not_taken_for_the_index(
    built: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    copy(built, tmp_path / "data")
    small_gpt2(tmp_path / "mine" / "tiny", n_layers=2, seed=4)
    for folder, asked in ((tmp_path, "mine/tiny"), (tmp_path / "mine", "tiny")):
        monkeypatch.chdir(folder)
        assert find_checkpoint(asked, tmp_path / "data").folder == tmp_path / "mine" / "tiny"
        with pytest.raises(OptionsDiffer, match="weights"):
            quick_build(find_checkpoint(asked, tmp_path / "data").folder, tmp_path / "data")
    monkeypatch.chdir(tmp_path)
    assert find_checkpoint("tiny", tmp_path / "data").source == Manifest.load(built).source


@pytest.mark.parametrize(
    ("folder", "name"),
    [
        ("docs", "docs-model"), ("docs2", "docs2"), ("index", "index-model"), ("favicon.ico", "favicon.ico-model"),
        ("robots.txt", "robots.txt-model"), ("a.json", "a.json-model"), ("a.tex", "a.tex-model"), ("a.txt", "a.txt"),
    ],
)  # fmt: skip
def test_a_model_is_not_named_like_another_page(tmp_path: Path, folder: str, name: str) -> None:
    assert find_checkpoint(str(small_gpt2(tmp_path / folder)), tmp_path / "data").name == name


def test_index_of_another_owner_is_not_taken_for_this_one(built: Path, tmp_path: Path) -> None:
    copy(built, tmp_path / "data")
    with pytest.raises(Exception, match="someone/tiny"):
        find_checkpoint("someone/tiny", tmp_path / "data")


def test_a_difference_is_no_model_to_subtract_or_run(difference_data: Path) -> None:
    assert isinstance(find_weights(DIFFERENCE, difference_data), Difference)
    with pytest.raises(WeightsError, match=f"{DIFFERENCE} is the difference of two models: .* {TUNED} or {BASE}"):
        find_difference(DIFFERENCE, BASE, difference_data)
    with pytest.raises(WeightsError, match="is the difference of two models"):
        find_checkpoint(DIFFERENCE, difference_data)


@pytest.mark.parametrize("name", ["", "../x", "a b", "docs", "demo", "-", "x" * 97])
def test_names_that_no_index_can_have(tmp_path: Path, name: str) -> None:
    with pytest.raises(BuildError, match="--name"):
        find_difference("tuned", "base", tmp_path, name)


def test_long_names_are_cut(tmp_path: Path) -> None:
    tuned, base = (small_gpt2(tmp_path / (letter * 90)) for letter in "tb")
    name = find_difference(str(tuned), str(base), tmp_path).checkpoint.name
    assert (len(name), name) == (95, f"{'t' * 44}-minus-{'b' * 44}")
