"""What a list is worth: where a z stands, which neurons strengthen or weaken what they read, which vectors act through
the final norm. Every number against one computed here, vector by vector."""

import math
from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import pytest

from lexiscope.app.lists.worth import CLASSES, classes_of, cosines_as_data, standing, through_norm
from lexiscope.precompute.index.layer.lists import Chance, Moments

CHANCE = Chance(None, (4.7, 5.14), 4.7, 5.14)


@pytest.mark.parametrize(("z", "words"), [
    (10.5, "far above chance (5.1)"),
    (7.72, "far above chance (5.1)"),
    (7.70, "above chance (5.1)"),
    (5.15, "above chance (5.1)"),
    (5.14, "as 1 to 5 % of random vectors reach"),
    (4.71, "as 1 to 5 % of random vectors reach"),
    (4.7, "as random vectors reach"),
    (0.0, "as random vectors reach"),
    (-4.4, "as random vectors reach"),
    (-5.2, "beyond chance (−5.1)"),
    (-9.0, "far beyond chance (−5.1)"),
])  # fmt: skip
def test_where_a_z_stands(z: float, words: str) -> None:
    assert standing(z, CHANCE) == words


def class_of(key: float, up: float, gated: bool) -> str | None:
    """The class by its definition, in words."""
    if math.isnan(key) or (gated and math.isnan(up)):
        return None
    if not gated:
        return "strengthening" if key > 0.5 else "weakening" if key < -0.5 else "no clear class"
    if up > 0.5:
        return "strengthening" if abs(key) > 0.5 else "conditional strengthening"
    if up < -0.5:
        return "weakening" if abs(key) > 0.5 else "conditional weakening"
    return "proportional" if abs(key) > 0.5 else "no clear class"


@pytest.mark.parametrize("gated", [True, False])
def test_classes_by_cosines(gated: bool) -> None:
    values = [-1.0, -0.51, -0.5, -0.2, 0.0, 0.5, 0.51, 1.0, math.nan]
    rows = np.array([(key, up if gated else math.nan, 0.25) for key in values for up in values], np.float32)
    index = cast(Any, SimpleNamespace(shape=SimpleNamespace(gated=gated)))
    expected = [class_of(key, up, gated) for key, up, _ in rows.tolist()]
    assert {*expected} == {*(CLASSES if gated else ("strengthening", "weakening", "no clear class")), None}
    assert [None if number < 0 else CLASSES[number] for number in classes_of(index, rows)] == expected
    data = cosines_as_data(index, rows)
    assert [each["class"] for each in data] == expected
    assert data[0]["key_value"] == -1.0
    assert data[0]["up_value"] == (-1.0 if gated else None)
    assert data[-1]["key_value"] is None  # and no NaN


@pytest.mark.parametrize("kind", ["ff_value", "w_o", "ff_key", "vo_out"])
def test_vectors_that_act_through_the_final_norm(kind: str) -> None:
    random = np.random.default_rng(3)
    norms, variances = random.random(400).astype(np.float32), random.random(400).astype(np.float32)
    norms[7], variances[7] = norms.max() + 1, variances.min() / 2
    norms[8], variances[8] = norms[7], np.nan  # a tie, without a variance
    shard = cast(Any, SimpleNamespace(layer=2, all_norms=lambda _: norms))
    index = cast(Any, SimpleNamespace(stats=lambda _layer, _array: variances))

    def found(row: int, z: float = 4.0, z_bottom: float = -4.0) -> Any:
        moments = Moments(mean=0, sd=1, skew=0, kurtosis=0, z=z, z_bottom=z_bottom)
        return through_norm(index, shard, kind, row, moments, CHANCE)

    longest = sorted(range(400), key=lambda row: -norms[row])[:20]
    known = sorted(variances[variances == variances].tolist())
    median = known[199]  # of 399
    expected = [row for row in range(400) if row in longest and variances[row] < 0.7 * median]
    assert {7} <= {*expected} <= {*range(400)} - {8}
    assert len(expected) > 2
    writes = kind in ("ff_value", "w_o")
    assert [row for row in range(400) if found(row)] == (expected if writes else [])
    if writes:
        variance = float(variances[7])
        assert found(7) == {"variance": variance, "of_median": pytest.approx(variance / median), "norm_rank": 1}
    assert found(7, z=5.2) is found(7, z_bottom=-5.2) is None  # the list stands out
    assert through_norm(index, shard, kind, 7, None, CHANCE) is None
    nothing = cast(Any, SimpleNamespace(stats=lambda _layer, _array: None))
    moments = Moments(mean=0, sd=1, skew=0, kurtosis=0, z=None, z_bottom=None)
    assert through_norm(nothing, shard, kind, 7, moments, CHANCE) is None
    norms[:], variances[:] = 0, np.nan  # a layer of vectors of zeros
    assert through_norm(index, shard, kind, 7, moments, CHANCE) is None
