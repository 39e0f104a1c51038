"""Write /llms.txt: what the addresses of this site give, in at most fifty lines of text."""

import re
from collections.abc import Iterator

from lexiscope.app.html.help_pages import help_link
from lexiscope.app.library.library import Library
from lexiscope.app.pages.page import find_pages
from lexiscope.app.urls import format_address

MOST_MODELS = 6


def llms_text(library: Library) -> str:
    return "\n".join(_lines(library)) + "\n"


def _lines(library: Library) -> Iterator[str]:
    yield "# Lexiscope\n\n> A transformer's weights as words: what each neuron, head and channel reads and writes.\n"
    yield "## Models on this site"
    cards = [card for card in library.cards() if card.n_layers]
    for card in cards[:MOST_MODELS]:
        yield f"- /{card.model}: {len(card.layers)} of {card.n_layers} layers are ready"
    if len(cards) > MOST_MODELS:
        yield f"- and {len(cards) - MOST_MODELS} more, all in /index.json"
    yield "\n## Pages, and the address of the same as data"
    for page in sorted(find_pages().values(), key=lambda page: (page.of != "site", page.at.pattern.count("/"))):
        pattern = re.sub(r":\w+}", "}", page.at.pattern)
        path = "/" if page.of == "site" else f"/{{model}}/{pattern}".rstrip("/")
        data = f" ({format_address(path, 'json')})" if page.formats else ""
        yield f"- {path}{data}: {re.split(r'(?<=[.]) ', ' '.join((page.make.__doc__ or '').split()))[0]}"
    yield "\n## More"
    yield "- /openapi.json: every address, argument and field, for programs; /docs is the same for people"
    yield f"- {help_link()}: how to read the pages; {help_link('glossary')}: all words"
