"""Previews: what a link leads to, in words, by mouse and by key; a finger sees none, and nothing moves."""

import pytest
from playwright.sync_api import expect

from tests.browser.tabs import OpenTab, check_in_light_and_dark
from tests.support.site import GPT2, LLAMA


@pytest.mark.parametrize(
    ("start", "link", "rows", "asked"),
    [
        (f"/{LLAMA}/layer/1", "table.neurons tbody th a", ["key", "value", "up"], "/ff/1/0.json"),
        (f"/{LLAMA}?lens=cosine", ".map td a", ["vo", "qk"], "/head/"),
        (f"/{LLAMA}/head/1/2/vo?k=5", "a.t", ["like it:"], "/token/"),
        (f"/{LLAMA}/head/1/2", "table.subheads tbody th a", ["q", "k", "v", "o"], "/sub/"),
        (f"/{LLAMA}/head/1/2", "table.directions tbody th a", ["in", "out"], "/svd/"),
        (f"/{LLAMA}/head/1/2", "section[aria-labelledby=qk] caption a", ["qk"], "/qk.json"),
    ],
)
def test_a_link_is_previewed_by_mouse_and_by_key(
    visit: OpenTab, start: str, link: str, rows: list[str], asked: str
) -> None:
    """Once it was read it is not asked for again; Escape closes it, and no link loses its title."""
    page = visit().go(start)
    heard: list[str] = []
    page.on("response", lambda answer: heard.append(answer.url) if asked in answer.url else None)
    at, tip = page.locator(f"main {link}").first, page.get_by_role("tooltip")
    at.scroll_into_view_if_needed()
    title, place = at.get_attribute("title"), at.bounding_box()
    at.hover()
    expect(tip).to_be_visible()
    named = tip.locator("p > small").all_inner_texts()
    assert named[: len(rows)] == rows
    assert tip.locator(".t").count()
    assert at.get_attribute("aria-describedby") == tip.get_attribute("id")
    assert at.bounding_box() == place
    assert heard
    assert all(len(page.request.get(address).body()) < 30_000 for address in heard), "matches in other models included"
    page.keyboard.press("Escape")
    expect(tip).to_have_count(0)
    assert at.get_attribute("title") == title
    count = len(heard)
    page.keyboard.press("Shift")  # so that what gets the focus now has it by a key
    at.focus()
    expect(tip).to_be_visible()
    assert len(heard) == count
    page.keyboard.press("Tab")
    expect(at).not_to_have_attribute("aria-describedby", "preview")


def test_a_preview_is_text_and_accessible(visit: OpenTab) -> None:
    page = visit().go(f"/{GPT2}/head/1/2/vo?k=5")
    hostile = {"id": 1, "token": "<img src=x onerror=alert(1)>\u202e\n", "score": 1.0}
    page.route("**/token/**", lambda route: route.fulfill(json={"nearest": [hostile], "roles": []}))
    page.locator("main a.t").first.hover()
    expect(page.get_by_role("tooltip").locator(".t")).to_have_text("<img␣src=x␣onerror=alert(1)>\\u{202e}\\u{a}")
    check_in_light_and_dark(page)


def test_a_finger_opens_no_preview(visit: OpenTab) -> None:
    page = visit(has_touch=True).go(f"/{LLAMA}/layer/1")
    page.evaluate("document.addEventListener('click', (event) => event.preventDefault(), true)")
    page.locator("table.neurons tbody th a").first.tap()
    page.wait_for_timeout(700)
    expect(page.get_by_role("tooltip")).to_have_count(0)
