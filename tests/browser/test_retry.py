"""A live page whose worker is not there yet: it tries again by itself, and ends on the answer."""

import socket
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from urllib.parse import unquote

import pytest
from playwright.sync_api import Browser, expect

from tests.browser.tabs import Tab
from tests.support.processes import running, serving
from tests.support.site import LLAMA

PATH = f"/{LLAMA}/seeds?words=dog,lion"


@pytest.fixture
def start_worker(site_data: Path) -> Iterator[tuple[int, Callable[[], None]]]:
    """Return a port at which nothing listens, and a function that starts a worker there."""
    with ExitStack() as started:
        with socket.create_server(("127.0.0.1", 0)) as free:
            port = free.getsockname()[1]
        words = ["worker", "--model", LLAMA, "--data", str(site_data), "--port", str(port)]

        def start() -> None:
            started.enter_context(running(*words))

        yield port, start


def test_pages_without_their_worker_come_again_until_it_is_there(
    browser: Browser, site_data: Path, start_worker: tuple[int, Callable[[], None]]
) -> None:
    """With script, the page is swapped in, tries again by a timer, and keeps its #fragment. Without, it was opened from
    an address with a #fragment, and tries again by what its head says."""
    port, start = start_worker
    with serving("--data", site_data, LEXISCOPE_WORKER_URL=f"http://127.0.0.1:{port}") as (_, address):
        with_script, without = (
            Tab(browser.new_context(java_script_enabled=script).new_page(), address) for script in (True, False)
        )
        page = with_script.go(f"/{LLAMA}/seeds")
        page.get_by_label("Words").fill("dog,lion")
        page.get_by_role("button", name="Find").click()
        without.go(f"{PATH}#main")
        for tab in (with_script, without):
            expect(tab.page.get_by_text("This page tries again by itself in")).to_be_visible()
            expect(tab.page.get_by_role("heading", level=1)).to_contain_text("503")
        page.evaluate("location.hash = 'main'")
        start()
        for tab, path in ((with_script, f"{PATH}#main"), (without, PATH)):
            expect(tab.page.get_by_role("heading", level=1)).to_contain_text("dog,lion")
            expect(tab.page.get_by_role("region", name="Vectors by score")).to_be_visible()
            assert unquote(tab.path) == path
            assert all("503" in complaint for complaint in tab.complaints)
            tab.page.context.close()
