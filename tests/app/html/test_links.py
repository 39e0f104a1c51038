"""Listings of a token: each leads to its own row in the list, however far down that is."""

import re
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import pytest

from lexiscope.precompute.index.parameter_names import vector_name
from tests.support.pages import parsed
from tests.support.site import GPT2, LLAMA, K
from tests.support.synthetic import LLAMA as GROUPED

if TYPE_CHECKING:
    from starlette.testclient import TestClient


def rows_of(client: "TestClient", path: str) -> dict[str, int]:
    """id -> rank"""
    rows = re.findall(r'<tr id="([^"]+)"[^>]*><td>(\d+)', client.get(path).text)
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


@pytest.mark.parametrize(("kind", "head", "name"), [
    ("ff_key", None, "L5N7"), ("w_q", 0, "L5H0.3"), ("w_k", 2, "L5H2–3.3"), ("w_v", 0, "L5H0–1.3"),
    ("vo_in", 2, "L5H2.svd3"),
])  # fmt: skip
def test_names(kind: str, head: int | None, name: str) -> None:
    """Of four heads, each two share keys and values."""
    which = "direction" if kind.startswith("vo") else "subhead"
    place = {"kind": kind, "layer": 5, "index": 7, "head": head, "subhead": None, "direction": None}
    place |= {} if head is None else {which: 3}
    assert vector_name(place, GROUPED) == name
