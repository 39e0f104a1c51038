"""Find the page that a text names: a parameter as people type it, such as L16H6, or the pasted address of a page on any
host."""

from typing import Any
from urllib.parse import parse_qsl, unquote, urlsplit

from lexiscope.app.lists.kept_tokens import ARGUMENTS
from lexiscope.app.lists.labels import page_of
from lexiscope.app.pages.page import find_pages
from lexiscope.app.urls import ALL_FORMATS, DECLARED, DEFAULTS, Declared, link
from lexiscope.precompute.index.label_address import KINDS, parse_label_address
from lexiscope.precompute.index.origin import MODEL_NAME
from lexiscope.precompute.index.parameter_names import named_parameters
from lexiscope.precompute.shape import Shape


def possible_pages(model: str, shape: Shape, text: str, lens: str = "dot") -> list[tuple[str, str]]:
    """Return the addresses and titles of the pages that a text may mean, best first. The addresses get this lens (dot
    or cosine)."""
    find_pages()  # a link to a page can be written once the page is declared
    typed = [page_of(place, lens) for place in named_parameters(model, shape, text)]
    pasted = None if typed else _pasted(model, shape, text.strip())
    return [(address, _title(address)) for address in ([pasted] if pasted else typed)]


def page_of_text(model: str, shape: Shape, text: str, lens: str = "dot") -> str | None:
    """Return the address of the page of this model that a text most likely means; None if it names no page."""
    return next((address for address, _ in possible_pages(model, shape, text, lens)), None)


def page_at(address: str) -> tuple[str, dict[str, str]]:
    """Return the name of the page at an address of this site, and the values in the path."""
    words = unquote(address.partition("?")[0]).split("/", 2)[2:]
    for name, page in _followed().items():
        if words and (read := page.read(words[0])) is not None:
            return name, read
    return "model", {}


def pasted_model(text: str) -> str | None:
    """Return the name of the model in the pasted address of a page, even if this site has no such model."""
    try:
        name, *words = _path(text)
    except ValueError:
        return None
    path = "/".join(words)
    is_page = any(page.read(path) is not None for page in _followed().values()) if words else "://" in text
    is_page = is_page or bool(words and words[0] in KINDS and len(words) > 1)
    return name if is_page and MODEL_NAME.fullmatch(name) else None


def counts_in_paths(shape: Shape) -> dict[str, int]:
    """Return by name how many values each number in a path can have: as many as the model has layers, neurons, heads
    and so on."""
    of_head = {"head": shape.n_heads, "subhead": shape.d_head, "direction": shape.d_head}
    return {"layer": shape.n_layers, "neuron": shape.d_mlp, **of_head, "token": shape.d_vocab}


def _followed() -> dict[str, Declared]:
    """Return the pages of a model that open when their address is pasted into the search: those with a title and a
    path."""
    find_pages()
    return {name: page for name, page in DECLARED.items() if page.title and page.pattern}


def _title(address: str) -> str:
    name, read = page_at(address)
    return DECLARED[name].title.format(**read | {name.upper(): value.upper() for name, value in read.items()})


def _path(text: str) -> list[str]:
    """Return the segments of an address's path, without the ending such as .csv."""
    path = unquote(urlsplit(text.strip()).path)
    for format in ALL_FORMATS:
        path = path.removesuffix(f".{format}")
    return path.strip("/").split("/")


def _pasted(model: str, shape: Shape, text: str) -> str | None:
    """Return this site's address of a page whose URL was pasted: its path, and those arguments that the page takes.
    Return None if there is no such page."""
    try:
        parts = urlsplit(text)
        name, *words = _path(text)
    except ValueError:
        return None
    if name != model or "/" not in text:
        return None
    query: dict[str, Any] = {
        name: int(value) if value.isdecimal() and value.isascii() and len(value) < 10 and name != "q" else value
        for name, value in parse_qsl(parts.query)
    }
    if not words:
        return _address(shape, "model", model, {}, query)
    for page, declared in _followed().items():
        if (read := declared.read("/".join(words))) is not None:
            return _address(shape, page, model, read, query)
    try:
        place = parse_label_address("/".join((name, *words)))
    except ValueError:
        return None
    return None if place.what_is_wrong(shape) else page_of(place)


def _address(shape: Shape, page: str, model: str, read: dict[str, str], query: dict[str, Any]) -> str | None:
    """Return the address of a page; None if the model has no such parameter, or if the name of the other model cannot
    be a model's."""
    counts = counts_in_paths(shape)
    if any(int(value) >= counts[name] for name, value in read.items() if name in counts):
        return None
    if not MODEL_NAME.fullmatch(read.get("other", model)):
        return None
    numbers = [int(value) if value.isdecimal() else value for value in read.values()]
    kept = [name for name in (*ARGUMENTS, "build", "pin") if query.get(name) != DEFAULTS.get(name)]
    known = {name: value for name, value in query.items() if name in (*DECLARED[page].left_out, *kept)}
    return link(page, model, *numbers, **known)
