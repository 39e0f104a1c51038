"""Addresses that pin the build of an index, on every page of a model; and links to one row of a list."""

from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import pytest
from starlette.testclient import TestClient

from lexiscope.app.urls import format_address
from lexiscope.precompute.index.index import Index
from tests.app.site.test_pages import PATHS
from tests.support.pages import parsed
from tests.support.site import DIFFERENCE, GPT2, LLAMA

OTHER = "0123456789abcdef"
OF_MODELS = [paths[0] for name, paths in PATHS.items() if paths[0] != "/" and "/vs/" not in paths[0]]
NEURON = f"/{GPT2}/ff/1/5?lens=cosine"


def pinned(path: str, build: str) -> str:
    return f"{path}{'&' if '?' in path else '?'}build={build}"


def build_of(site_data: Path, path: str) -> str:
    return Index.open(site_data / path.split("/")[1].partition("?")[0]).manifest.build


@pytest.mark.parametrize("path", OF_MODELS)
def test_every_page_of_a_model_takes_its_build(client: TestClient, site_data: Path, path: str) -> None:
    """The page is as ever, under an address of its own; another build's is a notice that leads to the page."""
    address = pinned(path, build_of(site_data, path))
    shown = client.get(format_address(address, "json"))
    assert shown.content == client.get(format_address(path, "json")).content
    assert f'<{address}>; rel="canonical"' in shown.headers["link"]
    unchanged = client.get(format_address(address, "json"), headers={"If-None-Match": shown.headers["etag"]})
    assert unchanged.status_code == 304
    for format in ("json", "csv", "html"):
        here = format_address(path, format)
        gone = client.get(format_address(pinned(path, OTHER), format), headers={"If-None-Match": shown.headers["etag"]})
        assert gone.status_code == 410
        assert gone.headers["link"] == f'<{here}>; rel="latest-version"'
        assert "etag" not in gone.headers
        if format == "html":
            assert here in parsed(gone.text).links()
            assert OTHER in gone.text
        else:
            error = gone.json()["error"]
            assert (error["status"], error["title"]) == (410, "Built anew")
            assert here in error["detail"]


def test_what_a_pinned_page_leads_to(client: TestClient, site_data: Path) -> None:
    """Its own switches and formats keep the build; neighbours, other pages and other models do not."""
    build = build_of(site_data, NEURON)
    page = parsed(client.get(pinned(NEURON, build)).text)
    assert f"/{GPT2}/ff/1/5?build={build}" in page.links()
    assert format_address(pinned(NEURON, build), "csv") in page.links()
    assert f"/{GPT2}/ff/1/6?lens=cosine" in page.links()
    assert not [link for link in page.links() if LLAMA in link and "build=" in link]
    (bibtex,) = page.all("pre", id="bibtex")
    assert f"url = {{http://testserver{pinned(NEURON, build)}}}" in bibtex.text


@pytest.mark.parametrize("path", [*OF_MODELS, f"/{GPT2}/ff/1/5?hubs=hide&preset=words"])
def test_pages_with_links_to_share_offer_the_build(client: TestClient, site_data: Path, path: str) -> None:
    page = parsed(client.get(path).text)
    shared = [link.attributes["href"] for link in page.all("a", **{"data-copy": "link"})]
    assert shared in ([], [f"http://testserver{path}", f"http://testserver{pinned(path, build_of(site_data, path))}"])
    assert shared or "/labels" in path or "/search" in path or path.count("/") == 1


def test_pages_of_no_single_index_have_no_build(client: TestClient) -> None:
    for path in ("/", f"/{GPT2}/vs/{LLAMA}"):
        assert client.get(pinned(path, OTHER)).status_code == 422
        assert "build=" not in client.get(path).text


@pytest.mark.parametrize(("asked", "leads_to"), [
    ("L1N5", f"/{GPT2}/ff/1/5"),
    (f"/{GPT2}/ff/1/5", f"/{GPT2}/ff/1/5"),
    (f"http://testserver{NEURON}&build={OTHER}", f"{NEURON}&build={OTHER}"),
])  # fmt: skip
def test_the_search_keeps_builds(client: TestClient, site_data: Path, asked: str, leads_to: str) -> None:
    """A search keeps the build of a pasted address, and that of its own address."""
    moved = client.get(f"/{GPT2}/search", params={"q": asked})
    assert moved.headers["location"] == leads_to
    build = build_of(site_data, NEURON)
    moved = client.get(f"/{GPT2}/search", params={"q": asked, "build": build})
    assert parse_qs(urlsplit(moved.headers["location"]).query)["build"] == [build]


@pytest.mark.parametrize(("path", "ids"), [
    (NEURON, ("ff_key-t", "ff_key-b", "ff_value-t", "ff_value-b")),
    (f"/{GPT2}/head/1/1/sub/2", ("w_q-t", "w_o-b")),
    (f"/{GPT2}/head/1/1/svd/2?hubs=hide", ("vo_in-t", "qk_key-b")),
    (f"/{LLAMA}/head/1/2/qk?k=10", ("t", "b")),
    (f"/{DIFFERENCE}/head/1/2/vo?k=10", ("t", "b")),
])  # fmt: skip
def test_every_row_of_a_list_has_a_link_to_itself(client: TestClient, path: str, ids: tuple[str, ...]) -> None:
    page = parsed(client.get(path).text)
    rows = [row.attributes["id"] for row in page.all("tr") if "id" in row.attributes]
    links = page.all("a", tabindex="-1")
    assert [f"#{row}" for row in rows] == [link.attributes["href"] for link in links]
    assert len({*rows}) == len(rows) > 10
    assert all(any(row.startswith(start) for row in rows) for start in ids)
    assert all(link.attributes["aria-label"] == f"Link to row {link.text}" for link in links)
