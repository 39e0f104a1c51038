"""A tab of a system Chromium: where it is, what went wrong in it, and what must hold for the page it shows."""

import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TypeAlias

from axe_playwright_python.sync_playwright import Axe  # type: ignore[import-untyped]
from playwright.sync_api import Browser, ConsoleMessage, Page, sync_playwright

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")


@contextmanager
def chromium() -> Iterator[Browser]:
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        try:
            yield browser
        finally:
            browser.close()


class Tab:
    def __init__(self, page: Page, address: str) -> None:
        self.page = page
        self.complaints: list[str] = []
        self._address = address
        page.on("console", self._heard)
        page.on("pageerror", lambda error: self.complaints.append(str(error)))

    def go(self, path: str) -> Page:
        self.page.goto(self._address + path)
        return self.page

    @property
    def path(self) -> str:
        return self.page.url.removeprefix(self._address)

    def settle(self, path: str) -> None:
        """Wait until this path is shown, and htmx has put the page in its place."""
        self.page.wait_for_url(self._address + path)
        self.page.wait_for_function("where => document.querySelector('main').dataset.canonical === where", arg=path)

    def _heard(self, message: ConsoleMessage) -> None:
        expected = ("status of 404", "AbortError")  # pages that should be missing; suggestions overtaken by newer ones
        if message.type in ("error", "warning") and not any(text in message.text for text in expected):
            self.complaints.append(message.text)


OpenTab: TypeAlias = Callable[..., Tab]  # the fixture `visit`


# Rules of axe that another width or other colours can break; the others look at the document, which stays the same.
RULES_OF_STYLE = ["color-contrast", "link-in-text-block", "scrollable-region-focusable"]


def check_with_axe(page: Page, rules: list[str] | None = None) -> None:
    """Fail with a list of what axe finds on the page, however slight, by these rules or by all of them."""
    only = {"runOnly": {"type": "rule", "values": rules}} if rules else {}
    violations = Axe().run(page, options={"resultTypes": ["violations"], **only}).response["violations"]
    found = [
        f"{violation['id']}: {node['html'][:200]}: {node['failureSummary'][:300]}"
        for violation in violations
        for node in violation["nodes"][:3]
    ]
    assert not found, "\n".join([f"axe found on {page.url}:", *found])


def check_in_light_and_dark(page: Page) -> None:
    """Check the page with axe in light colours on a wide screen, then in dark colours on a phone."""
    check_with_axe(page)
    page.set_viewport_size({"width": 360, "height": 740})
    page.emulate_media(color_scheme="dark", reduced_motion="reduce")  # colours change at once
    width = page.evaluate("document.documentElement.scrollWidth")
    assert width <= 360, f"{page.url} is {width} pixels wide on a phone"
    check_with_axe(page, RULES_OF_STYLE)
