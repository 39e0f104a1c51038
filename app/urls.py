"""Write the URL of every page: a path that names what the page shows, and a query without default values, so that one
view has one URL. Name the formats in which a page can be downloaded, and compress long texts for an address."""

import re
import zlib
from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Mapping
from contextvars import ContextVar
from dataclasses import dataclass
from functools import cached_property, lru_cache, partial
from types import MappingProxyType
from typing import Any
from urllib.parse import parse_qsl, quote, quote_plus

from lexiscope.precompute.errors import BadRequest
from lexiscope.precompute.shape import HEAD_KINDS

MOST_UNPACKED_BYTES = 1 << 20  # limit on the bytes of an unpacked text, because a short address can unpack to very much


def pack(text: str) -> str:
    deflater = zlib.compressobj(9, wbits=-15)
    packed = deflater.compress(text.encode()) + deflater.flush()
    return urlsafe_b64encode(packed).decode().rstrip("=")


def unpack(packed: str) -> str:
    inflater = zlib.decompressobj(wbits=-15)
    try:
        text = inflater.decompress(urlsafe_b64decode(packed + "=" * (-len(packed) % 4)), MOST_UNPACKED_BYTES)
        if not inflater.eof and len(text) == MOST_UNPACKED_BYTES:
            raise BadRequest(f"z is a long text, packed: this one has more than {MOST_UNPACKED_BYTES} bytes")
        if not inflater.eof or b"\0" in text:
            raise ValueError
        return text.decode()
    except (ValueError, zlib.error):
        raise BadRequest("z is a long text, packed: this one is damaged. Copy the whole address") from None


FORMATS = {
    "html": "text/html",
    "json": "application/json",
    "csv": "text/csv",
    "md": "text/markdown",
    "tex": "application/x-tex",
}  # the formats and their media types
DATA_FORMATS = tuple(format for format in FORMATS if format != "html")  # addresses of data end in .json, .csv and so on
MEDIA_TYPES = {**FORMATS, "svg": "image/svg+xml", "png": "image/png", "parquet": "application/vnd.apache.parquet"}
BINARY_FORMATS = ("png", "parquet")
FIGURE_FORMATS = (*DATA_FORMATS, "svg")  # of pages that also have a figure
PICTURE_FORMATS = (*DATA_FORMATS, "png")  # of pages that also have a picture, which chats show with a link
ALL_FORMATS = (*DATA_FORMATS, "svg", *BINARY_FORMATS)

DEFAULTS = {"lens": "dot", "preset": "all", "page": 1, "sort": "neuron"}

# Arguments that every link of the page being rendered gets, such as hubs=hide. app/html/rendering.py sets them.
taken_along: ContextVar[Mapping[str, str]] = ContextVar("taken_along", default=MappingProxyType({}))

# The model of the page being rendered and its pinned parameters, which go along to pages of that model alone.
pinned: ContextVar[tuple[str, str]] = ContextVar("pinned", default=("", ""))

_SITE_PAGES = ("docs", "index", "static", "help", "openapi.json", "robots.txt", "llms.txt", "-", "vs", "labels")


def is_reserved(name: str) -> bool:
    """Return True if a page of the site already has this address, so that no model may have this name."""
    endings = tuple(f".{format}" for format in ALL_FORMATS)
    return name in _SITE_PAGES or name.startswith("favicon.") or name.endswith(endings)


@dataclass(frozen=True)
class Declared:
    """What this module knows of a page: enough to write its address, and to read an address that was pasted."""

    pattern: str  # the path below the model: "ff/{layer:number}/{neuron:number}"
    left_out: Mapping[str, Any]  # the value of each argument that an address leaves out
    # A title for people: "Neuron {neuron} of layer {layer}", or "{MATRIX} of ..." in capitals. An address of a page
    # without a title does not open when it is pasted into the search.
    title: str = ""

    @cached_property
    def names(self) -> list[str]:
        """Return the names in the braces of the pattern, in order."""
        return [name for name, _ in _BRACES.findall(self.pattern)]

    @cached_property
    def _template(self) -> str:
        return _BRACES.sub("{}", self.pattern) and "/" + _BRACES.sub("{}", self.pattern)

    def path(self, *values: Any) -> str:
        """Return the part of the path after the model, with these values in the braces of the pattern."""
        if len(values) != len(self.names):
            raise TypeError(f"{self.pattern} takes {', '.join(self.names)}")
        return self._template.format(*(quote(value) if isinstance(value, str) else value for value in values))

    def read(self, path: str) -> dict[str, str] | None:
        """Return the values in the braces of a path, or None if the path belongs to another page."""
        match = _regex(self.pattern).fullmatch(path)
        return match and match.groupdict()


# Regular expressions for what may stand in the braces of a pattern. Nine digits hold every number of an index; Python
# refuses to read numbers of thousands of digits. A name is matched as short as possible, because a format may follow.
SEGMENTS = {"number": r"[0-9]{1,9}", "matrix": r"vo|qk", "head_kind": "|".join(HEAD_KINDS), "name": r"[^/-][^/]*?"}
_BRACES = re.compile(r"\{(\w+):(\w+)\}")
DECLARED: dict[str, Declared] = {}


@lru_cache(64)
def _regex(pattern: str) -> re.Pattern[str]:
    return re.compile(_BRACES.sub(lambda braces: f"(?P<{braces[1]}>{SEGMENTS[braces[2]]})", pattern), re.ASCII)


def link(name: str, model: str, *numbers: Any, **query: Any) -> str:
    """Return the address of a page by its name; `numbers` are the values in its path, in order. An argument is left out
    if it is None, empty or the page's default."""
    page = DECLARED[name]
    return write_query(f"/{_name(model)}{page.path(*numbers)}", query, page.left_out)


class Links:
    """Write links in templates: `url.neuron(model, layer, neuron, lens=lens)` is `link("neuron", model, ...)`. Names
    that are no page are functions of this module."""

    def __getattr__(self, name: str) -> Any:
        return partial(link, name) if name in DECLARED else globals()[name]


def vector(name: str, vector: Mapping[str, Any], **query: Any) -> str:
    """Return the address of the page of a vector (a dict with its place in the model): the page of its neuron, its
    subhead (channel of a head) or its singular direction."""
    layer, head = vector["layer"], vector["head"]
    if vector["direction"] is not None:
        return link("direction", name, layer, head, vector["direction"], **query)
    if vector["subhead"] is not None:
        return link("subhead", name, layer, head, vector["subhead"], **query)
    return link("neuron", name, layer, vector["index"], **query)


def turned(address: str, **changes: Any) -> str:
    """Return the address of the same page with other arguments; None removes an argument."""
    path, query = _split(address)
    return write_query(path, {**query, **changes}, DEFAULTS)


def content_type(format: str) -> str:
    return MEDIA_TYPES[format] if format in ("json", *BINARY_FORMATS) else f"{MEDIA_TYPES[format]}; charset=utf-8"


def format_address(address: str, format: str) -> str:
    """Return the address of the same page in another format, without arguments that only change how a page looks. A CSV
    has all pages of a list, so its address has no page number; a picture has the first words of the stored lists."""
    if format == "html":
        return address
    path, _, query = address.partition("?")
    left_out = ("group", "map", "pin", *_LEFT_OUT.get(format, ()))
    kept = "&".join([argument for argument in query.split("&") if argument.partition("=")[0] not in left_out])
    return f"{'/index' if path == '/' else path}.{format}" + (kept and f"?{kept}")


_LEFT_OUT = {"csv": ("page",), "parquet": ("page",), "png": ("k", "reading", "side")}


def write_query(path: str, query: Mapping[str, Any], defaults: Mapping[str, Any]) -> str:
    """Return a path with its arguments in the order given, then those that all links of this page get. An argument that
    is None, empty or its default is left out."""
    if taken := taken_along.get():
        query = {**query, **{name: value for name, value in taken.items() if name not in query}}
    model, pin = pinned.get()
    if pin and "pin" not in query and is_of_model(path, model):
        query = {**query, "pin": pin}
    arguments = [
        f"{name}={_escape(str(value))}"
        for name, value in query.items()
        if value is not None and value != "" and value != defaults.get(name)
    ]
    return f"{path}?{'&'.join(arguments)}" if arguments else path


def is_of_model(address: str, model: str) -> bool:
    """Return True if this is the address of a page of the model."""
    return f"{address.partition('?')[0]}/".startswith(f"/{_name(model)}/")


def _escape(value: str) -> str:
    """Escape a value for a query; commas stay as they are, to be readable."""
    return value if value.isascii() and value.isalnum() else quote_plus(value, ",:*@")


_name = lru_cache(256)(quote)  # every link of a page contains one of a few model names


@lru_cache(64)
def _split(address: str) -> tuple[str, Mapping[str, str]]:
    """Split an address into path and arguments; the result is cached, because a page changes the arguments of its own
    address many times."""
    path, _, query = address.partition("?")
    return path, dict(parse_qsl(query))
