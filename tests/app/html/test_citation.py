"""How to cite: every page of a model has BibTeX with its permalink and build, whatever its title holds."""

import re
from pathlib import Path

import pytest
from starlette.testclient import TestClient

from lexiscope.app.html.citation import PAPER
from tests.support.pages import parsed
from tests.support.site import GPT2, LLAMA, PAGES, visit

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
    assert f"  url = {{http://testserver{canonical[1]}}}\n" in entry
    assert answer.headers["x-lexiscope-build"] in entry
    assert entry.count("{") == entry.count("}")
    assert re.match(r"@misc\{lexiscope-[a-z0-9-]+,\n  title = \{\S", entry)
    assert entry.isascii() or "%" in entry


def test_titles_are_latex(client: TestClient) -> None:
    entry = bibtex(client.get(f"/{LLAMA}/search?q=d%C3%B6g%20%E3%83%B3%20%26%20%3Cb%3E").text)
    assert r"d\"{o}g U+30F3 \& \texttt{\char60}b\texttt{\char62}" in entry
    assert "&amp;" not in entry


def test_it_carries_the_public_address(site_data: Path) -> None:
    with visit(site_data, url="https://lexiscope.example.org") as visitor:
        assert f"url = {{https://lexiscope.example.org/{LLAMA}/ff/1/5}}" in bibtex(visitor.get(f"/{LLAMA}/ff/1/5").text)


def test_the_paper_is_cited_on_the_help_page_alone(client: TestClient) -> None:
    assert bibtex(client.get("/-/help").text) == PAPER
    assert not parsed(client.get("/").text).all("pre", id="bibtex")
