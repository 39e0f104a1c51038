"""Going about in a real browser: links and history, keys, search, copying, the dark; and the same without script."""

import json
import re
from collections.abc import Sequence
from pathlib import Path

import pytest
from playwright.sync_api import Browser, expect

from lexiscope.app.settings import Settings
from lexiscope.app.site.server import create_app
from tests.browser.tabs import OpenTab, Tab, check_in_light_and_dark
from tests.support.site import GPT2, LLAMA
from tests.support.synthetic import add_layer, make_manifest, write_index
from tests.support.workers import listening


def test_home_to_a_pair_and_back(visit: OpenTab) -> None:
    tab = visit()
    page = tab.go("/")
    page.evaluate("window.same = true")  # lives as long as no new document is loaded
    page.locator("#models").get_by_role("link", name=LLAMA).click()
    tab.settle(f"/{LLAMA}?lens=cosine")
    page.get_by_role("table", name="VO").locator("tbody a").first.click()
    tab.settle(f"/{LLAMA}/head/1/0?lens=cosine")
    expect(page).to_have_title(re.compile(r"Head L1H0"))
    page.locator("section[aria-labelledby=vo] caption a").first.click()
    tab.settle(f"/{LLAMA}/head/1/0/vo?lens=cosine&preset=words")
    expect(page).to_have_title(re.compile(r"VO of head L1H0"))
    expect(page.get_by_role("columnheader", name="reads")).to_have_count(2)
    assert page.evaluate("document.activeElement.id") == "main"
    page.locator("main table a.t").first.click()
    page.wait_for_url(re.compile("/token/"))
    page.go_back()
    tab.settle(f"/{LLAMA}/head/1/0/vo?lens=cosine&preset=words")
    page.go_back()
    tab.settle(f"/{LLAMA}/head/1/0?lens=cosine")
    page.go_back()
    tab.settle(f"/{LLAMA}?lens=cosine")
    expect(page.get_by_role("heading", level=1)).to_have_text(LLAMA)
    page.go_back()
    tab.settle("/")
    page.go_forward()
    tab.settle(f"/{LLAMA}?lens=cosine")
    expect(page.locator("header.bar")).to_have_count(1)
    assert page.evaluate("window.same")


def test_a_head_leads_to_its_directions(visit: OpenTab) -> None:
    """By its table, by the keys, and by a name in the search; on a phone the table scrolls, and not the page."""
    tab = visit(viewport={"width": 360, "height": 740})
    page = tab.go(f"/{LLAMA}/head/1/2?lens=cosine")
    assert page.evaluate("document.documentElement.scrollWidth") <= 360
    page.get_by_role("table", name="Directions of VO").locator("tbody th a").first.click()
    tab.settle(f"/{LLAMA}/head/1/2/svd/0?lens=cosine")
    expect(page).to_have_title(re.compile(r"Direction L1H2\.svd0"))
    page.keyboard.press("]")
    tab.settle(f"/{LLAMA}/head/1/2/svd/1?lens=cosine")
    page.keyboard.press("[")
    tab.settle(f"/{LLAMA}/head/1/2/svd/0?lens=cosine")
    page.get_by_role("combobox").fill("L1H2.svd3")
    page.keyboard.press("Enter")
    tab.settle(f"/{LLAMA}/head/1/2/svd/3?lens=cosine")


def test_a_row_leads_to_its_row(visit: OpenTab) -> None:
    """Marked, whether the page was swapped in or is opened cold."""
    tab = visit()
    page = tab.go(f"/{LLAMA}/token/300?kind=ff_key")
    link = page.locator("table.places td:nth-child(2) a").last
    address = link.get_attribute("href") or ""
    row = address.partition("#")[2]
    link.click()
    expect(page.locator("tr.target")).to_have_id(row)
    expect(page.locator("tr.target")).to_be_in_viewport()
    cold = visit().go(address)
    expect(cold.locator("tr:target")).to_have_id(row)
    expect(cold.locator("tr:target")).to_be_in_viewport()


def test_a_rank_is_a_link_to_its_row(visit: OpenTab) -> None:
    """By mouse and by key; the Tab key goes from token to token. After a swap the row of before is not marked."""
    tab = visit()
    page = tab.go(f"/{LLAMA}/head/1/2?lens=cosine")
    page.locator("section[aria-labelledby=vo] caption a").first.click()
    tab.settle(f"/{LLAMA}/head/1/2/vo?lens=cosine&preset=words")
    page.evaluate("window.same = true")
    rows = page.locator("table.top tbody tr")
    for row, key in ((rows.nth(2), ""), (rows.nth(3), "#")):
        if key:
            page.keyboard.press("j")  # from the second row, as the third one's rank had no focus of a chip
            row.locator("a.t").first.focus()
            page.keyboard.press(key)
        else:
            row.get_by_role("link", name="Link to row 3").click()
        page.wait_for_url(re.compile(f"#{row.get_attribute('id')}$"))
        expect(page.locator("tr:target, tr.target")).to_have_id(row.get_attribute("id") or "")
    assert page.evaluate("window.same")
    rows.nth(0).locator("a.t").last.focus()
    page.keyboard.press("Tab")
    expect(rows.nth(1).locator("a.t").first).to_be_focused()


def test_home_leads_on_with_the_model_that_was_read_last(visit: OpenTab) -> None:
    tab = visit()
    page = tab.go("/")
    expect(page.get_by_text("Go on with")).to_be_hidden()
    expect(page.get_by_placeholder(f"Search {LLAMA}")).to_be_visible()
    tab.go(f"/{GPT2}/ff/1/3?lens=cosine")
    tab.go(f"/{GPT2}/ff/1/999999")  # an error is not gone on with
    tab.go("/")
    expect(page.locator("#go-on a")).to_have_attribute("href", f"/{GPT2}/ff/1/3?lens=cosine")
    buttons = page.locator(".search.big button")
    expect(buttons.first).to_have_attribute("formaction", f"/{GPT2}/search")
    expect(buttons.nth(1)).to_have_text(LLAMA)
    page.get_by_placeholder(f"Search {GPT2}").fill("dog")
    expect(page.get_by_role("option").first).to_have_attribute("href", re.compile(f"^/{GPT2}/"))
    page.keyboard.press("Enter")
    tab.settle(f"/{GPT2}/search?q=dog&lens=cosine")
    for kept in ("{", "null", '"x"', "[1]", '["/%zz", ""]', f'["javascript:/{GPT2}/", ""]', f'["//{GPT2}/", ""]'):
        page.evaluate("kept => localStorage.setItem('lexiscope.page', kept)", kept)
        tab.go("/")
        expect(page.locator("#go-on")).to_be_hidden()


def test_the_lens_chosen_last_is_that_of_links_of_entry(visit: OpenTab) -> None:
    tab = visit()
    page = tab.go(f"/{LLAMA}/head/1/2?lens=cosine")
    page.get_by_role("group", name="Lens").get_by_role("link", name="dot").click()
    tab.settle(f"/{LLAMA}/head/1/2")
    tab.go("/")  # where the server's own choice is cosine
    page.locator("#q").fill("dog")
    expect(page.get_by_role("option").first).to_have_attribute("href", re.compile("/token/[0-9]+$"))
    page.keyboard.press("Enter")
    tab.settle(f"/{LLAMA}/search?q=dog")
    tab.go("/")
    page.locator("#models").get_by_role("link", name=LLAMA, exact=True).click()
    tab.settle(f"/{LLAMA}")
    tab.go(f"/{LLAMA}?lens=cosine")  # an address decides by itself, and so does what is copied of it
    expect(page.get_by_role("group", name="Lens").locator("[aria-current]")).to_have_text("cosine")
    expect(page.locator("[data-copy=link]").first).to_have_attribute("href", re.compile("lens=cosine"))
    expect(page.locator("main .cards a").first).to_have_attribute("href", re.compile("lens=cosine"))
    page.get_by_role("table", name="VO").locator("tbody a").first.click()
    tab.settle(f"/{LLAMA}/head/1/0")


def test_search_with_the_keyboard(visit: OpenTab) -> None:
    tab = visit()
    page = tab.go(f"/{LLAMA}")
    page.keyboard.press("/")
    expect(page.locator("#q")).to_be_focused()
    page.keyboard.type("dog")
    options = page.get_by_role("option")
    expect(options.first).to_be_visible()
    expect(page.locator("#q")).to_have_attribute("aria-expanded", "true")
    first = options.first.get_attribute("href")
    assert first
    page.keyboard.press("ArrowDown")
    expect(options.first).to_have_attribute("aria-selected", "true")
    page.keyboard.press("Enter")
    tab.settle(first)
    page.keyboard.press("/")
    page.keyboard.type("horse")
    page.keyboard.press("Enter")
    tab.settle(f"/{LLAMA}/search?q=horse")
    expect(page.get_by_role("heading", name="Tokens")).to_be_visible()
    expect(page.locator("#suggestions")).to_be_hidden()
    page.keyboard.press("/")
    page.keyboard.type("L1H2.5")
    page.keyboard.press("Enter")
    tab.settle(f"/{LLAMA}/head/1/2/sub/5")
    page.keyboard.press("/")
    page.keyboard.type("lion")
    expect(page.get_by_role("option").first).to_be_visible()
    page.keyboard.press("Escape")
    expect(page.locator("#suggestions")).to_be_hidden()


@pytest.mark.parametrize(
    ("start", "keys", "end"),
    [
        (f"/{LLAMA}/ff/1/3?lens=cosine", "[", f"/{LLAMA}/ff/1/2?lens=cosine"),
        (f"/{LLAMA}/head/1/2/vo", "l", f"/{LLAMA}/head/1/2/vo?lens=cosine"),
        (f"/{LLAMA}/head/1/2", "?", "/-/help"),
        (f"/{LLAMA}/head/1/2", ("Control+k", *"L1N3", "Enter"), f"/{LLAMA}/ff/1/3"),
        (f"/{GPT2}/layer/1?sort=-neuron", "]", f"/{GPT2}/layer/1?sort=-neuron&page=2"),
    ],
)
def test_keys(visit: OpenTab, start: str, keys: Sequence[str], end: str) -> None:
    tab = visit()
    page = tab.go(start)
    for key in keys:
        page.keyboard.press(key)
    tab.settle(end)


def test_switches_are_one_stop_and_a_menu_closes_by_escape(visit: OpenTab) -> None:
    """Arrows go among the switches, Tab leaves them; what is in a menu is reached when it is open."""
    page = visit().go(f"/{LLAMA}/ff/1/3?k=8")
    tools = page.get_by_role("toolbar").first
    tools.locator("a").first.focus()
    page.keyboard.press("ArrowLeft")
    share = tools.get_by_text("Share", exact=True)
    expect(share).to_be_focused()
    page.keyboard.press("Enter")
    page.keyboard.press("Tab")
    expect(tools.get_by_role("link", name="Copy link", exact=True)).to_be_focused()
    page.keyboard.press("Escape")
    expect(share).to_be_focused()
    expect(tools.get_by_role("link", name="Copy link", exact=True)).to_be_hidden()
    page.keyboard.press("Tab")
    assert not page.evaluate("document.activeElement.closest('.tools')")


def test_rows_and_chance(visit: OpenTab) -> None:
    page = visit().go(f"/{LLAMA}/layer/1")
    for key in "jjk":
        page.keyboard.press(key)
    expect(page.locator(".neurons tbody tr:nth-child(1) th a")).to_be_focused()  # rows in a closed fold are passed by
    page.keyboard.press("Enter")
    page.wait_for_url(re.compile(f"/{LLAMA}/ff/1/0$"))
    page.keyboard.press("r")
    expect(page).to_have_url(re.compile(rf"/{LLAMA}/ff/\d+/\d+$"))


@pytest.mark.parametrize(
    ("button", "expected"),
    [("link", "/head/1/2/vo"), ("link to this build", "build="), ("Markdown", "| reads"), ("CSV", ",")],
)
def test_copying(visit: OpenTab, button: str, expected: str) -> None:
    page = visit(permissions=["clipboard-read", "clipboard-write"]).go(f"/{LLAMA}/head/1/2/vo?preset=distinct")
    page.get_by_text("Share", exact=True).click()
    page.get_by_role("link", name=f"Copy {button}", exact=True).click()
    expect(page.get_by_role("status")).to_contain_text(f"Copied {button}")
    copied = page.evaluate("navigator.clipboard.readText()")
    assert expected in copied
    if button == "link":
        assert copied == page.url


def test_dark(visit: OpenTab) -> None:
    def background(scheme: str) -> list[int]:
        page = visit(color_scheme=scheme).go(f"/{LLAMA}/ff/1/3")
        said = page.evaluate("getComputedStyle(document.body).backgroundColor")
        return [int(part) for part in re.findall(r"\d+", said)]

    assert min(background("light")) > 200
    assert max(background("dark")) < 60


def test_the_theme_that_is_chosen_holds_on_every_page_and_from_the_first_paint(visit: OpenTab) -> None:
    page = visit(color_scheme="dark").go(f"/{LLAMA}/lab")
    painted = "getComputedStyle(document.body).backgroundColor"
    dark, switch = page.evaluate(painted), page.get_by_role("button", name="Theme")
    menu = page.get_by_text("Menu", exact=True)
    menu.click()
    switch.click()
    light = page.evaluate(painted)
    assert light != dark
    page.locator(".crumbs a").first.click()
    expect(page.locator("html[data-theme=light]")).to_have_count(1)
    # what is asked for before the first paint is theme.js alone
    page.route("**/lexiscope.js*", lambda route: route.fulfill(body="", content_type="text/javascript"))
    page.reload()
    assert page.evaluate(painted) == light
    page.unroute("**/lexiscope.js*")
    page.reload()
    menu.click()
    switch.click()
    switch.click()
    assert page.evaluate("document.documentElement.dataset.theme") == "auto"
    page.emulate_media(color_scheme="light")
    assert page.evaluate(painted) == light


def test_a_missing_page_says_so_and_leads_on(visit: OpenTab) -> None:
    tab = visit()
    page = tab.go(f"/{GPT2}/layer/1")
    page.evaluate("document.querySelector('.crumbs a').setAttribute('href', '/nothing/here')")
    page.locator(".crumbs a").first.click()
    expect(page.get_by_role("heading", level=1)).to_contain_text("404")
    page.get_by_role("link", name="All models").click()
    tab.settle("/")


def test_a_new_model_appears_by_itself(visit: OpenTab) -> None:
    tab = visit()
    page = tab.go("/")  # of the first model a layer is not built, so the table keeps asking
    with page.expect_response(lambda answer: answer.request.headers.get("hx-source") == "section#models"):
        pass
    expect(page.locator("#models progress")).to_have_count(3)


def test_the_page_of_a_model_that_is_built_follows_the_build(browser: Browser, tmp_path: Path) -> None:
    manifest = write_index(tmp_path / "tiny", make_manifest(), layers=(3,))
    with listening(create_app(Settings(data=tmp_path, worker="off", refresh=0))) as address:
        tab = Tab(browser.new_context().new_page(), address)
        page = tab.go("/tiny?lens=cosine")
        rows = page.locator("#maps table").first.locator("tbody tr")
        expect(rows).to_have_count(1)
        add_layer(tmp_path / "tiny", manifest, 2).save(tmp_path / "tiny")
        expect(page.locator("#building")).to_contain_text(": 2-3. Not built yet:")
        expect(rows).to_have_count(2)
        tab.page.context.close()
        assert tab.complaints == []


def test_without_script(visit: OpenTab) -> None:
    tab = visit(java_script_enabled=False)
    page = tab.go("/")
    expect(page.get_by_role("button", name="Theme")).to_be_hidden()
    page.get_by_role("combobox").fill("dog")
    page.get_by_role("button", name="Search", exact=True).click()
    assert tab.path == f"/{LLAMA}/search?q=dog&lens=cosine"
    page.locator("#matches, #tokens").first.wait_for()
    page.get_by_role("combobox").fill("1.2")
    page.get_by_role("button", name="Search").click()
    assert tab.path == f"/{LLAMA}/head/1/2?lens=cosine"
    page.get_by_role("table", name="Directions of QK").locator("tbody th a").first.click()
    assert tab.path == f"/{LLAMA}/head/1/2/svd/0?lens=cosine"
    tab.go(f"/{GPT2}/layer/1")
    page.get_by_role("columnheader", name="coherence").get_by_role("link").click()
    assert tab.path == f"/{GPT2}/layer/1?sort=coherence"
    expect(page.get_by_role("columnheader", name="coherence")).to_have_attribute("aria-sort", "descending")
    page.get_by_role("navigation", name="Pages").get_by_role("link", name="next").click()
    assert tab.path == f"/{GPT2}/layer/1?sort=coherence&page=2"
    page.get_by_text("Share", exact=True).click()
    page.get_by_role("link", name="JSON").click()
    assert tab.path == f"/{GPT2}/layer/1.json?sort=coherence&page=2"


def test_search_to_a_label_and_all_others(visit: OpenTab) -> None:
    tab = visit()
    page = tab.go(f"/{LLAMA}")
    page.get_by_role("combobox").fill("greyhounds kennels")
    page.get_by_role("button", name="Search").click()
    labels = page.locator("section[aria-labelledby=labels]")
    expect(labels.get_by_role("listitem")).to_have_count(1)
    labels.get_by_role("link", name="L1N3").click()
    tab.settle(f"/{LLAMA}/ff/1/3")
    labels = page.locator("section.labels")
    expect(labels.get_by_role("heading", level=3)).to_contain_text("Kennels & stables")
    expect(labels.get_by_role("link", name="A. Reader")).to_have_attribute("href", "https://example.org/notes?a=1&b=2")
    labels.get_by_text("Its 2 tokens", exact=True).click()
    expect(labels.locator(".entries li")).to_have_count(2)
    check_in_light_and_dark(page)
    labels.get_by_role("link", name=f"all of {LLAMA}").click()
    tab.settle(f"/{LLAMA}/labels")
    expect(page.locator("tbody tr")).to_have_count(6)


def test_copy_as_label(visit: OpenTab) -> None:
    page = visit(permissions=["clipboard-read", "clipboard-write"]).go(f"/{LLAMA}/head/1/2/qk?lens=cosine")
    page.get_by_text("Copy as label").click()
    check_in_light_and_dark(page)
    page.get_by_role("link", name="Copy JSON").click()
    expect(page.get_by_role("status")).to_contain_text("Copied")
    (label,) = json.loads(page.evaluate("navigator.clipboard.readText()"))
    assert (label["address"], label["lens"], len(label["pairs"])) == (f"{LLAMA}/qk/1/2", "cosine", 10)
