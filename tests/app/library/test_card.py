"""What people call an architecture."""

from dataclasses import replace

import pytest

from lexiscope.app.library.card import architecture_name
from lexiscope.precompute.shape import Shape

SHAPE = Shape("gpt2", 2, 4, 4, 32, 8, 48, 99, gated=False, tied=True, positions="learned")


@pytest.mark.parametrize(("architecture", "stored", "said"), [
    ("gpt2", "", "GPT-2"),
    ("llama", "", "Llama"),
    ("something", "", "something"),
    ("gpt2", "Another name", "Another name"),
])  # fmt: skip
def test_what_the_index_says_or_what_older_ones_can_be(architecture: str, stored: str, said: str) -> None:
    assert architecture_name(replace(SHAPE, architecture=architecture, name=stored)) == said
