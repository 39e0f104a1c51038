"""Long texts in addresses: packed and unpacked they are the same, damaged ones are refused."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lexiscope.app.urls import MOST_UNPACKED_BYTES, pack, unpack
from lexiscope.precompute.errors import BadRequest


@given(st.text(st.characters(codec="utf-8", exclude_characters="\0")))
def test_there_and_back(text: str) -> None:
    packed = pack(text)
    assert unpack(packed) == text
    assert packed.replace("-", "").replace("_", "").isalnum() or packed == ""


@pytest.mark.parametrize("damaged", [
    "", "x", "!!!", "é", pack("a long text")[:-3], pack("a\0b"), pack("\xff" * 9)[:5] + "AAAA",
])  # fmt: skip
def test_what_is_damaged_is_refused(damaged: str) -> None:
    with pytest.raises(BadRequest, match="damaged"):
        unpack(damaged)


def test_what_is_too_long_is_refused() -> None:
    assert unpack(pack("a" * MOST_UNPACKED_BYTES)) == "a" * MOST_UNPACKED_BYTES
    with pytest.raises(BadRequest, match=f"more than {MOST_UNPACKED_BYTES} bytes"):
        unpack(pack("a" * (MOST_UNPACKED_BYTES + 1)))
