"""Pictures of the explorer for the README, docs/ and help: `python -m tests.browser.screenshots --data DIR`, in light
and dark. Written as WebP, which Chromium makes small by itself."""

import argparse
import base64
from pathlib import Path
from typing import Any
from urllib.parse import quote
from urllib.request import urlopen

import orjson
from playwright.sync_api import Page

from lexiscope.app.html.assets import folder
from tests.browser.tabs import chromium
from tests.support.processes import serving

WIDTH, HEIGHT, QUALITY = 1180, 760, 55
TEXT = "The capital of France is"
LOADING = 120_000  # milliseconds that the worker has to load the model: until then the page comes again by itself


def pages(address: str, model: str, at: str, word: str) -> dict[str, str]:
    """A page of each kind; `at` is layer/head/neuron: those of the README's example, which the pictures illustrate."""
    layer, head, neuron = at.split("/")
    tokens = _data(f"{address}/{model}/search.json?q={word}")["tokens"][0]["tokens"]
    return {
        "home": "/",
        "model": f"/{model}?lens=cosine",
        "layer": f"/{model}/layer/{layer}?lens=cosine&sort=similarity",
        "neuron": f"/{model}/ff/{layer}/{neuron}?lens=cosine",
        "head": f"/{model}/head/{layer}/{head}",
        "subhead": f"/{model}/head/{layer}/{head}/sub/0?lens=cosine",
        "token": f"/{model}/token/{tokens[0]['id']}?lens=cosine",
        "search": f"/{model}/search?q={word}+puppy&lens=cosine",
        "seeds": f"/{model}/seeds?words=horse,dog,lion&lens=cosine",
        "relation": f"/{model}/relation?pairs={quote('France>French,Spain>Spanish,Germany>German')}",
        "heads": f"/{model}/heads?words=couch,dog,run,happy&layers={layer}&lens=cosine",
        "prompt": f"/{model}/prompt?text={quote(TEXT)}",
    }


def save(page: Page, path: Path) -> None:
    """As WebP, for which Playwright has no option."""
    page.evaluate("() => document.fonts.ready.then(() => new Promise(requestAnimationFrame))")  # something is drawn
    session = page.context.new_cdp_session(page)
    taken = session.send("Page.captureScreenshot", {"format": "webp", "quality": QUALITY})
    path.write_bytes(base64.b64decode(taken["data"]))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, default=folder("static"))
    parser.add_argument("--data", type=Path, default=Path("data"))
    parser.add_argument("--model", help="default: the first that has layers")
    parser.add_argument("--at", default="29/2/808", help="layer/head/neuron")
    parser.add_argument("--word", default="dog", help="whose token page to show")
    asked = parser.parse_args()
    asked.out.mkdir(parents=True, exist_ok=True)
    with serving("--data", asked.data.absolute()) as (_, address), chromium() as browser:
        cards = [card["model"] for card in _data(f"{address}/index.json")["models"] if card["layers"]]
        shown = pages(address, asked.model or cards[0], asked.at, asked.word)
        for scheme in ("light", "dark"):
            context = browser.new_context(color_scheme=scheme, viewport={"width": WIDTH, "height": HEIGHT})
            page = context.new_page()
            for name, path in shown.items():
                page.goto(address + path)
                page.wait_for_selector("body:not(:has([data-retry]))", timeout=LOADING)
                target = asked.out / f"tour-{name}-{scheme}.webp"
                save(page, target)
                print(f"{target}  {target.stat().st_size // 1000} kB  {path}")
            context.close()


def _data(address: str) -> Any:
    with urlopen(address, timeout=60) as answer:
        return orjson.loads(answer.read())


if __name__ == "__main__":
    main()
