"""A page: its path, its arguments, its view and the function that makes the view.

A noun's module declares a `Page`. The site makes routes from pages (app/routes/page_routes.py); search, `show`, the
notebook and /docs use the same pages; nothing lists all of them: `find_pages` looks into this folder."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from pkgutil import iter_modules
from typing import Annotated, Any, ClassVar, Generic, Literal, Self, TypeVar

from pydantic import BaseModel, ConfigDict, Field, model_validator

from lexiscope.app.addresses import DATA_FORMATS, DECLARED, Declared, link
from lexiscope.app.library.library import Library
from lexiscope.app.views.hubs import hubs_of
from lexiscope.app.views.tokens import View
from lexiscope.precompute.index.index import Index


class Address(BaseModel):
    """What the path of a page says below its model, such as the numbers of a neuron; its fields are in the pattern."""

    model_config = ConfigDict(frozen=True)
    pattern: ClassVar[str]  # "ff/{layer:number}/{neuron:number}"


class Arguments(BaseModel):
    """The arguments of a page's address, in the order in which addresses have them."""

    model_config = ConfigDict(frozen=True, extra="ignore", populate_by_name=True)  # FastAPI hands over the whole query
    usual: ClassVar[Mapping[str, Any]] = {}  # values that an address leaves out, besides defaults

    @model_validator(mode="before")
    @classmethod
    def _leave_out_empty(cls, values: Any) -> Any:
        """Forms send an empty argument where nothing was chosen: its default holds then."""
        return {name: value for name, value in values.items() if value != ""} if isinstance(values, dict) else values

    @classmethod
    def left_out(cls) -> dict[str, Any]:
        """The value of each argument that an address does not say."""
        return {field.alias or name: cls.usual.get(name, field.default) for name, field in cls.model_fields.items()}


class LensArguments(Arguments):
    """Arguments of a page of stored lists. Before the page's function is called, `with_lens` says the lens."""

    lens: Annotated[
        Literal["dot", "cosine"],
        Field(
            description="How a score is read: `dot` as in the paper, `cosine` with token embeddings centred and "
            "scaled. If it is not given: `dot`, or `cosine` where that alone is stored"
        ),
    ] = None  # type: ignore[assignment]  # until with_lens says it
    usual: ClassVar[Mapping[str, Any]] = {"lens": "dot"}

    def with_lens(self, index: Index) -> Self:
        """Say the lens: if none is asked for, it is the first that the index has."""
        return self if self.lens else self.model_copy(update={"lens": index.stored.lens})


@dataclass(frozen=True, kw_only=True)
class Site:
    """What a page's function may read besides the address and the arguments."""

    index: Index
    library: Library
    hide_hubs: bool = False
    answers: Sequence[Any] = ()  # the worker's, to what the page's `asks` gave

    def hubs(self, lens: str) -> frozenset[int]:
        """The tokens that the page leaves out of its lists."""
        return hubs_of(self.index, lens) if self.hide_hubs else frozenset()


A = TypeVar("A", bound=Address)
Q = TypeVar("Q", bound=Arguments)
V = TypeVar("V", bound=View)


def _nothing(*_: Any) -> Any:
    return ()


@dataclass(frozen=True, kw_only=True)
class Page(Generic[A, Q, V]):
    """A page, declared. Declaring it lets `link` write its addresses."""

    name: str
    title: str  # of the page in a list of results: "Neuron {neuron} of layer {layer}"
    at: type[A]
    arguments: type[Q]
    view: type[V]
    make: Callable[[Site, A, Q], V]  # its docstring is the page's description in /docs
    asks: Callable[[Site, A, Q], Sequence[Any]] = _nothing  # what a worker must answer first
    version: Callable[[Site], str] = lambda _: ""  # what the view depends on, besides the address and the index
    formats: tuple[str, ...] = DATA_FORMATS
    template: str = ""  # if it has another name

    def __post_init__(self) -> None:
        DECLARED[self.name] = Declared(self.at.pattern, self.arguments.left_out(), self.title)
        _PAGES[self.name] = self

    def address(self, model: str, at: A, ask: Q) -> str:
        """The page's address: one view has one address, so that what is usual is left out."""
        return link(self.name, model, *dict(at).values(), **ask.model_dump(by_alias=True))


_PAGES: dict[str, Page[Any, Any, Any]] = {}


@cache
def find_pages() -> Mapping[str, Page[Any, Any, Any]]:
    """All pages by their names, longest patterns first: of two that fit a path, the longer one is meant."""
    package = import_module("lexiscope.app.pages")
    for module in iter_modules(package.__path__):
        import_module(f"{package.__name__}.{module.name}")
    return dict(sorted(_PAGES.items(), key=lambda item: item[1].at.pattern.count("/"), reverse=True))
