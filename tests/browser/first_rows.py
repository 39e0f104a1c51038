"""Measure what stands before the first row of each kind of page: words, pixels and presses of Tab. By hand:
`python -m tests.browser.first_rows --data DIR`, or `--url ADDRESS` of a site that runs."""

import argparse
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote
from urllib.request import urlopen

import orjson
from playwright.sync_api import Page

from tests.browser.tabs import chromium
from tests.support.processes import serving

MAX_WORDS, MAX_TABS = 40, 15
SCREENS = {1280: (900, 420), 390: (844, 700)}  # width: height, and where the first row begins at the latest
LOADING = 120_000  # milliseconds that the worker has to load the model: until then the page comes again by itself

# Whatever is said between the heading and the first row: neither forms, switches and links nor headings of tables.
MEASURE = """() => {
  const visible = (of) => of.checkVisibility({ visibilityProperty: true }) && of.getBoundingClientRect().height > 1;
  const rows = "main :is(tbody tr, .cards li, svg[role=img]):not(.said-list *)";
  const row = [...document.querySelectorAll(rows)].find(visible);
  if (!row) return null;
  window.firstRow = row;
  const walker = document.createTreeWalker(document.querySelector("main"), NodeFilter.SHOW_TEXT);
  const skipped = "h1, form, .tools, nav, thead, caption, .u, script, .strip";
  const words = [];
  for (let text; (text = walker.nextNode());) {
    const after = document.querySelector("h1").compareDocumentPosition(text) & Node.DOCUMENT_POSITION_FOLLOWING;
    if (!after || text.parentElement.closest(skipped) || !visible(text.parentElement)) continue;
    if (row.contains(text) || row.compareDocumentPosition(text) & Node.DOCUMENT_POSITION_FOLLOWING) break;
    words.push(...(text.data.match(/[\\p{L}\\p{N}]\\S*/gu) ?? []));
  }
  const cut = [...document.querySelectorAll("main :is(td, tbody th)")].filter((cell) => visible(cell) &&
    getComputedStyle(cell).overflow === "visible" && cell.scrollWidth > cell.clientWidth + 1);
  return { words: words.length, y: Math.round(row.getBoundingClientRect().top + scrollY), overflowing: cut.length,
    height: document.documentElement.scrollHeight };
}"""
ARRIVED = """() => { const at = document.activeElement;
  return firstRow.contains(at) || Boolean(firstRow.compareDocumentPosition(at) & Node.DOCUMENT_POSITION_FOLLOWING); }"""


@dataclass(frozen=True)
class FirstRow:
    words: int
    y: int
    tabs: int
    overflowing: int  # cells whose content is wider than they are
    height: int  # of the whole page

    def beyond(self, width: int) -> list[str]:
        """Name what is more than the first row may have before it on a screen of this width."""
        limits = {"words": MAX_WORDS, "y": SCREENS[width][1], "tabs": MAX_TABS, "overflowing": 0}
        found = {name: getattr(self, name) for name in limits}
        return [f"{name} {found[name]} > {limit}" for name, limit in limits.items() if found[name] > limit]


def measure(page: Page) -> FirstRow:
    """Measure a page that is open, and press Tab until the focus is in the first row or beyond it."""
    found = page.evaluate(MEASURE)
    assert found, f"{page.url} shows no row"
    tabs = 0
    while tabs < 100 and not (tabs and page.evaluate(ARRIVED)):
        page.keyboard.press("Tab")
        tabs += 1
    return FirstRow(tabs=tabs, **found)


def kinds_of_pages(model: str, at: str, token: int, words: str, pairs: str, text: str) -> dict[str, str]:
    """An address of each kind of page; `at` is layer/head/neuron."""
    layer, head, neuron = at.split("/")
    return {
        "neuron": f"/{model}/ff/{layer}/{neuron}",
        "head": f"/{model}/head/{layer}/{head}",
        "pairs": f"/{model}/head/{layer}/{head}/vo",
        "pairs-qk": f"/{model}/head/{layer}/{head}/qk?preset=words",
        "subhead": f"/{model}/head/{layer}/{head}/sub/0",
        "direction": f"/{model}/head/{layer}/{head}/svd/0",
        "token": f"/{model}/token/{token}",
        "layer": f"/{model}/layer/{layer}",
        "search": f"/{model}/search?q={words.partition(',')[0]}",
        "seeds": f"/{model}/seeds?words={words}&rank=fit",
        "relation": f"/{model}/relation?pairs={quote(pairs)}",
        "heads": f"/{model}/heads?words={words}&layers={layer}",
        "transition": f"/{model}/transition?pairs={quote(pairs)}",
        "vectors": f"/{model}/vectors",
        "sample": f"/{model}/sample",
        "prompt": f"/{model}/prompt?text={quote(text)}",
        "lab": f"/{model}/lab",
        "model": f"/{model}",
    }


@contextmanager
def _site(asked: argparse.Namespace) -> Iterator[str]:
    if asked.url:
        yield asked.url
    else:
        with serving("--data", asked.data.absolute()) as (_, address):
            yield address


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, default=Path("data"))
    parser.add_argument("--url", help="the address of a site that runs, in place of one that is started")
    parser.add_argument("--model", help="default: the first that has layers")
    parser.add_argument("--at", default="29/2/808", help="layer/head/neuron")
    parser.add_argument("--only", help="kinds of pages, with commas between")
    asked = parser.parse_args()
    with _site(asked) as address, chromium() as browser:
        cards = _data(f"{address}/index.json")["models"]
        model = asked.model or next(card["model"] for card in cards if card["layers"])
        token = _data(f"{address}/{model}/search.json?q=dog")["tokens"][0]["tokens"][0]["id"]
        pairs = "France>French,Spain>Spanish,Germany>German"
        kinds = kinds_of_pages(model, asked.at, token, "horse,dog,lion", pairs, "The capital of France is")
        print(f"{'':12}{'words':>7}{'y':>7}{'Tabs':>7}{'cells':>7}{'height':>7}")
        for name in asked.only.split(",") if asked.only else kinds:
            for width, (height, _) in SCREENS.items():
                page = browser.new_page(viewport={"width": width, "height": height})
                page.goto(address + kinds[name], timeout=LOADING)
                page.wait_for_selector("body:not(:has([data-retry]))", timeout=LOADING)
                page.wait_for_load_state("load")
                try:
                    row = measure(page)
                    numbers = "".join(f"{number:7}" for number in asdict(row).values())
                    print(f"{name:12}{numbers}  at {width}", *row.beyond(width))
                except AssertionError as fault:
                    print(f"{name:12} {fault}")
                page.close()


def _data(address: str) -> Any:
    with urlopen(address, timeout=60) as answer:
        return orjson.loads(answer.read())


if __name__ == "__main__":
    main()
