"""A page begins with its words: few others stand before the first row, which is on the first screen and near by Tab."""

import pytest

from tests.browser.first_rows import SCREENS, kinds_of_pages, measure
from tests.browser.tabs import OpenTab
from tests.support.site import LLAMA, SCRIPT, TEXT

PAGES = kinds_of_pages(LLAMA, "1/2/3", SCRIPT, "dog,lion", "lion>here", TEXT)


@pytest.mark.parametrize("width", SCREENS)
@pytest.mark.parametrize("kind", PAGES)
def test_first_row(visit: OpenTab, kind: str, width: int) -> None:
    page = visit(viewport={"width": width, "height": SCREENS[width][0]}).go(PAGES[kind])
    assert measure(page).beyond(width) == []
