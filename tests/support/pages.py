"""Parse a page's HTML for tests: elements with their attributes and text, without the way they are written."""

from dataclasses import dataclass, field
from html.parser import HTMLParser


@dataclass
class Element:
    tag: str
    attributes: dict[str, str]
    text: str = ""


@dataclass
class Parsed(HTMLParser):
    """Hold all elements in order; the text of an element is that up to the next tag."""

    elements: list[Element] = field(default_factory=list)

    def __post_init__(self) -> None:
        super().__init__(convert_charrefs=True)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append(Element(tag, {name: value or "" for name, value in attrs}))

    def handle_data(self, data: str) -> None:
        if self.elements:
            self.elements[-1].text += data

    def all(self, tag: str, **wanted: str) -> list[Element]:
        return [e for e in self.elements if e.tag == tag and wanted.items() <= e.attributes.items()]

    def links(self) -> list[str]:
        return [e.attributes["href"] for e in self.all("a")]

    def ids(self) -> list[str]:
        return [e.attributes["id"] for e in self.elements if "id" in e.attributes]


def parsed(html: str) -> Parsed:
    page = Parsed()
    page.feed(html)
    page.close()
    return page
