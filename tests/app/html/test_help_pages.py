"""The help pages: short, linked with each other, and found from every anchor that a page or an old link names."""

import re
from typing import TYPE_CHECKING

import pytest

from lexiscope.app.html.assets import folder
from lexiscope.app.html.glossary import TERMS
from lexiscope.app.html.help_pages import MARKDOWN, anchors, help_link, help_pages
from tests.support.pages import parsed
from tests.support.site import GPT2, LLAMA, PAGES

if TYPE_CHECKING:
    from starlette.testclient import TestClient

FILES = {path.stem: path.read_text("utf-8") for path in folder("reading").glob("*.md")}
TEMPLATES = "".join(path.read_text("utf-8") for path in folder("templates").glob("*.html"))
MOST_WORDS = 600
# Places of the page that once had all help: links to them are in letters, papers and labels.
OLD_ANCHORS = [
    "attribution-panel", "best-lens", "cite", "classes", "classifier-page", "coherence-of-lists", "comparison-page",
    "conventions", "coverage-panel", "differences", "direction-page", "encoders", "exact", "glossary", "heads-page",
    "keys", "lab-coverage", "lab-inverse", "lab-page", "lab-similarity", "labels-page", "layer-page", "lenses",
    "model-page", "neuron-page", "paper-page", "presets", "prompt-page", "qk-page", "readings", "relation-page",
    "sample-page", "search-page", "seeds-page", "share", "signs", "stitching-page", "subhead-page", "token-page",
    "transition-page", "vectors-page", "vo-page", "worth-of-lists", "worth-reading",
]  # fmt: skip


@pytest.mark.parametrize("name", sorted(FILES.keys() - {"glossary"}))
def test_a_page_is_short(name: str) -> None:
    assert len(FILES[name].split()) <= MOST_WORDS


def test_every_line_of_the_glossary_is_an_entry() -> None:
    assert len(TERMS) == sum(line.startswith("- ") for line in FILES["glossary"].splitlines())


def test_every_file_is_a_page_whose_links_lead_somewhere(client: "TestClient") -> None:
    assert help_pages().keys() == FILES.keys()
    html = {page.address: client.get(page.address).text for page in help_pages().values()}
    for page in help_pages().values():
        assert parsed(html[page.address]).all("h1")[0].text.strip() == page.title
        for link in parsed(str(page.body)).links():
            path, _, anchor = link.partition("#")
            assert path.startswith("https://") or not anchor or anchor in parsed(html[path]).ids(), link


def test_ids_of_headings_are_those_of_github_and_mkdocs() -> None:
    for page in help_pages().values():
        for name, heading in page.sections.items():
            assert re.fullmatch(
                r"[A-Za-z0-9-]+(,? [A-Za-z0-9-]+)*", heading
            )  # of anything else they make different ids
            assert name == "-".join(re.findall(r"\w+", heading.lower()))


def test_tags_stay_text() -> None:
    assert MARKDOWN.render("<b>x</b> [y](javascript:alert(1))").count("&lt;") == 2


def test_an_old_link_leads_on(client: "TestClient") -> None:
    start = client.get("/-/help").text
    pages = {page.address: parsed(client.get(page.address).text).ids() for page in help_pages().values()}
    for anchor in (*OLD_ANCHORS, *TERMS):
        assert parsed(start).ids().count(anchor) == 1, anchor
        leads_to = re.search(f'<span id="{anchor}"></span>(?:<span id="[^"]+"></span>)*<a href="([^"]+)"', start)
        assert leads_to
        assert leads_to[1] == help_link(anchor)
        path, _, place = help_link(anchor).partition("#")
        assert not place or place in pages[path]


def test_every_link_of_a_template_leads_somewhere() -> None:
    used = re.findall(r"""(?<!~ )["']([\w-]+)["']\|help\b|\bterm\(["']([\w-]+)["'](?! ~)""", TEMPLATES)
    used += [(anchor, "") for anchor in re.findall(r"""\bhow\(["']([\w-]+)["']\)""", TEMPLATES)]
    assert len(used) > 100
    assert {anchor or word for anchor, word in used} <= anchors().keys()
    assert {word for _, word in used if word} <= TERMS.keys()


@pytest.mark.parametrize(("path", "page"), [
    (f"/{LLAMA}", "model"), (PAGES["layer"], "layer"), (PAGES["neuron"], "neuron"), (PAGES["head"], "head"),
    (PAGES["pairs"], "head#vo"), (f"/{LLAMA}/beside", "beside"), (PAGES["pairs-grouped"], "head#qk"),
    (PAGES["subhead"], "subhead"), (PAGES["direction"], "direction"), (PAGES["token"], "token"),
    (PAGES["comparison"], "comparison"), (PAGES["lab"], "lab"),
    (PAGES["vectors"], "vectors"), (PAGES["sample"], "vectors#sample"), (PAGES["search"], "search"),
    (PAGES["difference"], "differences"), (PAGES["classifier"], "classifier"),
    (PAGES["labels"], "labels"), (PAGES["paper"], "paper"), (f"/{GPT2}/prompt", "prompt"), (f"/{GPT2}/seeds", "seeds"),
    (f"/{GPT2}/relation", "relation"), (f"/{GPT2}/transition", "transition"), (f"/{GPT2}/heads", "heads"),
])  # fmt: skip
def test_a_page_leads_to_its_help(client: "TestClient", path: str, page: str) -> None:
    links = [link for link in parsed(client.get(path).text).links() if "glossary" not in link]
    assert [link for link in links if link.startswith(f"/-/help/{page}")]
