"""Seeds and prompts in a real browser, with a real worker: with script, which shows how far a run is, and without."""

import re
from contextlib import ExitStack
from pathlib import Path
from urllib.parse import unquote

import pytest
from playwright.sync_api import Browser, Page, expect

from lexiscope.app.settings import Settings
from lexiscope.app.site.server import create_app
from lexiscope.app.worker.loading import load_model
from lexiscope.app.worker.service import create_worker
from tests.browser.tabs import OpenTab, Tab, check_in_light_and_dark
from tests.support.site import GPT2, LLAMA
from tests.support.workers import listening

PROMPT = f"/{LLAMA}/prompt?text=the+dog+and+the+lion"
ALL_PANELS = "evolution,attention,patterns,sheet,updates,neurons,heads,positions,coverage,attribution,sweep"
PAGES = {
    "seeds": f"/{LLAMA}/seeds?words=dog,lion&kind=ff_value,w_o&heads=1&k=8",
    "relation": f"/{LLAMA}/relation?pairs=dog%3Edogs&source=first",
    "heads": f"/{LLAMA}/heads?words=dog,lion%2Bhorse&layers=0-1&k=4&source=norm",
    "prompt-form": f"/{LLAMA}/prompt",
    "prompt": f"/{LLAMA}/prompt?text=the+dog&panel={ALL_PANELS}&against=lion&off=1.3&neurons=1.3,2.7&layer=1&neuron=3",
    "chosen-head": f"/{LLAMA}/prompt?text=the+dog&panel=attention,patterns&layer=1&head=2&convention=exact",
    "sheet": f"/{LLAMA}/prompt?text=the+dog&panel=sheet&layer=1&word=dog&bias=hide",
    "sheet-neurons": f"/{LLAMA}/prompt?text=the+dog&panel=sheet&of=neurons&at=1&least=.5&sort=coefficient",
    "reading": f"/{LLAMA}/ff/1/3?k=8&reading=norm",
    "head-reading": f"/{LLAMA}/head/1/2/qk?k=8&reading=first&side=source",
    "sentence": f"/{GPT2}/vs/{LLAMA}?kind=w_o&text=the+dog&layer=1",
}


@pytest.mark.parametrize("path", PAGES.values(), ids=PAGES)
def test_page(visit: OpenTab, path: str) -> None:
    page = visit(color_scheme="light", viewport={"width": 1280, "height": 900}).go(path)
    check_in_light_and_dark(page)


@pytest.mark.parametrize("script", [True, False])
def test_seeds(visit: OpenTab, script: bool) -> None:
    tab = visit(java_script_enabled=script)
    page = tab.go(f"/{LLAMA}")
    page.get_by_role("navigation", name="Site").get_by_text("Menu").click()
    page.get_by_role("navigation", name="Site").get_by_role("link", name="Seeds").click()
    page.get_by_label("Words", exact=True).fill("dog - lion")
    page.get_by_role("button", name="Find").click()
    expect(page.get_by_role("heading", level=1)).to_contain_text("dog - lion")
    expect(page.get_by_role("columnheader", name="lion")).to_be_visible()
    page.get_by_text("what neurons read, what neurons write").click()
    page.get_by_role("group", name="Kinds").get_by_role("link", name="w_o").click()
    page.wait_for_url(re.compile("kind=ff_key,ff_value,w_o"))
    expect(page.get_by_role("columnheader", name="kind", exact=True)).to_be_visible()
    page.get_by_role("region", name="Vectors found").locator("th a").first.click()
    page.wait_for_url(re.compile("/(ff|head)/"))
    page.go_back()
    expect(page.get_by_label("Words", exact=True)).to_have_value("dog - lion")


@pytest.mark.parametrize("script", [True, False])
def test_a_search_of_several_words_shows_neurons(visit: OpenTab, script: bool) -> None:
    page = visit(java_script_enabled=script).go(f"/{LLAMA}/search?q=dog+lion")
    neurons = page.get_by_role("region", name="Neurons about dog, lion")
    if not script:
        neurons.get_by_role("link", name="Find them").click()
        page.wait_for_url(re.compile(r"seeds\?words=dog,lion&rank=fit"))
        return
    expect(neurons.locator("tbody th a").first).to_be_visible()
    neurons.locator("tbody th a").first.click()
    page.wait_for_url(re.compile("/ff/"))


@pytest.mark.parametrize("script", [True, False])
def test_a_sentence_in_two_models(visit: OpenTab, script: bool) -> None:
    tab = visit(java_script_enabled=script, viewport={"width": 360, "height": 740})
    page = tab.go(f"/{GPT2}/vs/{LLAMA}?kind=w_o")
    page.get_by_role("textbox", name="Sentence").fill("the dog and the lion")
    page.get_by_label("after layer").select_option("1")
    page.get_by_role("button", name="Read").click()
    rows = page.get_by_role("region", name="The sentence in both models").locator("tbody tr")
    expect(rows).to_have_count(5)
    page.wait_for_url(re.compile(r"text=the\+dog\+and\+the\+lion&layer=1&kind=w_o"))
    page.get_by_role("link", name="one later").click()
    page.wait_for_url(re.compile("layer=2"))
    expect(page.get_by_label("after layer")).to_have_value("2")
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")


def ran(page: Page) -> None:
    expect(page.get_by_role("heading", name="the model predicts")).to_be_visible()


@pytest.mark.parametrize("script", [True, False])
def test_a_prompt(visit: OpenTab, script: bool) -> None:
    tab = visit(java_script_enabled=script)
    page = tab.go(f"/{LLAMA}/prompt")
    if script:
        page.evaluate("window.same = true")
    page.get_by_label("Text", exact=True).fill("the dog and the lion")
    if script:
        page.get_by_label("Text", exact=True).press("Control+Enter")
    else:
        page.get_by_role("button", name="Run").click()
    ran(page)
    assert tab.path == PROMPT
    page.get_by_role("navigation", name="Position").get_by_role("link").first.click()
    page.wait_for_url(re.compile("position=0"))
    expect(page.get_by_role("navigation", name="Position").locator("[aria-current]")).to_have_attribute(
        "title", "position 0"
    )
    page.get_by_role("group", name="Panel").get_by_role("link", name="Neurons").click()
    expect(page.get_by_role("table", name="Most active neurons")).to_be_visible()
    page.get_by_role("table", name="Most active neurons").get_by_role("link", name="off").first.click()
    expect(page.get_by_role("heading", name="Without")).to_be_visible()
    assert "off=" in tab.path
    page.get_by_role("link", name="undo").click()
    expect(page.get_by_role("heading", name="Without")).to_be_hidden()
    ran(page)
    assert tab.path == f"{PROMPT}&position=0&panel=neurons"
    page.go_back()
    expect(page.get_by_role("heading", name="Without")).to_be_visible()
    page.go_back()
    expect(page.get_by_role("table", name="Most active neurons")).to_be_visible()
    if script:
        assert page.evaluate("window.same")


@pytest.mark.parametrize("script", [True, False])
def test_the_sheet(visit: OpenTab, script: bool) -> None:
    tab = visit(java_script_enabled=script, viewport={"width": 390, "height": 844})
    page = tab.go(f"{PROMPT}+and+the+dog&panel=sheet")
    names = page.get_by_role("region", name="Rows of the sheet").locator("tbody th")
    expect(names).to_have_count(50)
    page.get_by_role("link", name="next →").press("Enter")
    page.wait_for_url(re.compile("page=2"))
    page.get_by_label("Layer", exact=True).select_option("1")
    page.get_by_label("Word", exact=True).fill("dog")
    page.get_by_label("Word", exact=True).press("Enter")
    expect(page.get_by_text("in a list")).to_be_visible()
    assert "layer=1" in tab.path
    assert "page=" not in tab.path
    for name in names.all_inner_texts():
        assert name.startswith("L1H")
    page.get_by_role("link", name="weight").click()
    page.wait_for_url(re.compile("sort=weight"))
    page.get_by_role("group", name="Rows").get_by_role("link", name="neurons").click()
    expect(page.get_by_role("heading", name="strongest neurons of each layer")).to_be_visible()
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")


@pytest.mark.parametrize("script", [True, False])
def test_a_run_takes_along_what_links_do(visit: OpenTab, script: bool) -> None:
    tab = visit(java_script_enabled=script)
    page = tab.go(f"/{LLAMA}/prompt?hubs=hide&pin=L1N3")
    page.get_by_label("Text", exact=True).fill("the dog")
    page.get_by_role("button", name="Run").click()
    ran(page)
    assert tab.path == f"/{LLAMA}/prompt?text=the+dog&hubs=hide&pin=L1N3"


def test_a_long_text_goes_by_post(visit: OpenTab) -> None:
    tab = visit()
    page = tab.go(f"/{LLAMA}/prompt?panel=neurons")
    page.get_by_label("Text", exact=True).fill("the dog and the lion " * 100)
    page.get_by_role("button", name="Run").click()
    page.wait_for_url(re.compile("[?&]z="))
    expect(page.get_by_text("this prompt has")).to_be_visible()  # more tokens than the small model has positions
    tab.complaints.clear()


def test_a_run_that_cannot_be_says_why(visit: OpenTab) -> None:
    tab = visit()
    page = tab.go(f"/{LLAMA}/prompt?text=dog&off=1.3")
    page.get_by_text("Changes to the run").click()
    page.get_by_label("Off").fill("77.3")
    page.get_by_role("button", name="Run").click()
    expect(page.get_by_text("layer 77 does not exist here")).to_be_visible()
    assert tab.path == f"/{LLAMA}/prompt?text=dog&off=77.3"


def test_other_readings(visit: OpenTab) -> None:
    tab = visit()
    page = tab.go(f"/{LLAMA}/head/1/2/sub/0?k=8")
    for reading in ("norm", "first", "mlp", "pseudo"):
        page.get_by_role("group", name="Reading").get_by_role("link", name=reading).click()
        page.wait_for_url(re.compile(f"reading={reading}"))
        expect(page.get_by_text("overlap with the stored top")).to_have_count(4)


def test_other_readings_of_a_head(visit: OpenTab) -> None:
    tab = visit()
    page = tab.go(f"/{LLAMA}/head/1/2/vo?k=8")
    page.evaluate("window.same = true")
    for reading in ("norm", "mlp"):
        page.get_by_role("group", name="Reading").get_by_role("link", name=reading).click()
        page.wait_for_url(re.compile(f"reading={reading}#readings"))
        expect(page.get_by_text("Overlap with the stored top")).to_be_visible()
        expect(page.get_by_role("heading", name="Other readings")).to_be_in_viewport()
    page.go_back()
    expect(page.get_by_role("group", name="Reading").locator("[aria-current]")).to_have_text("norm")
    assert page.evaluate("window.same")


def test_from_a_stored_page_to_a_run_that_tells_of_it(visit: OpenTab) -> None:
    tab = visit()
    page = tab.go(f"/{LLAMA}/ff/1/3")
    page.get_by_role("link", name="and watch it").click()
    page.get_by_label("Text", exact=True).fill("the dog and the lion")
    page.get_by_role("button", name="Run").click()
    expect(page.get_by_role("heading", name="L1N3")).to_be_visible()
    for line in ("turns positive on (up, top)", "turns negative on (up, bottom)"):
        expect(page.locator("#chosen p", has_text=line).locator("a.t")).to_have_count(15)
    expect(page.get_by_role("list", name="Coefficient at every position").get_by_role("listitem")).to_have_count(
        page.get_by_role("navigation", name="Position").get_by_role("link").count()
    )
    page.get_by_role("link", name="choose none").click()
    expect(page.get_by_role("heading", name="L1N3")).to_have_count(0)
    tab.go(f"/{LLAMA}/head/1/2")
    page.get_by_role("link", name="and watch where it looks").click()
    page.get_by_label("Text", exact=True).fill("the dog and the lion")
    page.get_by_role("button", name="Run").click()
    expect(page.locator("figure.chosen")).to_contain_text("L1H2")
    expect(page.locator("tbody.chosen")).to_contain_text("L1H2")


def test_pages_without_their_worker_come_again_until_it_is_there(
    browser: Browser, site_data: Path, tmp_path: Path
) -> None:
    """With script, the page is swapped in, tries again by a timer, and keeps its #fragment. Without, it was opened from
    an address with a #fragment, and tries again by what its head says."""
    path, socket = f"/{LLAMA}/seeds?words=dog,lion&rank=fit", tmp_path / "w.sock"
    with (
        listening(create_app(Settings(data=site_data, worker_url=f"unix:{socket}"))) as address,
        ExitStack() as started,
    ):
        with_script, without = (
            Tab(browser.new_context(java_script_enabled=script).new_page(), address) for script in (True, False)
        )
        page = with_script.go(f"/{LLAMA}/seeds")
        page.get_by_label("Words", exact=True).fill("dog,lion")
        page.get_by_role("button", name="Find").click()
        without.go(f"{path}#main")
        for tab in (with_script, without):
            expect(tab.page.get_by_text("This page tries again by itself in")).to_be_visible()
            expect(tab.page.get_by_role("heading", level=1)).to_contain_text("503")
        page.evaluate("location.hash = 'main'")
        loaded = load_model(LLAMA, site_data, "cpu", 1)
        started.enter_context(listening(create_worker(loaded.engine, LLAMA, loaded.weights, Settings()), socket))
        for tab, where in ((with_script, f"{path}#main"), (without, path)):
            expect(tab.page.get_by_role("heading", level=1)).to_contain_text("dog, lion")
            expect(tab.page.get_by_role("region", name="Vectors found")).to_be_visible()
            assert unquote(tab.path) == where
            assert all("503" in complaint for complaint in tab.complaints)
            tab.page.context.close()
