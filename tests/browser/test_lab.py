"""The paper's measurements in a browser, on a phone and without JavaScript."""

from tests.browser.tabs import OpenTab
from tests.support.site import LLAMA


def test_charts_tables_and_links_without_javascript(visit: OpenTab) -> None:
    tab = visit(java_script_enabled=False, viewport={"width": 360, "height": 740})
    page = tab.go(f"/{LLAMA}/lab?figure=similarity")
    chart = page.locator("svg.chart[role=img]").first
    box = chart.bounding_box()
    assert box
    assert box["x"] >= 0
    assert box["x"] + box["width"] <= 360
    assert page.locator("table.chart-numbers").first.is_visible()
    assert page.locator(".lab-numbers table").first.is_hidden()
    page.locator("summary", has_text="The numbers").click()
    assert page.locator(".lab-numbers table").first.is_visible()
    page.locator("table a").first.click()
    assert tab.path == f"/{LLAMA}/layer/0?sort=similarity"


def test_colours_are_those_of_the_theme_and_places_answer_to_the_pointer(visit: OpenTab) -> None:
    """The attributes of a figure that leaves the site give way to the style sheet of a page."""
    colours = set()
    for scheme in ("light", "dark"):
        page = visit(color_scheme=scheme).go(f"/{LLAMA}/lab?figure=inverse")
        line = page.locator("svg.chart[role=img] g.first path").first
        colours.add(line.evaluate("path => getComputedStyle(path).stroke"))
    assert len(colours) == 2
    place = page.locator("svg.chart[role=img] .there").nth(2)
    place.hover()
    assert place.evaluate("rect => getComputedStyle(rect).fill") != "none"
    assert "the transpose Eᵀ: 0." in (place.locator("title").text_content() or "")
