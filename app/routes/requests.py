"""What is read from a request's headers: who asks for which part of a page, and under which address we are known.
The arguments in its address are for routes/arguments.py."""

from starlette.requests import Request

from lexiscope.app.settings import HOST, Settings

VARY = "HX-Request, HX-Request-Type, HX-Target"


def header(request: Request, name: bytes) -> str:
    """The first of this name, which is in lower case; "" if there is none."""
    for key, value in request.scope["headers"]:
        if key == name:
            return str(value, "latin-1")
    return ""


def is_partial(request: Request) -> bool:
    """htmx swaps a part of the page that is there: only the block `content` is of use."""
    return header(request, b"hx-request-type") == "partial"


def wants_suggestions(request: Request) -> bool:
    return is_partial(request) and "suggestions" in header(request, b"hx-target")


def origin_of(request: Request, settings: Settings) -> str:
    """scheme://host under which the site is known: as the setting says, else as the visitor asked; "" if that is no
    host."""
    host = header(request, b"host")
    return settings.url or (f"{request.scope['scheme']}://{host}" if HOST.fullmatch(host) else "")


def has_etag(request: Request, etag: str) -> bool:
    """Whether the visitor holds this version already. A `*` says nothing about which one, so it gets the page."""
    return etag in header(request, b"if-none-match")
