"""A collection in an address: `pin=` shows the first words of some parameters on every page of their model."""

import re
from html import unescape
from urllib.parse import urlsplit

import pytest
from starlette.testclient import TestClient

from lexiscope.app.html.tokens import plain
from tests.support.pages import parsed
from tests.support.site import DIFFERENCE, GPT2, LLAMA, SCRIPT

PINS = "L1N3,L1H2,L0H3.1,L1H2.svd0"


def bar(page: str) -> str:
    found = re.search(r'<nav class="pins".*?</nav>', page, re.DOTALL)
    return unescape(found[0]) if found else ""


@pytest.mark.parametrize(
    "path", [f"/{LLAMA}", f"/{LLAMA}/token/{SCRIPT}?lens=cosine", f"/{LLAMA}/beside", f"/{DIFFERENCE}/ff/1/5"]
)
def test_the_bar_goes_along(client: TestClient, path: str) -> None:
    """On all links to pages of the model, and in its forms; not to other models, other pages and other formats."""
    sign = "&" if "?" in path else "?"
    answer = client.get(f"{path}{sign}pin={PINS}")
    model = path.split("/")[1].partition("?")[0]
    page = parsed(answer.text)
    without = {link.attributes["href"] for link in page.all("a", **{"class": "unpin"})}
    assert len(without) == 4
    assert all(len(re.findall(r"L\dN|L\dH", address)) == 3 for address in without)
    for address in page.links():
        of_model = f"{urlsplit(address).path}/".startswith(f"/{model}/")
        is_page = not re.search(r"\.(json|csv|md|tex|svg|png)$", urlsplit(address).path)
        if address not in without and not address.startswith(("#", "http")) and is_page:
            assert ("pin=" in address) == of_model, address
            assert not of_model or f"pin={PINS}" in address
    assert len(page.all("input", type="hidden", name="pin", value=PINS)) >= len(page.all("form", role="search"))
    assert bar(client.get(path).text) == ""


def test_its_words_are_those_of_the_lists(client: TestClient) -> None:
    text = bar(client.get(f"/{LLAMA}/ff/0/1?pin=L1N3,1.2").text)
    neuron = client.get(f"/{LLAMA}/ff/1/3.json?k=5").json()
    assert all(f"{name} {plain(neuron[name]['top'])}" in text for name in ("key", "up", "value"))
    pair = client.get(f"/{LLAMA}/head/1/2/vo.json?k=1&preset=words&lens=cosine").json()["top"][0]
    assert f"vo {pair['from']['token'].strip()} → {pair['to']['token'].strip()}" in text


def test_one_address(client: TestClient) -> None:
    """However names are typed: each once; only the HTML is another one with them."""
    typed = client.get(f"/{LLAMA}/ff/1/3?pin=1.2,L1H2,+l1n3")
    assert '</tiny-llama/ff/1/3?pin=L1H2,L1N3>; rel="canonical"' in typed.headers["link"]
    plain_page = client.get(f"/{LLAMA}/ff/1/3")
    assert typed.headers["etag"] != plain_page.headers["etag"]
    assert typed.headers["etag"] != client.get(f"/{LLAMA}/ff/1/3?pin=L1H2").headers["etag"]
    data, pinned = client.get(f"/{LLAMA}/ff/1/3.json"), client.get(f"/{LLAMA}/ff/1/3.json?pin=1.2")
    assert (data.content, data.headers["etag"]) == (pinned.content, pinned.headers["etag"])


def test_a_page_of_two_models(client: TestClient) -> None:
    """The pins are of the first, and do not follow to where the other is the first."""
    assert "L1H2" in bar(client.get(f"/{GPT2}/vs/{LLAMA}?kind=w_k&pin=1.2").text)
    turned = client.get(f"/{LLAMA}/vs/{GPT2}?pin=1.2", follow_redirects=False)
    assert turned.status_code == 303
    assert "pin" not in turned.headers["location"]


def test_this_page_is_pinned(client: TestClient) -> None:
    """From a parameter's page, where it is not pinned already; up to eight."""
    assert f"/{LLAMA}/ff/1/3?pin=L1N3" in parsed(client.get(f"/{LLAMA}/ff/1/3").text).links()
    assert f"/{LLAMA}/ff/1/3?pin=L1H2,L1N3" in parsed(client.get(f"/{LLAMA}/ff/1/3?pin=1.2").text).links()
    assert "Pin L1N3" not in client.get(f"/{LLAMA}/ff/1/3?pin=L1N3").text
    eight = ",".join(f"L1N{at}" for at in range(10, 18))
    assert "Pin L1N3" not in client.get(f"/{LLAMA}/ff/1/3?pin={eight}").text


@pytest.mark.parametrize(
    ("pin", "status", "said"),
    [
        ("L9N1", 404, "layers 0 to 1"),
        ("L1N3,dog", 422, "'dog' names no parameter"),
        ("L1", 422, "names no parameter"),
        (",".join(f"L1N{at}" for at in range(9)), 422, "pin names 9 parameters: up to 8"),
    ],
)
@pytest.mark.parametrize("path", ["ff/1/3", "search.json", "beside.csv"])
def test_what_cannot_be_pinned(client: TestClient, path: str, pin: str, status: int, said: str) -> None:
    answer = client.get(f"/{LLAMA}/{path}?pin={pin}")
    assert answer.status_code == status
    assert said in unescape(answer.text)


def test_a_pin_without_lists_and_a_hostile_one(client: TestClient) -> None:
    """A layer that is not built is no fault of the page; tokens are text."""
    page = client.get(f"/{GPT2}?pin=L0N1")
    assert page.status_code == 200
    assert "layer 0" in bar(page.text)
    place = client.get(f"/{DIFFERENCE}/token/{SCRIPT}.json?kind=ff_value").json()["roles"][0]["places"]
    first = min(place, key=lambda listing: listing["rank"])
    page = client.get(f"/{DIFFERENCE}?pin=L{first['layer']}N{first['index']}")
    assert "<script>" not in page.text
