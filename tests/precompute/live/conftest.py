"""Tests of live computations that take `case` run on a few small models, those that take `every` on the archetypes of
families (`make test-all`: on all of them), and those that take `each_family` on all families in every run."""

from collections.abc import Callable
from functools import cache
from pathlib import Path

import pytest

from lexiscope.precompute.live.engine import Engine
from lexiscope.precompute.weights.checkpoint import Checkpoint
from tests.precompute.live.reference import FEW, Case
from tests.support.families import archetype_parameters, family_parameters
from tests.support.nets import Net


@pytest.fixture(scope="session")
def case_of(family_folder: Callable[[str], Path], family_net: Callable[[str], Net]) -> Callable[[str], Case]:
    def make(family: str) -> Case:
        folder = family_folder(family)
        return Case(Engine.load(Checkpoint.open(folder), device="cpu"), family_net(family), folder)

    return cache(make)


@pytest.fixture(params=FEW)
def case(request: pytest.FixtureRequest, case_of: Callable[[str], Case]) -> Case:
    return case_of(request.param)


@pytest.fixture(params=archetype_parameters())
def every(request: pytest.FixtureRequest, case_of: Callable[[str], Case]) -> Case:
    return case_of(request.param)


@pytest.fixture(params=family_parameters())
def each_family(request: pytest.FixtureRequest, case_of: Callable[[str], Case]) -> Case:
    return case_of(request.param)
