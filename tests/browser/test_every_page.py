"""What must hold on every page: no complaint from the browser, nothing that shuts people out, no sideways scrolling."""

from collections.abc import Callable
from typing import Any

import pytest
from axe_playwright_python.sync_playwright import Axe  # type: ignore[import-untyped]
from playwright.sync_api import Page

from tests.browser.addresses import PAGES
from tests.browser.visit import Visit

Visitor = Callable[..., Visit]
SHIFTS = """() => new Promise(done => {
  let sum = 0;
  new PerformanceObserver(list => list.getEntries().forEach(entry => { sum += entry.value; }))
    .observe({type: "layout-shift", buffered: true});
  setTimeout(() => done(sum), 100);
})"""


def grave(page: Page, **options: Any) -> list[str]:
    """What axe finds serious or critical."""
    found = Axe().run(page, options={"resultTypes": ["violations"], **options}).response["violations"]
    return [
        f"{each['id']}: {node['html'][:200]}: {node['failureSummary'][:300]}"
        for each in found
        if each["impact"] in ("serious", "critical")
        for node in each["nodes"][:3]
    ]


@pytest.mark.parametrize("path", PAGES.values(), ids=PAGES)
def test_page(visit: Visitor, path: str) -> None:
    page = visit(color_scheme="light", viewport={"width": 1280, "height": 900}).go(path)
    assert page.evaluate(SHIFTS) < 0.01
    assert grave(page) == []
    page.set_viewport_size({"width": 360, "height": 740})
    page.emulate_media(color_scheme="dark")
    assert page.evaluate("document.documentElement.scrollWidth") <= 360
    assert grave(page, runOnly=["color-contrast", "scrollable-region-focusable", "target-size"]) == []
