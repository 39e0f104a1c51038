"""Models that tests of several rooms share: a small one with an undisturbed build of it, and the real demo model,
fetched once, where `lexiscope precompute demo` keeps it."""

import os
from pathlib import Path

import pytest

from precompute.weights.checkpoint import Checkpoint
from precompute.weights.sources import resolve
from tests.support.builds import quick_build, small_gpt2

DATA = Path(os.environ.get("LEXISCOPE_DATA", Path(__file__).parents[2] / "data"))


@pytest.fixture(scope="session")
def smollm2() -> Checkpoint:
    return resolve("demo", cache=DATA / ".cache")


@pytest.fixture(scope="session")
def source(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return small_gpt2(tmp_path_factory.mktemp("source") / "tiny")


@pytest.fixture(scope="session")
def built(source: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An undisturbed build of `source`, to copy and compare with; never changed."""
    return quick_build(source, tmp_path_factory.mktemp("built"))
