"""What visitors are told of faults holds no folder of the machine."""

from pathlib import Path

import pytest

from lexiscope.app.library.fault_text import for_visitors, without_folders


@pytest.mark.parametrize(("text", "told"), [
    ("There is no folder or file '/home/somebody/models/mine'.", "There is no folder or file 'mine'."),
    ("/data/gpt2/layer-1.safetensors is damaged; see http://host/a/b", "layer-1.safetensors is damaged; see http://host/a/b"),
    ("2 / 3 of ./here and a/b stay", "2 / 3 of ./here and a/b stay"),
])  # fmt: skip
def test_without_folders(text: str, told: str) -> None:
    assert without_folders(text) == told


def test_for_visitors() -> None:
    assert for_visitors("/data/gpt2/layer-1 is damaged", Path("/data")) == "gpt2/layer-1 is damaged"
