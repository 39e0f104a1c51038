"""What brute force finds wrong with the index of a difference, from its two checkpoints."""

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from lexiscope.precompute.index.index import Index
from lexiscope.precompute.verify.sample import check_sample
from tests.support.differences import BASE, DIFFERENCE, TUNED, UNCHANGED_HEAD, UNCHANGED_NEURONS, difference_of
from tests.support.synthetic import rewrite_shard

pytestmark = pytest.mark.slow

LAYER, NEURON = 1, UNCHANGED_NEURONS[1]
Change = Callable[[NDArray[Any]], None]


def put(at: Any, value: float) -> Change:
    return lambda array: array.__setitem__(at, value)


@pytest.mark.parametrize(("name", "change", "said"), [
    ("ff_key.base_norm", put(5, 9.0), "the norm of the base's ff_key 5"),
    ("ff_value.norm", put(5, 9.0), "the norm of ff_value 5"),
    ("vo.norm", put(slice(None), 9.0), "the norm of vo of head"),
    ("qk.base_norm", put(slice(None), 9.0), "the base's norm of qk of head"),
    ("ff_key.coherence", put(NEURON, 0.5), f"the coherence of ff_key {NEURON}"),
    ("ff.similarity", put(NEURON, 1.0), f"the similarity of neuron {NEURON}"),
    ("vo.readability", put(UNCHANGED_HEAD, 0.5), f"the readability of vo of head {UNCHANGED_HEAD}"),
    ("w_o.scores", lambda array: np.multiply(array, 1.01, out=array), "w_o 0 (dot, top)"),
    ("qk.scores", lambda array: np.multiply(array, 1.01, out=array), "qk of head"),
])  # fmt: skip
def test_what_is_wrong_is_found(difference_data: Path, tmp_path: Path, name: str, change: Change, said: str) -> None:
    sources = difference_data.parent / "sources"
    difference = difference_of(sources / TUNED, sources / BASE)
    index = Index.open(shutil.copytree(difference_data / DIFFERENCE, tmp_path / DIFFERENCE))
    arrays = {array: index.shard(LAYER).array(array).copy() for array in index.shard(LAYER).file.tensors}
    change(arrays[name])
    alone = index.manifest.with_changes(shards={}, neighbours=None, reads_best=None)  # quicker to check
    rewrite_shard(index.folder, alone, LAYER, arrays)
    faults: list[str] = []
    for seed in range(8):  # of the heads one is looked at
        faults += [str(fault) for _, fault in check_sample(Index.open(index.folder), difference, 200, seed) if fault]
        if faults:
            break
    assert any(said in fault for fault in faults), faults
    assert f"`lexiscope precompute {TUNED} --minus {BASE}` again" in faults[0]
