"""Which device is used, and what is said of one that cannot be."""

import subprocess
import sys

import pytest
import torch

from precompute.device import pick_device
from precompute.errors import BuildError


@pytest.mark.parametrize("device", ["hpu", "nonsense", "meta", "cuda:77", ""])
def test_devices_that_cannot_be_used(device: str) -> None:
    with pytest.raises(BuildError, match="try auto or cpu"):
        pick_device(device)


def test_the_one_that_is_here() -> None:
    assert pick_device("cpu") == torch.device("cpu")
    assert pick_device("auto").type == ("cuda" if torch.cuda.is_available() else "cpu")


def test_a_worker_does_not_load_what_only_builds_need() -> None:
    code = "import sys, precompute.live.engine; print('precompute.build.job' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "False\n"
