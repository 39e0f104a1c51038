"""Arguments that an address does not take: refused everywhere, with the nearest that it takes; and no link of ours has
one."""

import re
from urllib.parse import parse_qsl, urlencode

import pytest
from starlette.testclient import TestClient

from lexiscope.app.urls import DATA_FORMATS, format_address
from lexiscope.precompute.live.wire.asks import PANEL_NAMES
from tests.support.pages import parsed
from tests.support.site import GPT2, HEADS, LLAMA, PAGES, PROMPT, RELATION, SEEDS, TRANSITION

LIVE_PAGES = ("seeds", "relation", "transition", "heads", "prompt")
LIVE = (SEEDS, RELATION, TRANSITION, HEADS, PROMPT)  # refused before a worker is asked
SYSTEM = (
    "/-/health", "/-/settings.json", "/-/metrics", "/openapi.json", "/robots.txt", "/favicon.ico", "/favicon.svg",
    "/help", "/static/lexiscope.css", f"/{LLAMA}/random", f"/{GPT2}/prompt.events", f"/{GPT2}/head/1/2/vo.events",
)  # fmt: skip


@pytest.mark.parametrize("address", [*PAGES.values(), *LIVE, *SYSTEM])
def test_every_address_refuses_what_it_does_not_take(client: TestClient, address: str) -> None:
    page = client.get(address + ("&" if "?" in address else "?") + "nonesuch=1", headers={"Accept": "text/html"})
    assert page.status_code == 422
    assert "has no argument" in page.text
    assert "nonesuch" in page.text


@pytest.mark.parametrize("format", DATA_FORMATS)
@pytest.mark.parametrize("name", ["home", "neuron", "search"])
def test_data_refuse_it_as_data(client: TestClient, name: str, format: str) -> None:
    address = format_address(PAGES[name], format)
    answer = client.get(address + ("&" if "?" in address else "?") + "lense=cosine", headers={"Accept": "text/html"})
    error = answer.json()["error"]
    assert (answer.status_code, error["status"]) == (422, 422)
    assert list(error) == ["status", "title", "detail"]
    assert ("did you mean lens?" in error["detail"]) is (name != "home")


@pytest.mark.parametrize(("address", "said", "way_out"), [
    (f"/{GPT2}/ff/1/5?lense=cosine&k=5", "'lense': did you mean lens? It takes lens, k, reading", "?lens=cosine&k=5"),
    (f"/{GPT2}/ff/1/5?Lens=cosine", "did you mean lens?", "?lens=cosine"),
    (f"/{GPT2}/head/1/2/vo?presets=words", "did you mean preset?", "?preset=words"),
    (f"/{GPT2}/ff/1/5?lens=cosine&fbclid=abc", "'fbclid': it takes lens, k, reading, hubs", "?lens=cosine"),
    (f"/{GPT2}/ff/1/5?utm_source=chat&k=5", "'utm_source': it takes lens, k, reading, hubs", "?k=5"),
    (f"/{GPT2}/ff/1/5?layer=2", "'layer': it takes lens,", ""),
    (f"/{GPT2}/seeds?q=dog", "'q': it takes words, kind, k, heads", ""),
    (f"/{GPT2}/prompt?txt=dog", "did you mean text?", "?text=dog"),
    (f"/{GPT2}/prompt?text=dog&panels=neurons", "did you mean panel?", "?text=dog&panel=neurons"),
    ("/?lens=cosine", "'lens': it takes no arguments", ""),
    (f"/{GPT2}/ff/1/5?{'x' * 5000}=1", f"{'x' * 60}': it takes", ""),
    (f"/{GPT2}/ff/1/5?<b>=1", "'<b>': it takes", ""),
])  # fmt: skip
def test_the_nearest_is_named_and_linked(client: TestClient, address: str, said: str, way_out: str) -> None:
    detail = client.get(address, headers={"Accept": "application/json"}).json()["error"]["detail"]
    assert said in detail
    page = client.get(address).text
    assert address.partition("?")[0] + way_out in parsed(page).links()
    assert "<b>=" not in page


@pytest.mark.parametrize(("query", "fields", "said"), [
    ("?lens=cosine", {"text": "dog"}, "no argument 'lens'"),
    ("", {"text": "dog", "panels": "neurons"}, "did you mean panel?"),
])  # fmt: skip
def test_a_form_is_checked_like_an_address(client: TestClient, query: str, fields: dict[str, str], said: str) -> None:
    answer = client.post(f"/{GPT2}/prompt{query}", data=fields, headers={"Accept": "application/json"})
    assert answer.status_code == 422
    assert said in answer.json()["error"]["detail"]


def test_no_link_and_no_form_of_ours_has_one(live: TestClient) -> None:
    """All that one can come to from these pages. An argument that is none, put last, is the first to be refused; pages
    that would be computed are not opened."""
    opened = [*PAGES.values(), *LIVE, f"{PROMPT}&panel={','.join(PANEL_NAMES)}"]
    seen: set[tuple[str, str]] = set()  # kinds of pages, and an argument of each or none
    while opened:
        for address in _addresses(live.get(opened.pop()).text):
            path, _, query = address.partition("#")[0].removeprefix("http://testserver").partition("?")
            kind = re.sub(rf"\d+|{GPT2}|{LLAMA}", "0", path)
            found = {(kind, name) for name in ("", *dict(parse_qsl(query, keep_blank_values=True)))}
            if not path.startswith("/") or found <= seen:
                continue
            seen |= found
            error = live.get(f"{path}?{query}&nonesuch=1", headers={"Accept": "application/json"}).json()["error"]
            assert "'nonesuch'" in error["detail"], address
            if not path.endswith((*DATA_FORMATS, *LIVE_PAGES)) and not re.search("(reading|beforehand)=", query):
                opened.append(f"{path}?{query}")
    assert len(seen) > 100


def _addresses(html: str) -> list[str]:
    """Where links lead, and where forms do when all that they ask for is given."""
    found, form = [], ""
    for element in parsed(html).elements:
        attributes = element.attributes
        found += [attributes[name] for name in ("href", "hx-get") if name in attributes]
        if element.tag == "form":
            form = attributes["action"]
        elif attributes.get("name") and element.tag in ("input", "select", "textarea", "button"):
            form += ("&" if "?" in form else "?") + urlencode({attributes["name"]: attributes.get("value", "")})
            found.append(form)
    return found
