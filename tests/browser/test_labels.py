"""Labels in a real browser: found by their words, read on a page, copied from one; also without script."""

import json

from playwright.sync_api import expect

from tests.browser.tabs import OpenTab, check_in_light_and_dark
from tests.support.site import LLAMA
from tests.support.site_labels import HOSTILE


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


def test_hostile_text_stays_text(visit: OpenTab) -> None:
    page = visit().go(f"/{LLAMA}/head/1/2/vo")
    expect(page.locator("section.labels h3").nth(1)).to_contain_text(HOSTILE)
    assert page.locator("main script, main img").count() == 0


def test_copy_as_label(visit: OpenTab) -> None:
    page = visit(permissions=["clipboard-read", "clipboard-write"]).go(f"/{LLAMA}/head/1/2/qk?lens=cosine")
    page.get_by_text("Copy as label").click()
    check_in_light_and_dark(page)
    page.get_by_role("link", name="Copy JSON").click()
    expect(page.get_by_role("status")).to_contain_text("Copied")
    (label,) = json.loads(page.evaluate("navigator.clipboard.readText()"))
    assert (label["address"], label["lens"], len(label["pairs"])) == (f"{LLAMA}/qk/1/2", "cosine", 10)


def test_without_script(visit: OpenTab) -> None:
    page = visit(java_script_enabled=False).go(f"/{LLAMA}/search?q=greyhounds")
    page.locator("section[aria-labelledby=labels]").get_by_role("link", name="L1N3").click()
    expect(page.locator("section.labels h3")).to_contain_text("Kennels")
    page.get_by_text("Copy as label").click()
    expect(page.locator("#label-json")).to_contain_text(f'"address": "{LLAMA}/ff/1/3"')
