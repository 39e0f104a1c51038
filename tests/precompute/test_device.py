"""Which device is used, and what is said of one that cannot be."""

import pytest
import torch

from lexiscope.precompute.device import pick_device
from lexiscope.precompute.errors import BuildError


@pytest.mark.parametrize("device", ["hpu", "nonsense", "meta", "cuda:77", ""])
def test_devices_that_cannot_be_used(device: str) -> None:
    with pytest.raises(BuildError, match="try auto or cpu"):
        pick_device(device)


def test_the_one_that_is_here() -> None:
    assert pick_device("cpu") == torch.device("cpu")
    assert pick_device("auto").type == ("cuda" if torch.cuda.is_available() else "cpu")
