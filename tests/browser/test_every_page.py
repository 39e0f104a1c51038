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
PAIRS_ON_A_CARD = """card => {
  const [from, to] = document.querySelectorAll(".t");
  const pair = `<span class="pair">${from.outerHTML}<b>→</b>${to.outerHTML}</span> `;
  card.innerHTML = `<a href="#">L1H2 VO</a> <span class="num">0.99</span> <span>${pair.repeat(3)}</span>`;
}"""


SHORTER = """() => {
  for (const kind of ["p", "schema-"])
    [...document.querySelectorAll(`section.endpoint[id^=${kind}]`)].slice(6).forEach(section => section.remove());
}"""


@pytest.mark.parametrize("path", PAGES.values(), ids=PAGES)
def test_page(visit: OpenTab, path: str) -> None:
    page = visit(color_scheme="light", viewport={"width": 1280, "height": 900}).go(path)
    assert page.evaluate(SHIFTS) < 0.01
    page.evaluate(SHORTER)  # the API's page has a hundred sections of one template, which take axe half a minute
    check_in_light_and_dark(page)


def test_long_words_fit_on_a_phone(visit: OpenTab) -> None:
    """The small models have no head that reads well and short tokens: a head's pairs are put on its card, and words as
    long as those of real models into them."""
    page = visit(viewport={"width": 360, "height": 740}).go(f"/{GPT2}")
    page.locator(".cards .none").first.evaluate(PAIRS_ON_A_CARD)
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
