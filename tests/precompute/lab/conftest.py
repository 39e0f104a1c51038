"""Indexes of small models of several families, without pairs, built once."""

from collections.abc import Callable
from functools import cache
from pathlib import Path

import pytest

from tests.support.builds import quick_build
from tests.support.shared import make_once_per_run

K = 20


@pytest.fixture(scope="session")
def lab_index(family_folder: Callable[[str], Path], tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """The folder of a family's index; to be copied by whoever writes to it."""

    def make(family: str) -> Path:
        source = family_folder(family)
        built = make_once_per_run(
            tmp_path_factory, f"lab-{family}", lambda folder: quick_build(source, folder / "data", k=K, pairs=0)
        )
        return next(path for path in (built / "data").iterdir() if path.is_dir())

    return cache(make)
