"""The page of the paper's lists in a browser: axe finds nothing, on a phone and in the dark; it needs no JavaScript."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.browser.tabs import OpenTab, check_in_light_and_dark
from tests.support import planted
from tests.support.processes import serving

PAGE = f"/{planted.PLANTED}/paper"
PAGES = {
    "overview": PAGE,
    "pairs": f"{PAGE}?list=vo/16/6",
    "tokens": f"{PAGE}?list=ff/16/41",
}


@pytest.fixture(scope="module")
def address(paper_data: Path) -> Iterator[str]:
    with serving("--data", paper_data) as (_, url):
        yield url


@pytest.mark.parametrize("path", PAGES.values(), ids=PAGES)
def test_page(visit: OpenTab, path: str) -> None:
    check_in_light_and_dark(visit(color_scheme="light", viewport={"width": 1280, "height": 900}).go(path))


def test_without_javascript(visit: OpenTab) -> None:
    page = visit(java_script_enabled=False).go(PAGE)
    page.get_by_role("link", name="vo/16/2").click()
    assert page.locator("td.n > b").count() >= planted.D_HEAD
