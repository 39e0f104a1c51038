"""The comparisons of a data folder, as they come and go."""

from pathlib import Path

import pytest

from lexiscope.app.library.comparisons import Comparisons
from lexiscope.app.library.library import Library
from lexiscope.precompute.errors import NotFound
from lexiscope.precompute.index.manifest import Manifest
from tests.support.comparisons import quick_compare
from tests.support.site import GPT2, LLAMA, copied


@pytest.fixture
def data(site_data: Path, tmp_path: Path) -> Path:
    return copied(site_data, tmp_path)


def test_none(tmp_path: Path) -> None:
    for folder in (tmp_path, tmp_path / "missing"):
        comparisons = Comparisons(folder)
        assert (comparisons.cards(), comparisons.version(), comparisons.of_model(GPT2)) == ((), "", [])
        with pytest.raises(NotFound, match="compared: none"):
            comparisons.find(GPT2, LLAMA)


def test_two_ways_count_as_one(data: Path) -> None:
    """Of a model, the comparison in which it comes first."""
    ours, theirs = (Path(Manifest.load(data / name).source) for name in (GPT2, LLAMA))
    quick_compare(theirs, ours, data, kinds=("w_q",))
    library = Library(data, 0.0)
    for name in (GPT2, LLAMA):
        ((side, found),) = library.comparisons_of(library.index(name))
        assert (side, found.a.model) == ("a", name)
