"""A small model and an undisturbed build of it, for all tests of the build job."""

from pathlib import Path

import pytest

from tests.support.builds import quick_build, small_gpt2


@pytest.fixture(scope="session")
def source(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return small_gpt2(tmp_path_factory.mktemp("source") / "tiny")


@pytest.fixture(scope="session")
def built(source: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An undisturbed build of `source`, to copy and compare with; never changed."""
    return quick_build(source, tmp_path_factory.mktemp("built"))
