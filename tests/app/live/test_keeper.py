"""What visitors are told of a worker that ended."""

import pytest

from lexiscope.app.live.keeper import without_folders


@pytest.mark.parametrize(("text", "told"), [
    ("There is no folder or file '/home/somebody/models/mine'.", "There is no folder or file 'mine'."),
    ("/data/gpt2/layer-1.safetensors is damaged; see http://host/a/b", "layer-1.safetensors is damaged; see http://host/a/b"),
    ("2 / 3 of ./here and a/b stay", "2 / 3 of ./here and a/b stay"),
])  # fmt: skip
def test_without_folders(text: str, told: str) -> None:
    assert without_folders(text) == told
