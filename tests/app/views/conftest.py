"""One small index of each shape, for all tests of views."""

import pytest

from lexiscope.precompute.index.index import Index
from tests.support.lists import open_indexes


@pytest.fixture(scope="session")
def indexes(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Index]:
    return open_indexes(tmp_path_factory.mktemp("views"))


@pytest.fixture(scope="session")
def index(indexes: dict[str, Index]) -> Index:
    return indexes["gpt2-like"]
