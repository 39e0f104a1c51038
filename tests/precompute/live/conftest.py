"""Each test of live computations that takes `case` runs on every small model."""

import pytest

from tests.precompute.live.reference import MODELS, Case, make_case


@pytest.fixture(scope="module", params=list(MODELS))
def case(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Case:
    return make_case(MODELS[request.param](tmp_path_factory.mktemp(request.param)))
