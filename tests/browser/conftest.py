"""A tab of a real Chromium in front of a real server over the small indexes; what it complains about is collected."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, expect

from lexiscope.app.settings import Settings
from lexiscope.app.site.server import create_app
from tests.browser.tabs import CHROMIUM, OpenTab, Tab, chromium
from tests.support.workers import listening

PATIENCE = 60_000  # milliseconds that a page has to come to show something, on a machine that is busy
expect.set_options(timeout=PATIENCE)


@pytest.fixture(scope="session", autouse=True)
def _chromium_is_here() -> None:
    if CHROMIUM is None:
        pytest.skip("there is no Chromium on the PATH")


@pytest.fixture(scope="session")
def address(site_data: Path, workers: str) -> Iterator[str]:
    """The site with its workers, all in threads of this process."""
    with listening(create_app(Settings(data=site_data, worker_url=workers))) as url:
        yield url


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """A browser for one module: while Playwright runs, no other test of this thread can run an event loop."""
    with chromium() as launched:
        yield launched


@pytest.fixture
def visit(browser: Browser, address: str) -> Iterator[OpenTab]:
    """Open tabs by visit(color_scheme="dark", ...); at the end the browser may have complained of nothing in them."""
    tabs: list[Tab] = []

    def open_tab(**options: Any) -> Tab:
        options.setdefault("reduced_motion", "reduce")  # a colour halfway to another has no contrast worth judging
        context = browser.new_context(**options)
        context.set_default_timeout(PATIENCE)
        tabs.append(Tab(context.new_page(), address))
        return tabs[-1]

    yield open_tab
    for tab in tabs:
        tab.page.context.close()
        assert tab.complaints == []
