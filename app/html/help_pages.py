"""Render the help pages: docs/reading/*.md, the same text as in the documentation. An anchor is the name of a page, a
heading or a word of the glossary, and leads to the page that has it."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from itertools import pairwise

from markdown_it import MarkdownIt
from markupsafe import Markup

from lexiscope.app.html.assets import folder
from lexiscope.app.html.glossary import ENTRY, TERMS

START = "index"  # the name of the first page, which links to all others
MARKDOWN = MarkdownIt("commonmark", {"html": False}).enable("table")  # tags in a text stay text


@dataclass(frozen=True)
class HelpPage:
    name: str
    title: str
    sections: Mapping[str, str]  # the headings below the title, by id
    body: Markup

    @property
    def address(self) -> str:
        return _address(f"{self.name}.md")


@cache
def help_pages() -> Mapping[str, HelpPage]:
    """Return the pages by name, in the order in which the first page links to them."""
    files = {path.stem: path.read_text("utf-8") for path in folder("reading").glob("*.md")}
    return {name: _render(name, files[name]) for name in [START, *re.findall(r"\]\(([\w-]+)\.md\)", files[START])]}


@cache
def anchors() -> Mapping[str, str]:
    """Return the address that each anchor leads to. Words of the glossary come first, then pages, then headings."""
    found = {key: f"{_address('glossary.md')}#{key}" for key in TERMS}
    for page in help_pages().values():
        for anchor in (page.name, f"{page.name}-page", _slug(page.title)):
            found.setdefault(anchor, page.address)
    for page in help_pages().values():
        for name in page.sections:
            for anchor in (name, f"{name}-page", f"{page.name}-{name}"):
                found.setdefault(anchor, f"{page.address}#{name}")
    return found


def help_link(anchor: str = "") -> str:
    return anchors()[anchor] if anchor else _address(f"{START}.md")


def _render(name: str, text: str) -> HelpPage:
    tokens = MARKDOWN.parse(ENTRY.sub("", text))  # the template writes the entries of the glossary
    headings = [pair for pair in pairwise(tokens) if pair[0].type == "heading_open"]
    for opening, heading in headings:
        opening.attrSet("id", _slug(heading.content))
    for link in [child for token in tokens for child in token.children or () if child.type == "link_open"]:
        link.attrSet("href", _address(str(link.attrs["href"])))
    (_, title), *rest = headings
    sections = {str(opening.attrs["id"]): heading.content for opening, heading in rest}
    body = MARKDOWN.renderer.render(tokens[3:], MARKDOWN.options, {})  # the template writes the title
    return HelpPage(name, title.content, sections, Markup(body))


def _slug(heading: str) -> str:
    """Return the id that GitHub and mkdocs give to a heading."""
    return re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-")


def _address(link: str) -> str:
    """Turn a link to another Markdown file into the address of its page."""
    page, ending, section = link.partition(".md")
    return f"/-/help{'' if page == START else f'/{page}'}{section}" if ending and ":" not in page else link
