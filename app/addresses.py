"""Where every page is: paths from what they show, and queries without their defaults, so that one view has one URL.
Used by templates, searches and tests; the routes are declared in routes/."""

from collections.abc import Mapping
from functools import lru_cache
from typing import Any
from urllib.parse import parse_qsl, quote, quote_plus

from app.packed_text import pack, unpack

FORMATS = {
    "html": "text/html",
    "json": "application/json",
    "csv": "text/csv",
    "md": "text/markdown",
    "tex": "application/x-tex",
}  # how a view leaves the site, and the media type of each
DATA_FORMATS = ("json", "csv", "md", "tex")  # those with an address of their own, which ends in .json and so on

DEFAULTS = {"lens": "dot", "preset": "all", "page": 1, "sort": "neuron"}
SEED_KIND = "ff_value"
PROMPT_DEFAULTS = {"panel": "evolution", "convention": "final", "off": "", "set": ""}
LONG_TEXT = 1200  # characters, escaped for an address


def home() -> str:
    return "/"


def help_page(anchor: str = "") -> str:
    return "/-/help" + (f"#{quote(anchor)}" if anchor else "")


def model(name: str, **query: Any) -> str:
    return _with(f"/{_name(name)}", query)


def layer(name: str, layer: int, **query: Any) -> str:
    return _with(f"/{_name(name)}/layer/{layer}", query)


def ff(name: str, layer: int, neuron: int, **query: Any) -> str:
    return _with(f"/{_name(name)}/ff/{layer}/{neuron}", query)


def head(name: str, layer: int, head: int, **query: Any) -> str:
    return _with(f"/{_name(name)}/head/{layer}/{head}", query)


def pairs(name: str, layer: int, head: int, matrix: str, **query: Any) -> str:
    return _with(f"/{_name(name)}/head/{layer}/{head}/{matrix}", query)


def subhead(name: str, layer: int, head: int, subhead: int, **query: Any) -> str:
    return _with(f"/{_name(name)}/head/{layer}/{head}/sub/{subhead}", query)


def token(name: str, token: int, **query: Any) -> str:
    return _with(f"/{_name(name)}/token/{token}", query)


def search(name: str, **query: Any) -> str:
    return _with(f"/{_name(name)}/search", query)


def seeds(name: str, **query: Any) -> str:
    """The kind is left out where it is neuron values, heads where they are not asked for."""
    query["kind"] = None if query.get("kind") == SEED_KIND else query.get("kind")
    query["words"], query["heads"] = query.get("words") or None, query.get("heads") or None
    return _with(f"/{_name(name)}/seeds", query)


def relation(name: str, **query: Any) -> str:
    query["pairs"] = query.get("pairs") or None
    return _with(f"/{_name(name)}/relation", query)


def prompt(name: str, text: str = "", z: str | None = None, **query: Any) -> str:
    """A long text is packed; the panel and the convention are left out where they are the first."""
    text = unpack(z) if z else text
    long = len(quote(text)) > LONG_TEXT
    said = {"text": None if long else text or None, "z": pack(text) if long else None}
    for argument, default in PROMPT_DEFAULTS.items():
        query[argument] = None if query.get(argument) in (default, "") else query.get(argument)
    return _with(f"/{_name(name)}/prompt", said | query)


def random(name: str, **query: Any) -> str:
    return _with(f"/{_name(name)}/random", query)


def vector(name: str, layer: int, index: int, head: int | None, sub: int | None, **query: Any) -> str:
    """The page of a vector of any kind: its neuron's, or its subhead's."""
    if head is None or sub is None:
        return ff(name, layer, index, **query)
    return subhead(name, layer, head, sub, **query)


def content_type(format: str) -> str:
    return FORMATS[format] if format == "json" else f"{FORMATS[format]}; charset=utf-8"


def format_address(address: str, format: str) -> str:
    """The same page in another format: without arguments that only say how a page shows it, and of a CSV, which has
    all pages of a list, without the page."""
    if format == "html":
        return address
    path, _, query = address.partition("?")
    left_out = ("group", "page") if format == "csv" else ("group",)
    kept = "&".join([argument for argument in query.split("&") if argument.partition("=")[0] not in left_out])
    return f"{'/index' if path == '/' else path}.{format}" + (kept and f"?{kept}")


def turned(address: str, **changes: Any) -> str:
    """The same page with other arguments; None takes one away."""
    path, said = _parts(address)
    return _with(path, {**said, **changes})


def _with(path: str, query: dict[str, Any]) -> str:
    """In the order given; a value that is None or the default is left out."""
    said = {name: value for name, value in query.items() if value is not None and value != DEFAULTS.get(name)}
    return f"{path}?{query_of(said)}" if said else path


def query_of(said: dict[str, Any]) -> str:
    """Names are our own; in values commas stay readable."""
    return "&".join([f"{name}={_escaped(str(value))}" for name, value in said.items()])


def _escaped(value: str) -> str:
    return value if value.isascii() and value.isalnum() else quote_plus(value, ",:*")


_name = lru_cache(256)(quote)  # of the few models there are, in every link of a page


@lru_cache(64)
def _parts(address: str) -> tuple[str, Mapping[str, str]]:
    """Path and arguments; a page turns its own address many times."""
    path, _, query = address.partition("?")
    return path, dict(parse_qsl(query))
