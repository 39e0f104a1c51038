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
STARTING = 60_000  # milliseconds that a worker may take


@pytest.fixture
def start_worker(site_data: Path) -> Iterator[tuple[int, Callable[[], None]]]:
    """A port at which no worker is, and what starts one there."""
    with ExitStack() as started:
        with socket.create_server(("127.0.0.1", 0)) as free:
            port = free.getsockname()[1]
        words = ["worker", "--model", LLAMA, "--data", str(site_data), "--port", str(port)]

        def start() -> None:
            started.enter_context(running(*words))

        yield port, start


@pytest.mark.parametrize("script", [True, False])
def test_a_page_without_its_worker_comes_again_until_it_is_there(
    browser: Browser, site_data: Path, start_worker: tuple[int, Callable[[], None]], script: bool
) -> None:
    """With script it is swapped in and tries again by a timer, and keeps its #fragment; opened cold, by what its head
    says, from an address with a #fragment, too."""
    port, start = start_worker
    with serving("--data", site_data, LEXISCOPE_WORKER_URL=f"http://127.0.0.1:{port}") as (_, address):
        context = browser.new_context(java_script_enabled=script)
        page = context.new_page()
        tab = Tab(page, address)
        if script:
            tab.go(f"/{LLAMA}/seeds")
            page.get_by_label("Words").fill("dog,lion")
            page.get_by_role("button", name="Find").click()
        else:
            tab.go(f"{PATH}#main")
        expect(page.get_by_text("This page tries again by itself in")).to_be_visible()
        expect(page.get_by_role("heading", level=1)).to_contain_text("503")
        if script:
            page.evaluate("location.hash = 'main'")
        start()
        expect(page.get_by_role("heading", level=1)).to_contain_text("dog,lion", timeout=STARTING)
        expect(page.get_by_role("region", name="Vectors by score")).to_be_visible()
        assert unquote(tab.path) == (f"{PATH}#main" if script else PATH)
        assert all("503" in complaint for complaint in tab.complaints)
        context.close()
