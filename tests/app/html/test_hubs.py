"""Which lists a page calls mostly hubs."""

from pathlib import Path
from typing import Any

import pytest

from lexiscope.app.html import hubs
from lexiscope.precompute.index.manifest import Minus
from tests.support.crowded import BYTE, DOG, make

BASE = Minus(tuned="tiny", model="base", source="base", revision="", weights_sha256="0" * 64)


@pytest.mark.parametrize(("of", "most"), [({}, True), ({"minus": BASE}, False)], ids=["a model", "a difference"])
def test_mostly_hubs(tmp_path: Path, of: dict[str, Any], most: bool) -> None:
    index = make(tmp_path / "tiny", {"dot": (DOG, BYTE)}, 0.8, **of)
    entries = [{"id": DOG}, {"id": BYTE}, {"id": 41}]
    with hubs.page_of(index, {}):
        assert hubs.count(entries, "dot") == 2
        assert hubs.are_most(entries, "dot") is most
        assert hubs.crowded([entries, entries[2:]], "dot") == most
    assert not hubs.are_most(entries, "dot")  # of no page
