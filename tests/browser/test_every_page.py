"""What must hold on every page: no complaint from the browser, nothing that shuts people out, no sideways scrolling,
nothing that moves."""

import re

import pytest

from tests.browser.tabs import OpenTab, check_in_light_and_dark
from tests.support.site import DIFFERENCE, GPT2, LLAMA, PAGES

PAIRS_ON_A_CARD = """card => {
  const [from, to] = document.querySelectorAll(".t");
  card.classList.remove("none");
  const pair = `<span class="pair">${from.outerHTML}<b>→</b>${to.outerHTML}</span> `;
  card.innerHTML = `<a href="#">L1H2 VO</a> <span class="num">0.99</span> <span>${pair.repeat(3)}</span>`;
}"""


SHORTER = """() => {
  for (const kind of ["p", "schema-"])
    [...document.querySelectorAll(`section.endpoint[id^=${kind}]`)].slice(6).forEach(section => section.remove());
}"""


SAME_KIND = {  # another page of this kind has all of their elements
    "classifier-vector", "difference-direction", "difference-direction-unchanged", "difference-head",
    "difference-head-unchanged", "difference-layer", "difference-layer-unchanged", "difference-neuron",
    "difference-neuron-unchanged", "difference-pairs", "difference-paper", "difference-subhead", "lab-difference",
    "lab-nothing", "model-unfinished", "neuron-gated", "pairs-grouped", "paper-as", "search-labels", "search-nothing",
    "token-kind",
}  # fmt: skip


@pytest.mark.parametrize("name", [name for name in PAGES if name not in SAME_KIND])
def test_page(visit: OpenTab, name: str) -> None:
    page = visit(color_scheme="light", viewport={"width": 1280, "height": 900}).go(PAGES[name])
    page.evaluate(SHORTER)  # the API's page has a hundred sections of one template, which take axe half a minute
    check_in_light_and_dark(page)


@pytest.mark.parametrize("name", ["home", "layer", "pairs", "lab"])
def test_script_moves_nothing(visit: OpenTab, name: str) -> None:
    """What a reader looks at stays where it is when the script comes: headings are where they are without."""
    places = []
    for script in (True, False):
        page = visit(java_script_enabled=script, viewport={"width": 1280, "height": 900}).go(PAGES[name])
        boxes = [heading.bounding_box() for heading in page.get_by_role("heading").all()]
        places.append([round(box["y"]) for box in boxes if box])
    assert places[0] == places[1] != []


def test_a_long_list_of_high_bias_ends_in_dots(visit: OpenTab) -> None:
    """A reader sees where a text is cut."""
    page = visit(viewport={"width": 1280, "height": 900}).go(PAGES["token"])
    cell = page.locator(".places td:nth-child(3)").first
    cell.evaluate(
        "cell => { cell.innerHTML = `<details class=bias><summary>${'word '.repeat(30)}</summary></details>`; }"
    )
    summary = cell.locator("summary")
    inside = "summary => summary.getBoundingClientRect().right <= summary.closest('td').getBoundingClientRect().right"
    assert summary.evaluate(inside)
    assert summary.evaluate("summary => getComputedStyle(summary).textOverflow") == "ellipsis"


def test_long_words_fit_on_a_phone(visit: OpenTab) -> None:
    """The small models have no head that reads well and short tokens: a head's pairs are put on its card, and words as
    long as those of real models into them."""
    page = visit(viewport={"width": 360, "height": 740}).go(f"/{GPT2}")
    page.locator(".cards .none").first.evaluate(PAIRS_ON_A_CARD)
    page.evaluate("document.querySelectorAll('.cards bdi').forEach(chip => { chip.textContent = '␣consequently'; })")
    assert page.evaluate("document.documentElement.scrollWidth") <= 360


@pytest.mark.parametrize("path", [f"/{LLAMA}/ff/1/5", f"/{LLAMA}/head/1/2/sub/0", f"/{LLAMA}/head/1/2/vo"])
def test_lists_are_printed_on_one_page(visit: OpenTab, path: str) -> None:
    printed = visit().go(path).pdf(format="A4")
    assert len(re.findall(rb"/Type /Page\b", printed)) == 1


CONTRAST = """edge => {
  const context = document.createElement("canvas").getContext("2d", { willReadFrequently: true });
  const luminance = (colour) => {
    context.fillStyle = colour;
    context.fillRect(0, 0, 1, 1);
    const [r, g, b] = [...context.getImageData(0, 0, 1, 1).data].map((c) => (c / 255) ** 2.2);
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const ground = luminance(getComputedStyle(document.body).backgroundColor);
  const line = luminance(getComputedStyle(edge).borderTopColor);
  return (Math.max(ground, line) + 0.05) / (Math.min(ground, line) + 0.05);
}"""


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("control", [".switch a:not(.term, [aria-current])", "#q", ".search button", ".menu summary"])
def test_edges_of_controls_are_seen(visit: OpenTab, scheme: str, control: str) -> None:
    page = visit(color_scheme=scheme).go(PAGES["neuron"])
    assert page.locator(control).first.evaluate(CONTRAST) >= 3


TIGHT = """least => [...document.querySelectorAll(".neurons thead th")]
  .filter((th, at) => th.scrollWidth > th.clientWidth || ((at === 1 || at === 2) && th.clientWidth < least))
  .map(th => `${th.textContent.trim()}: ${th.scrollWidth} in ${th.clientWidth}`)"""


@pytest.mark.parametrize("model", [LLAMA, DIFFERENCE])
def test_the_words_of_a_layer_have_room(visit: OpenTab, model: str) -> None:
    """However many columns of numbers stand beside them, and no heading is cut."""
    sort = "change" if model == DIFFERENCE else "similarity"
    page = visit(viewport={"width": 1180, "height": 900}).go(f"/{model}/layer/1?sort={sort}")
    assert page.evaluate(TIGHT, 110) == []


def test_a_map_of_few_layers_has_room_for_its_legend(visit: OpenTab) -> None:
    page = visit(viewport={"width": 1180, "height": 900}).go(f"/{GPT2}/vs/{LLAMA}?kind=ff_value")
    legends = "[...document.querySelectorAll('.layer-map .legend')]"
    widths = page.evaluate(f"{legends}.map(legend => [legend.scrollWidth, legend.clientWidth])")
    assert len(widths) == 3
    assert all(content <= room for content, room in widths)


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
