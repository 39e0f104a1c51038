"""Answer a request for a page: turn the page's data into the format that was asked for, or answer 304 if the visitor
already has this version."""

import hashlib
from collections.abc import Callable, Coroutine, Mapping
from contextlib import suppress
from typing import Annotated, Any, Literal

from fastapi import Depends
from fastapi.routing import APIRoute
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from lexiscope.app.formats.json_format import json_bytes
from lexiscope.app.formats.tables import view_csv, view_parquet, view_text
from lexiscope.app.html.rendering import PageRequest
from lexiscope.app.library.labels import ModelLabels
from lexiscope.app.library.library import Library
from lexiscope.app.lists.kept_tokens import ALL_TOKENS, KeptTokens, keep_tokens
from lexiscope.app.lists.view import ShownError, View
from lexiscope.app.live.client import LiveClient
from lexiscope.app.settings import HOST, Settings
from lexiscope.app.site.dependencies import (
    AskedBuild,
    AskedPin,
    AskedPreset,
    AskedTokens,
    AskedVocabulary,
    ComparedModel,
    Hubs,
    Model,
    SiteLibrary,
    best_lenses,
    check_build,
    index_of,
    kept_tokens,
    read_pins,
)
from lexiscope.app.urls import DATA_FORMATS, MEDIA_TYPES, content_type, format_address, is_of_model, link, turned
from lexiscope.precompute.errors import IndexFault, LexiscopeError
from lexiscope.precompute.index.index import Index
from lexiscope.precompute.live.wire.errors import LiveOff

VARY = "HX-Request, HX-Request-Type, HX-Target"


def header(request: Request, name: bytes) -> str:
    """Return the first header of this name, which is given in lower case; "" if there is none."""
    for key, value in request.scope["headers"]:
        if key == name:
            return str(value, "latin-1")
    return ""


def is_partial(request: Request) -> bool:
    """Return True if htmx asks only for a part of the page, the block `content`."""
    return header(request, b"hx-request-type") == "partial"


def wants_suggestions(request: Request) -> bool:
    return is_partial(request) and "suggestions" in header(request, b"hx-target")


def origin_of(request: Request, settings: Settings) -> str:
    """Return the scheme://host of the site: that of the setting, else the one in the visitor's request; "" if that is
    no host."""
    host = header(request, b"host")
    return settings.url or (f"{request.scope['scheme']}://{host}" if HOST.fullmatch(host) else "")


def has_etag(request: Request, etag: str) -> bool:
    """Return True if the visitor's browser already has this version of the page. The header `*` names no version, so
    the answer is then False."""
    return etag in header(request, b"if-none-match")


class NotModified(Exception):
    """An exception that ends the request with 304, because the visitor already has this version of the page."""

    def __init__(self, headers: Mapping[str, str]) -> None:
        super().__init__()
        self.headers = headers


class PageRoute(APIRoute):
    """Repeat a request that failed because a file of the index was replaced meanwhile: the library then opens it
    anew."""

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        answer = super().get_route_handler()

        async def answer_again(request: Request) -> Response:
            try:
                return await answer(request)
            except IndexFault:
                return await answer(request)

        return answer_again


class PageAnswer:
    """The answer to one request for a page. Call `at` first, with the page's address, then `show` with its data."""

    def __init__(
        self, request: Request, index: Index | None = None, hubs: Literal["hide"] | None = None,
        kept: KeptTokens = ALL_TOKENS, build: str = "", pins: str = "",
    ) -> None:  # fmt: skip
        self.request = request
        self.hubs = hubs
        self.kept = kept
        self.build = build  # the build of the index that the visitor asks for, which it has; "" if any will do
        self.pins = pins  # the parameters whose words go along, for people
        self.format: str = request.path_params.get("format", "html")
        self.is_partial = self.format == "html" and is_partial(request)
        self.wants_suggestions = self.is_partial and wants_suggestions(request)
        self.index = index
        self._state = request.app.state
        self._origin = origin_of(request, self._state.settings)
        self.address, self._etag = "", ""
        self._formats: tuple[str, ...] = DATA_FORMATS

    @property
    def model(self) -> str:
        """Return the name of the model in the path; "" for a page about no model."""
        return self.index.manifest.model if self.index else self.request.path_params.get("model", "")

    @property
    def live(self) -> LiveClient:
        client: LiveClient = self._state.live
        return client

    def at(self, address: str, formats: tuple[str, ...] = DATA_FORMATS, also: str = "") -> None:
        """Set the canonical address of the page. Raise NotModified if the visitor already has this version.

        `also` is a text that changes with what the page depends on besides the address and the index.
        """
        self.address, self._formats = self._with_kept(address), formats
        self._etag = self._make_etag(also)
        if has_etag(self.request, self._etag):
            raise NotModified(self._headers())

    async def show(self, template: str, view: View, error: ShownError | None = None) -> Response:
        """Return the response with the page's data in the format that was asked for. `error` is an error of a part of
        the page, which the page shows; browsers may not keep such a page."""
        if self.index and self.index.changed:
            raise IndexFault("a file of the index was replaced while it was read. Ask again: it is opened anew")
        headers = self._headers() | {"link": self._links()}
        if error:
            del headers["etag"]
            headers |= error.headers
        if self.format != "html":
            view = self._keep_tokens(view)
        match self.format:
            case "json":
                body = json_bytes(view)
            case "csv" | "parquet":
                chunks = await run_in_threadpool(view_csv if self.format == "csv" else view_parquet, view)
                streamed: Response = self._state.streams.response(chunks, content_type(self.format), headers)
                return streamed
            case "svg":
                body = self._state.renderer.figure(template, view, self.address).encode()
            case "png":
                body = await self._state.pictures.png(self._etag, view.picture())
            case "md" | "tex":
                body = view_text(self.format, view, self._origin + self.address, self.index).encode()
            case _:
                body = self.html(template, view, self.is_partial).encode()
        return Response(body, error.status if error else 200, headers, content_type(self.format))

    def html(self, template: str, view: View, partial: bool) -> str:
        view = self._keep_tokens(view)
        rendered: str = self._state.renderer.page(template, partial, view, self._page_request(view))
        return rendered

    def redirect(self, address: str, by_chance: bool = False) -> Response:
        """Redirect to another page, in the format that was asked for. Browsers may not keep an address that was chosen
        at random."""
        headers = {"cache-control": "no-store" if by_chance else "no-cache", "vary": VARY}
        return RedirectResponse(format_address(self._with_kept(address), self.format), 303, headers)

    def _with_kept(self, address: str) -> str:
        """Return an address with the arguments that every page of a model takes."""
        asked = {"hubs": self.hubs, **self.kept.query(), "build": self.build}
        if self.format in ("html", "events") and is_of_model(address, self.model):
            asked["pin"] = self.pins
        return turned(address, **asked) if any(asked.values()) else address

    def _keep_tokens(self, view: View) -> View:
        return keep_tokens(self.index, view, bool(self.hubs), self.kept) if self.index else view

    def _headers(self) -> dict[str, str]:
        headers = {"cache-control": "no-cache", "etag": self._etag, "vary": VARY}
        if self.index:  # the lists stay the same until the next build
            headers["x-lexiscope-build"] = self.index.manifest.build
        return headers

    def _links(self) -> str:
        """Write the header that links to the page's own address and its other formats."""
        links = [f'<{self.address}>; rel="canonical"']
        for format, address in self._format_addresses().items():
            links.append(f'<{address}>; rel="alternate"; type="{MEDIA_TYPES[format]}"')
        return ", ".join(links)

    def _pinned(self) -> str:
        """Return the address of the page with the build of its index; that of two models has none."""
        if self.index is None or "other" in self.request.path_params:
            return ""
        return turned(self.address, build=self.index.manifest.build)

    def _format_addresses(self) -> dict[str, str]:
        return {format: format_address(self.address, format) for format in self._formats}

    def _page_request(self, view: View) -> PageRequest:
        models = best_lenses(self._state.library)
        shown = self.index.manifest.model if self.index else view.chosen_model
        difference = self._state.library.two_models(self.index) if self.index else None
        return PageRequest(
            path=self.request.url.path,
            canonical=self.address,
            origin=self._origin,
            pinned=self._pinned(),
            formats=self._format_addresses(),
            index=self.index,
            models=models,
            comparisons=_comparisons(self._state.library, shown) if self.index else {},
            own_lens=getattr(view, "lens", ""),
            difference=difference,
            can_run=frozenset(each.index for each in difference or () if each.index and self.live.serves(each.index)),
            vocabularies=self._state.library.vocabularies.names() if self.index else (),
            labels=self._state.library.labels.of(self.index) if self.index else ModelLabels(),
            live=shown is not None and self.live.serves(shown),
        )

    def _make_etag(self, also: str) -> str:
        """Make a strong ETag, which changes whenever the bytes of the answer may change. No list of the index is read
        for it."""
        index_version = self.index.version if self.index else self._state.library.version()
        part = "suggestions" if self.wants_suggestions else "partial" if self.is_partial else self.format
        compared = self._state.library.comparisons.version()
        labels = self._state.library.labels.version()
        vocabulary = str(self.kept.vocabulary and self.kept.vocabulary.stamp)
        facts = [self._state.version, index_version, compared, labels, self.address, part, also, vocabulary]
        if self.format not in ("json", "csv", "png", "parquet"):
            facts.append(self._origin)  # the others hold links with the origin of the site
        if self.format == "html":
            facts += map(" ".join, best_lenses(self._state.library).items())
            facts += self._state.library.vocabularies.names()
        return f'"{hashlib.blake2b(chr(10).join(facts).encode(), digest_size=12).hexdigest()}"'


def _comparisons(library: Library, model: str | None) -> dict[str, str]:
    """Return the other models that this one is compared with, each with the address of the comparison."""
    cards = [card for card in library.comparisons.cards() if model in (card.a, card.b) and card.a != card.b]
    return {
        card.b if card.a == model else card.a: link("comparison", card.a, card.b)
        # If two models are compared both ways, the comparison that begins with this model is taken.
        for card in sorted(cards, key=lambda card: card.a == model)
    }


async def page_of_site(request: Request) -> PageAnswer:
    return PageAnswer(request)


async def page_of_model(
    request: Request, model: Model, hubs: Hubs = None, preset: AskedPreset = "all", vocabulary: AskedVocabulary = "",
    build: AskedBuild = "", pin: AskedPin = "",
) -> PageAnswer:  # fmt: skip
    """Begin the answer to a request for a page of a model. It asks for no other dependency, because FastAPI takes about
    as long for one as the page for a vector."""
    index = await index_of(model, request)
    check_build(request, index, build)
    return PageAnswer(
        request, index, hubs, await kept_tokens(request, preset, vocabulary), build, read_pins(index, pin)
    )


async def page_of_two(
    request: Request,
    library: SiteLibrary,
    model: ComparedModel,
    kept: AskedTokens,
    hubs: Hubs = None,
    pin: AskedPin = "",
) -> PageAnswer:
    """Begin the answer to a request for a page of two models. The first may have an index here; a comparison does not
    need one."""
    index: Index | None = None
    with suppress(LexiscopeError):
        index = library.index(model)
    return PageAnswer(request, index, hubs, kept, pins=read_pins(index, pin) if index else "")


ModelPage = Annotated[PageAnswer, Depends(page_of_model)]


async def live_page(answer: ModelPage) -> PageAnswer:
    """Raise the error at once if no worker can run the model, even for a page that has only a form."""
    if not answer.live.serves(answer.model):
        raise LiveOff(answer.live.why_off(answer.model))
    return answer


SitePage = Annotated[PageAnswer, Depends(page_of_site)]
LivePage = Annotated[PageAnswer, Depends(live_page)]
TwoModelsPage = Annotated[PageAnswer, Depends(page_of_two)]
