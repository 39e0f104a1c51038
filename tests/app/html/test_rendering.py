"""Pages as they are made: what every one of them has, links that lead somewhere and to the right row, how to cite them,
hostile tokens as text."""

import re
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import pytest

from lexiscope.app.html.assets import folder
from lexiscope.app.html.hubs import page_of
from lexiscope.app.html.numbers import BAR_STEPS, HEAT_STEPS
from lexiscope.app.html.tokens import list_chips
from lexiscope.app.lists.find_tokens import token_named
from lexiscope.app.lists.view import tokens_of
from lexiscope.precompute.index.index import Index
from tests.support.pages import parsed
from tests.support.site import GPT2, LLAMA, PAGES

if TYPE_CHECKING:
    from starlette.testclient import TestClient
from typing import TYPE_CHECKING

from tests.support.site import K

if TYPE_CHECKING:
    from starlette.testclient import TestClient

from starlette.testclient import TestClient

LINKS = 12  # of each page, evenly spread


@pytest.mark.parametrize("path", PAGES.values(), ids=PAGES)
def test_every_page_says_what_it_is(client: "TestClient", path: str) -> None:
    page = parsed(client.get(path).text)
    assert len(page.all("h1")) == len(page.all("main")) == 1
    assert page.all("meta", name="description")[0].attributes["content"]
    assert page.all("meta", property="og:title")[0].attributes["content"] in page.all("title")[0].text
    assert page.all("link", rel="canonical")[0].attributes["href"].startswith("http://testserver/")
    assert len(set(page.ids())) == len(page.ids())
    assert page.all("a", **{"data-key": "?"})
    for table in re.findall(r"<table.*?</table>", client.get(path).text, re.DOTALL):
        assert "<caption" in table or "cards" in table
        assert "scope" in table
    assert all("src" in script.attributes for script in page.all("script"))  # and no token has become one
    assert not page.all("style")
    for element in page.elements:
        assert not [name for name in element.attributes if name == "style" or name.startswith(("on", "hx-on"))]


def live(link: str) -> bool:
    """Live pages need a worker, which test_live_pages.py waits for."""
    page = urlsplit(link).path.removesuffix(".json")
    asks_worker = "reading=" in link or "beforehand=" in link
    return asks_worker or page.endswith(("/seeds", "/relation", "/transition", "/heads", "/prompt"))


@pytest.mark.parametrize("path", PAGES.values(), ids=PAGES)
def test_links_lead_somewhere(client: "TestClient", path: str) -> None:
    links = sorted({link for link in parsed(client.get(path).text).links() if link.startswith("/") and not live(link)})
    for link in links[:: max(1, len(links) // LINKS)]:
        address = urlsplit(link)
        answer = client.get(link)
        if "/layer/0" in address.path and GPT2 in address.path:
            assert answer.status_code == 404  # of the unfinished model
        else:
            assert answer.status_code in (200, 303), link
        if address.fragment:
            assert address.fragment in parsed(answer.text).ids(), link


@pytest.mark.parametrize(("path", "before", "after"), [
    (f"/{LLAMA}/ff/1/0", None, f"/{LLAMA}/ff/1/1"),
    (f"/{LLAMA}/ff/1/3?lens=cosine&k=8", f"/{LLAMA}/ff/1/2?lens=cosine&k=8", f"/{LLAMA}/ff/1/4?lens=cosine&k=8"),
    (f"/{GPT2}/head/1/3", f"/{GPT2}/head/1/2", None),
    (f"/{GPT2}/head/1/1/qk?preset=words", f"/{GPT2}/head/1/0/qk?preset=words", f"/{GPT2}/head/1/2/qk?preset=words"),
    (f"/{GPT2}/head/1/1/sub/7", f"/{GPT2}/head/1/1/sub/6", None),
    (f"/{GPT2}/layer/1?page=2", f"/{GPT2}/layer/1", f"/{GPT2}/layer/1?page=3"),
])  # fmt: skip
def test_neighbours(client: "TestClient", path: str, before: str | None, after: str | None) -> None:
    page = parsed(client.get(path).text)
    found = [[a.attributes["href"] for a in page.all("a", **{"data-key": key})] for key in "[]"]
    assert found == [[before] if before else [], [after] if after else []]


def test_shared_tokens_are_marked(client: "TestClient") -> None:
    for neuron in range(20):
        data = client.get(f"/{GPT2}/ff/1/{neuron}.json?k=30").json()
        end = "top" if data["similarity"] >= data["similarity_bottom"] else "bottom"
        lists = [[t["id"] for t in data[part][of]] for part, of in (("key", "top"), ("value", end))]
        both = set(lists[0]) & set(lists[1])
        html = client.get(f"/{GPT2}/ff/1/{neuron}").text
        marked = {*re.findall(r'<tr id="(ff_\w+-[tb]\d+)" class="m">', html)}
        named = zip(("ff_key-t", f"ff_value-{end[0]}"), lists, strict=True)
        assert marked == {f"{name}{token}" for name, ids in named for token in ids[:25] if token in both}
        said = f"{len(both)} of the first 30 tokens are at both" if both else "none of the first 30 at"
        assert f"{said} the key’s top and the value’s {end}" in re.sub(r"</?b>", "", html)


def test_every_step_has_its_style(client: "TestClient") -> None:
    style = (folder("static") / "lexiscope.css").read_text("utf-8")
    for name, steps in (("bar", BAR_STEPS), ("heat", HEAT_STEPS)):
        assert all(f'[data-{name}="{step}"]' in style for step in range(steps + 1))
        used = {
            int(step) for path in PAGES.values() for step in re.findall(rf'data-{name}="(\d+)"', client.get(path).text)
        }
        assert used <= set(range(steps + 1))


def rows_of(client: "TestClient", path: str) -> dict[str, int]:
    """id -> rank"""
    rows = re.findall(r'<tr id="([^"]+)"[^>]*><td><a href="#\1"[^>]*>(\d+)', client.get(path).text)
    return {name: int(rank) for name, rank in rows}


@pytest.mark.parametrize("path", [
    f"/{LLAMA}/token/300?kind=ff_up", f"/{LLAMA}/token/300?kind=w_v&lens=cosine", f"/{GPT2}/token/300",
    f"/{LLAMA}/token/300?kind=vo_out", f"/{GPT2}/token/300?kind=qk_query&lens=cosine",
])  # fmt: skip
def test_a_listing_leads_to_its_row(client: "TestClient", path: str) -> None:
    found = re.findall(r'<tr><td>(\d+)<td><a href="([^"]+)"', client.get(path).text)
    assert found
    for rank, href in found[:: max(1, len(found) // 20)]:
        address = urlsplit(href.replace("&amp;", "&"))
        assert rows_of(client, address._replace(fragment="").geturl())[address.fragment] == int(rank)
        assert ("k=" in address.query) == (int(rank) > 25)


@pytest.mark.parametrize("page", [
    "token/{}?kind=vo", "token/{}?kind=vo&lens=cosine", "token/{}?kind=qk", "token/{}?kind=qk&lens=cosine",
    "search?q=%23{}&kind=vo", "search?q=%23{}&kind=qk&lens=cosine", "search?q=%23{}",
])  # fmt: skip
def test_a_pair_leads_to_its_row(client: "TestClient", page: str) -> None:
    """A search leads to the list of the preset in which its rank is best, however far down."""
    seen: list[str] = []
    for token in range(0, 500, 7):
        path = f"/{GPT2}/{page.format(token)}"
        pairs = client.get(path.replace("?", ".json?")).json()["pairs"]
        html = client.get(path).text
        links = parsed(html).links()
        hrefs = [link for link in links if re.search(r"#[tb]\d+-\d+$", link)]
        assert len(hrefs) == len(pairs)
        if page.startswith("search"):
            assert ("#pairs" in links) == (bool(pairs) and "kind" not in page)  # they stand below what else was found
        elif not pairs:
            assert re.search(r"Not among the first \d+ pairs of any head under the lens", html)
        for pair, href in [*zip(pairs, hrefs, strict=True)][-2:]:
            address = urlsplit(href)
            assert rows_of(client, address._replace(fragment="").geturl())[address.fragment] == pair["rank"]
            assert ("k=" in address.query) == (pair["rank"] > 50)
            seen.append(pair.get("preset", "all"))
        if len(seen) > 20 and (page.startswith("token") or len({*seen}) > 1):
            return
    assert seen
    assert page.startswith("token") or len({*seen}) > 1


def test_a_match_leads_to_its_row(client: "TestClient") -> None:
    path = f"/{LLAMA}/search?q=%23300"
    matches = client.get(path.replace("?", ".json?")).json()["matches"]
    hrefs = [link for link in parsed(client.get(path).text).links() if re.search(r"#(ff|w|vo|qk)_\w+-[tb]300$", link)]
    assert len(hrefs) == len(matches) > 0
    for match, href in list(zip(matches, hrefs, strict=True))[::10]:
        address = urlsplit(href)
        (rank,) = match["ranks"]
        assert rows_of(client, address._replace(fragment="").geturl())[address.fragment] == rank


@pytest.mark.parametrize(
    "path", [f"/{LLAMA}/ff/1/3", f"/{LLAMA}/head/1/1/sub/2", f"/{LLAMA}/head/1/1/svd/2", f"/{LLAMA}/head/1/1/vo"]
)
def test_all_that_is_stored_can_be_reached(client: "TestClient", path: str) -> None:
    html = client.get(path).text
    stored = 60 if path.endswith("vo") else K
    assert f"{path}?k={stored}" in parsed(html).links()
    assert f"all {stored}" in html
    assert rows_of(client, path).keys() < rows_of(client, f"{path}?k={stored}").keys()


OF_MODEL = {
    name: path for name, path in PAGES.items() if path.startswith((f"/{GPT2}", f"/{LLAMA}")) and name != "error"
}


def bibtex(html: str) -> str:
    (element,) = parsed(html).all("pre", id="bibtex")
    return element.text.strip()


@pytest.mark.parametrize("name", OF_MODEL)
def test_every_page_of_a_model_can_be_cited(client: TestClient, name: str) -> None:
    answer = client.get(OF_MODEL[name])
    entry = bibtex(answer.text)
    canonical = re.search(r"<([^>]+)>; rel=\"canonical\"", answer.headers["link"])
    assert canonical
    build = f"{'&' if '?' in canonical[1] else '?'}build={answer.headers['x-lexiscope-build']}"
    if "/vs/" in canonical[1]:
        build = ""  # two models have two builds
    assert f"  url = {{http://testserver{canonical[1]}{build}}}\n" in entry
    assert answer.headers["x-lexiscope-build"] in entry
    assert entry.count("{") == entry.count("}")
    assert re.match(r"@misc\{lexiscope-[a-z0-9-]+,\n  title = \{\S", entry)
    assert entry.isascii() or "%" in entry


def test_titles_are_latex(client: TestClient) -> None:
    entry = bibtex(client.get(f"/{LLAMA}/search?q=d%C3%B6g%20%E3%83%B3%20%26%20%3Cb%3E").text)
    assert r"d\"{o}g U+30F3 \& \texttt{\char60}b\texttt{\char62}" in entry
    assert "&amp;" not in entry


@pytest.mark.parametrize(("tokens", "is_folded"), [("<|endoftext|>", True), ("dog lion horse", False)])
def test_lists_of_high_bias_are_folded_and_special_tokens_have_a_sign(
    site_data: Path, tokens: str, is_folded: bool
) -> None:
    index = Index.open(site_data / GPT2)
    listed = tokens_of(index.tokens, [token_named(index, word) for word in tokens.split()])
    with page_of(index, {}):
        written = str(list_chips(listed, GPT2))
    assert ("<details" in written) == is_folded
    assert ("(high bias: " in written) == is_folded
    assert ('class="special"' in written) == is_folded
    assert all(f"/{GPT2}/token/{token['id']}" in written for token in listed)
    assert list_chips([], GPT2) == ""
