"""The URL of every page: a path that names what the page shows, and a query without defaults, so that one view has one
URL; and the formats in which a view leaves the site."""

from collections.abc import Mapping
from contextvars import ContextVar
from functools import lru_cache
from types import MappingProxyType
from typing import Any, Literal
from urllib.parse import parse_qsl, quote, quote_plus

from app.packed_text import pack, unpack
from app.views.lengths import HEAD_TOKENS, LIKELY_TOKENS, PAIR_ENTRIES, SEED_RESULTS, VECTOR_ENTRIES

FORMATS = {
    "html": "text/html",
    "json": "application/json",
    "csv": "text/csv",
    "md": "text/markdown",
    "tex": "application/x-tex",
}  # and their media types
DATA_FORMATS = tuple(format for format in FORMATS if format != "html")  # their addresses end in .json and so on
MEDIA_TYPES = {**FORMATS, "svg": "image/svg+xml"}  # also of what only some pages have: a figure
FIGURE_FORMATS = (*DATA_FORMATS, "svg")

DEFAULTS = {"lens": "dot", "preset": "all", "page": 1, "sort": "neuron"}
MAP: Literal["readability"] = "readability"  # what colours the maps of heads, unless map says otherwise
SEED_KIND = "ff_value"
CONVENTION: Literal["vocabulary"] = "vocabulary"  # of patterns, unless convention says otherwise
HEAD_LAYERS = "0"  # through whose heads words go, unless layers says otherwise
LONG_TEXT = 1200  # characters, escaped for an address

# Arguments that every link of the page being made takes along, as its visitor expects: hubs=hide. Set by rendering.
taken_along: ContextVar[Mapping[str, str]] = ContextVar("taken_along", default=MappingProxyType({}))

_SITE_PAGES = ("docs", "index", "static", "help", "openapi.json", "robots.txt", "-", "vs", "labels")


def is_reserved(name: str) -> bool:
    """Whether a page of the explorer has this address already, so that a model of this name could not be seen."""
    endings = tuple(f".{format}" for format in FIGURE_FORMATS)
    return name in _SITE_PAGES or name.startswith("favicon.") or name.endswith(endings)


def home() -> str:
    return "/"


def help_page(anchor: str = "") -> str:
    return "/-/help" + (f"#{quote(anchor)}" if anchor else "")


def model(name: str, **query: Any) -> str:
    return _url(f"/{_name(name)}", query, map=MAP)


def layer(name: str, layer: int, **query: Any) -> str:
    return _url(f"/{_name(name)}/layer/{layer}", query)


def ff(name: str, layer: int, neuron: int, **query: Any) -> str:
    return _url(f"/{_name(name)}/ff/{layer}/{neuron}", query, k=VECTOR_ENTRIES)


def head(name: str, layer: int, head: int, **query: Any) -> str:
    return _url(f"/{_name(name)}/head/{layer}/{head}", query)


def pairs(name: str, layer: int, head: int, matrix: str, **query: Any) -> str:
    return _url(f"/{_name(name)}/head/{layer}/{head}/{matrix}", query, k=PAIR_ENTRIES)


def subhead(name: str, layer: int, head: int, subhead: int, **query: Any) -> str:
    return _url(f"/{_name(name)}/head/{layer}/{head}/sub/{subhead}", query, k=VECTOR_ENTRIES)


def direction(name: str, layer: int, head: int, direction: int, **query: Any) -> str:
    """A singular direction of a head."""
    return _url(f"/{_name(name)}/head/{layer}/{head}/svd/{direction}", query, k=VECTOR_ENTRIES)


def vector(name: str, vector: Mapping[str, Any], **query: Any) -> str:
    """The page of a vector of any kind, which says its place (`app/views/vector_place.py`): its neuron's, its subhead's
    or its direction's."""
    layer, head = vector["layer"], vector["head"]
    if vector["direction"] is not None:
        return direction(name, layer, head, vector["direction"], **query)
    if vector["subhead"] is not None:
        return subhead(name, layer, head, vector["subhead"], **query)
    return ff(name, layer, vector["index"], **query)


def classifier(name: str, kind: str | None = None, index: int | None = None, **query: Any) -> str:
    """The labels of a classification head, or one of its vectors."""
    return _url(f"/{_name(name)}/classifier" + (f"/{kind}/{index}" if kind else ""), query, k=VECTOR_ENTRIES)


def token(name: str, token: int, **query: Any) -> str:
    return _url(f"/{_name(name)}/token/{token}", query)


def search(name: str, **query: Any) -> str:
    return _url(f"/{_name(name)}/search", query)


def seeds(name: str, **query: Any) -> str:
    return _url(f"/{_name(name)}/seeds", query, kind=SEED_KIND, k=SEED_RESULTS, heads=0)


def relation(name: str, **query: Any) -> str:
    return _url(f"/{_name(name)}/relation", query, matrix="vo")


def heads(name: str, **query: Any) -> str:
    """Words through heads."""
    return _url(f"/{_name(name)}/heads", query, layers=HEAD_LAYERS, end="top", k=HEAD_TOKENS)


def prompt(name: str, text: str = "", z: str | None = None, **query: Any) -> str:
    """A long text is packed."""
    text = unpack(z) if z else text
    texts = {"z": pack(text)} if len(quote(text)) > LONG_TEXT else {"text": text}
    return _url(
        f"/{_name(name)}/prompt",
        texts | query,
        panel="evolution",
        convention=CONVENTION,
        rows="heads",
        k=LIKELY_TOKENS,
        against="mean",
    )


def comparison(name: str, other: str, **query: Any) -> str:
    """Two models beside each other."""
    return _url(f"/{_name(name)}/vs/{_name(other)}", query)


def labels(name: str, **query: Any) -> str:
    """What people said of the model's parameters."""
    return _url(f"/{_name(name)}/labels", query)


def lab(name: str, **query: Any) -> str:
    """The paper's measurements."""
    return _url(f"/{_name(name)}/lab", query)


def paper(name: str, **query: Any) -> str:
    """The paper's lists beside ours."""
    return _url(f"/{_name(name)}/paper", query)


def random(name: str, **query: Any) -> str:
    """Without a lens it leads to the one that reads best, so that any lens is said."""
    return _url(f"/{_name(name)}/random", query, lens=None)


def turned(address: str, **changes: Any) -> str:
    """The same page with other arguments; None takes one away."""
    path, query = _split(address)
    return _url(path, {**query, **changes})


def content_type(format: str) -> str:
    return MEDIA_TYPES[format] if format == "json" else f"{MEDIA_TYPES[format]}; charset=utf-8"


def format_address(address: str, format: str) -> str:
    """The same page in another format: without arguments that only say how a page shows it, and of a CSV, which has
    all pages of a list, without the page."""
    if format == "html":
        return address
    path, _, query = address.partition("?")
    left_out = ("group", "map", "page") if format == "csv" else ("group", "map")
    kept = "&".join([argument for argument in query.split("&") if argument.partition("=")[0] not in left_out])
    return f"{'/index' if path == '/' else path}.{format}" + (kept and f"?{kept}")


def _url(path: str, query: Mapping[str, Any], **defaults: Any) -> str:
    """Arguments in the order given, then those that the links of this page take along; one that is None, empty or the
    default is left out."""
    defaults = DEFAULTS | defaults
    if taken := taken_along.get():
        query = {**query, **{name: value for name, value in taken.items() if name not in query}}
    arguments = [
        f"{name}={_escape(str(value))}"
        for name, value in query.items()
        if value is not None and value != "" and value != defaults.get(name)
    ]
    return f"{path}?{'&'.join(arguments)}" if arguments else path


def _escape(value: str) -> str:
    """Commas stay readable."""
    return value if value.isascii() and value.isalnum() else quote_plus(value, ",:*@")


_name = lru_cache(256)(quote)  # of the few models there are, in every link of a page


@lru_cache(64)
def _split(address: str) -> tuple[str, Mapping[str, str]]:
    """Path and arguments; a page changes the arguments of its own address many times."""
    path, _, query = address.partition("?")
    return path, dict(parse_qsl(query))
