"""Cosines from scores and a vector's length."""

import numpy as np
import pytest

from lexiscope.app.lists.vectors import cosines_of

SCORES = np.array([[2.0, 1.0], [-3.0, 0.0]], np.float32)


@pytest.mark.parametrize(("norm", "lens", "cosines"), [
    (4.0, "cosine", [[0.5, 0.25], [-0.75, 0.0]]),
    (3.0, "cosine", [[0.6667, 0.3333], [-1.0, 0.0]]),
    (0.0, "cosine", [[], []]),
    (4.0, "dot", [[], []]),
])  # fmt: skip
def test_cosines_of(norm: float, lens: str, cosines: list[list[float]]) -> None:
    assert cosines_of(SCORES, norm, lens) == cosines
