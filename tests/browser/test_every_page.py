"""What must hold on every page: no complaint from the browser, nothing that shuts people out, no sideways scrolling."""

import pytest

from tests.browser.tabs import OpenTab, check_in_light_and_dark
from tests.support.site import GPT2, LLAMA, PAGES

SHIFTS = """() => new Promise(done => {
  let sum = 0;
  new PerformanceObserver(list => list.getEntries().forEach(entry => { sum += entry.value; }))
    .observe({type: "layout-shift", buffered: true});
  setTimeout(() => done(sum), 100);
})"""


@pytest.mark.parametrize("path", PAGES.values(), ids=PAGES)
def test_page(visit: OpenTab, path: str) -> None:
    page = visit(color_scheme="light", viewport={"width": 1280, "height": 900}).go(path)
    assert page.evaluate(SHIFTS) < 0.01
    check_in_light_and_dark(page)


def test_long_words_fit_on_a_phone(visit: OpenTab) -> None:
    """The tokens of the small indexes are short: words as long as those of real models are put in their place."""
    page = visit(viewport={"width": 360, "height": 740}).go(f"/{GPT2}")
    assert page.locator(".cards .pair").count()
    page.evaluate("document.querySelectorAll('.cards bdi').forEach(chip => { chip.textContent = '␣consequently'; })")
    assert page.evaluate("document.documentElement.scrollWidth") <= 360


@pytest.mark.parametrize(("width", "lines"), [(1200, 1), (360, 2)])
def test_a_long_word_in_a_list_is_cut_where_a_title_can_tell_it(visit: OpenTab, width: int, lines: int) -> None:
    """Rows of neighbouring lists line up; on a phone, where nothing hovers, the whole token is there."""
    page = visit(viewport={"width": width, "height": 900}).go(f"/{LLAMA}/ff/0/5")
    chip = page.locator(".list .t").first
    low = chip.bounding_box()
    chip.locator("bdi").evaluate("bdi => { bdi.textContent = '␣characterised-as-such'; }")
    high = chip.bounding_box()
    assert low
    assert high
    assert (high["height"] > 1.5 * low["height"]) is (lines > 1)
