"""A page as a row of a table: its address, its arguments, and the function that makes its view.
The rows are in pages.py; answering with one is for answers.py, documenting it for openapi_docs.py."""

import inspect
from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any, get_type_hints
from urllib.parse import parse_qsl

from fastapi.exceptions import RequestValidationError
from fastapi.params import Query
from pydantic import BaseModel, ConfigDict, ValidationError, create_model
from starlette.requests import Request

from app.routes.arguments import FACES, Model
from app.site import Site
from app.views.tokens import View
from precompute.errors import BadRequest
from precompute.index.index import Index

_SHORT = 48  # bytes
_KEYWORD = inspect.Parameter.KEYWORD_ONLY


@dataclass(slots=True)
class Call:
    """What a page's function gets besides the arguments in the address."""

    site: Site
    opened: Index | None  # of the model in the path
    suggesting: bool = False  # asked while somebody types
    request: Request | None = None  # the visitor's, so that live work ends when the visitor leaves
    whole: bool = False  # all pages of a list at once

    @property
    def index(self) -> Index:
        assert self.opened, "a page without a model has no index"
        return self.opened

    @property
    def model(self) -> str:
        return self.index.manifest.model

    def part(self, page: int, size: int) -> tuple[int, int | None]:
        """Which page of a list, and of how many rows; or the only one, of all."""
        return (1, None) if self.whole else (page, size)

    def entries(self, asked: int | None, usual: int, stored: int) -> int:
        if asked is not None and asked > stored:
            raise BadRequest(f"k = {asked}: lists of {self.model} hold {stored} entries, so k goes from 1 to {stored}")
        return asked or usual


class Elsewhere(Exception):
    """What was asked for has another address; its face stays the same."""

    def __init__(self, address: str) -> None:
        super().__init__(address)
        self.address = address


def _no_more(call: Call, arguments: Mapping[str, Any]) -> str:
    del call, arguments
    return ""


@dataclass(frozen=True)
class Page:
    path: str  # as routes have it, without the face
    address: Callable[..., str]  # in addresses.py: from the model's name, if it has one, and the arguments
    make: Callable[..., View | Awaitable[View]]  # awaitable where a worker is asked
    entries: int | None  # what k is when it is left out
    faces: tuple[str, ...] = FACES  # besides the page for people
    many: frozenset[str] = frozenset()  # arguments that may be repeated, or hold several values between commas
    state: Callable[[Call, Mapping[str, Any]], str] = _no_more  # what its view depends on besides index and address

    @property
    def name(self) -> str:
        """Of its route and its template."""
        return self.make.__name__

    @cached_property
    def signature(self) -> inspect.Signature:
        """Of the arguments in the address, as FastAPI reads it."""
        hints = get_type_hints(self.make, include_extras=True)
        declared = list(inspect.signature(self.make).parameters.values())[1:]  # the first is the Call
        named = [inspect.Parameter("model", _KEYWORD, annotation=Model)] if "{model:" in self.path else []
        return inspect.Signature([*named, *(p.replace(annotation=hints[p.name], kind=_KEYWORD) for p in declared)])

    @cached_property
    def shape(self) -> type[View]:
        shape: type[View] = get_type_hints(self.make)["return"]
        return shape

    @cached_property
    def defaults(self) -> Mapping[str, Any]:
        return {name: p.default for name, p in self.signature.parameters.items() if _is_query(p)}

    @cached_property
    def _query(self) -> type[BaseModel]:
        fields: dict[str, Any] = {
            name: (p.annotation, p.default) for name, p in self.signature.parameters.items() if _is_query(p)
        }
        return create_model(f"{self.name}_query", __config__=ConfigDict(extra="ignore"), **fields)

    def parse(self, query: bytes) -> Mapping[str, Any]:
        """The arguments of a query; one that is empty, as forms send it, or unknown, is as if it were not there."""
        if not query:
            return self.defaults
        return self._known(query) if len(query) < _SHORT else self._parsed(query)

    @cached_property
    def _known(self) -> Callable[[bytes], Mapping[str, Any]]:
        """Most queries are one of a few, such as lens=cosine; long ones, such as a text to run, are not kept."""
        return lru_cache(256)(self._parsed)

    def _parsed(self, query: bytes) -> Mapping[str, Any]:
        said = parse_qsl(query.decode("utf-8", "replace"))
        if self.many:
            said = _joined(said, self.many)
        try:
            return self._query.model_validate(dict(said)).__dict__
        except ValidationError as error:
            raise RequestValidationError(error.errors()) from None

    def canonical(self, model: str | None, arguments: Mapping[str, Any]) -> str:
        """The one address of what these arguments show."""
        if self.entries is not None and arguments["k"] == self.entries:
            arguments = {**arguments, "k": None}
        if arguments.get("q") == "":
            arguments = {**arguments, "q": None}
        return self.address(model, **arguments) if model is not None else self.address(**arguments)


def page(
    path: str,
    address: Callable[..., str],
    entries: int | None = None,
    faces: tuple[str, ...] = FACES,
    many: Iterable[str] = (),
    state: Callable[[Call, Mapping[str, Any]], str] = _no_more,
) -> Callable[[Callable[..., View | Awaitable[View]]], Page]:
    """Makes a row of the table from a function (Call, arguments) -> View; its docstring documents the page."""
    return lambda make: Page(path, address, make, entries, faces, frozenset(many), state)


def _joined(said: Iterable[tuple[str, str]], many: Collection[str]) -> list[tuple[str, str]]:
    """With the values of a repeated argument, as forms send several, in one."""
    kept: dict[str, str] = {}
    for name, value in said:
        kept[name] = f"{kept[name]},{value}" if name in many and name in kept else value
    return list(kept.items())


def _is_query(parameter: inspect.Parameter) -> bool:
    return any(isinstance(about, Query) for about in getattr(parameter.annotation, "__metadata__", ()))
