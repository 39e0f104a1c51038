"""Small models of every family: each is written once for all tests, and loaded once in a process."""

from collections.abc import Callable
from functools import cache
from pathlib import Path

import pytest

from tests.support.families import FAMILIES
from tests.support.nets import Net
from tests.support.shared import make_once_per_run


@pytest.fixture(scope="session")
def family_folder(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    return cache(lambda name: make_once_per_run(tmp_path_factory, f"family-{name}", FAMILIES[name].save))


@pytest.fixture(scope="session")
def family_net(family_folder: Callable[[str], Path]) -> Callable[[str], Net]:
    return cache(lambda name: Net(family_folder(name)))
