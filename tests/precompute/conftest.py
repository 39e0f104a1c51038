"""The real demo model, for tests that need one: fetched once, where `lexiscope precompute demo` keeps it."""

import os
from pathlib import Path

import pytest

from precompute.weights.checkpoint import Checkpoint
from precompute.weights.sources import resolve

DATA = Path(os.environ.get("LEXISCOPE_DATA", Path(__file__).parents[2] / "data"))


@pytest.fixture(scope="session")
def smollm2() -> Checkpoint:
    return resolve("demo", cache=DATA / ".cache")
