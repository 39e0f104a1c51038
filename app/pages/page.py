"""Declare a page: its path, its arguments, its view and the function that makes the view.

A noun's module declares a `Page`. The site makes routes from pages (app/site/routes.py); search, `show`, the notebook
and /docs use the same pages; nothing lists all of them: `find_pages` looks into this folder."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from importlib import import_module
from pkgutil import walk_packages
from typing import Annotated, Any, ClassVar, Generic, Literal, Self, TypeAlias, TypeVar

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from lexiscope.app.html.glossary import tip
from lexiscope.app.library.library import Library
from lexiscope.app.lists.hubs import hubs_of
from lexiscope.app.lists.view import ShownError, View
from lexiscope.app.settings import Settings
from lexiscope.app.urls import DATA_FORMATS, DECLARED, Declared, link
from lexiscope.precompute.errors import BadRequest
from lexiscope.precompute.index.index import Index
from lexiscope.precompute.live.wire.fields import Ask
from lexiscope.precompute.shape import PRESETS, Preset


class Address(BaseModel):
    """The values in the path of a page below its model, such as the numbers of a neuron; the pattern names the
    fields."""

    model_config = ConfigDict(frozen=True)
    pattern: ClassVar[str]  # "ff/{layer:number}/{neuron:number}"


B = TypeVar("B", bound=BaseModel)


def checked(asked: type[B], values: Mapping[str, Any]) -> B:
    """Return the model with these values; BadRequest names a wrong argument."""
    try:
        return asked.model_validate(values)
    except ValidationError as error:
        wrong = [f"{fault['loc'][0]} = {str(fault['input'])[:100]!r}: {fault['msg']}" for fault in error.errors()]
        raise BadRequest("; ".join(wrong)) from None


class Arguments(BaseModel):
    """The arguments of a page's address, in the order in which addresses have them."""

    model_config = ConfigDict(frozen=True, extra="ignore", populate_by_name=True)  # FastAPI hands over the whole query
    usual: ClassVar[Mapping[str, Any]] = {}  # values that an address leaves out, besides defaults
    # Arguments that only a CSV takes, so that the address of its page leaves them out.
    of_csv: ClassVar[tuple[str, ...]] = ()

    @model_validator(mode="before")
    @classmethod
    def _leave_out_empty(cls, values: Any) -> Any:
        """Remove empty arguments, which forms send if nothing was chosen, so that defaults apply."""
        return {name: value for name, value in values.items() if value != ""} if isinstance(values, dict) else values

    def query(self) -> dict[str, Any]:
        """Return the arguments as an address has them."""
        return self.model_dump(by_alias=True, exclude={*self.of_csv})

    @classmethod
    def left_out(cls) -> dict[str, Any]:
        """Return the value of each argument that an address leaves out."""
        return {
            field.alias or name: cls.usual.get(name, field.default)
            for name, field in cls.model_fields.items()
            if name not in cls.of_csv
        }


class LensArguments(Arguments):
    """Arguments of a page of stored lists. Before the page's function is called, `with_lens` sets the lens."""

    lens: Annotated[
        Literal["dot", "cosine"],
        Field(
            description="How a score is read: `dot` as in the paper, `cosine` with token embeddings centred and "
            "scaled. If it is not given: `dot`, or `cosine` where that alone is stored"
        ),
    ] = None  # type: ignore[assignment]  # only before with_lens sets it
    usual: ClassVar[Mapping[str, Any]] = {"lens": "dot"}

    def with_lens(self, index: Index) -> Self:
        """Set the lens: if none is asked for, it is the first that the index has."""
        return self if self.lens else self.model_copy(update={"lens": index.stored.lens})


# Arguments that several pages take.
AnyPreset: TypeAlias = Annotated[
    Preset, Field(description="Which pairs compete. " + " ".join(f"`{preset}`: {tip(preset)}" for preset in PRESETS))
]
AnyReading: TypeAlias = Annotated[
    Literal["norm", "mlp"] | None,
    Field(description="Beside the stored lists, the worker's: norms folded in, or tokens after the first MLP"),
]
PageNumber: TypeAlias = Annotated[
    int, Field(ge=1, description="Which page of a long list, from 1; a `.csv` has all of them")
]
VectorKind: TypeAlias = Literal[
    "ff_key", "ff_up", "ff_value", "w_q", "w_k", "w_v", "w_o", "vo_in", "vo_out", "qk_query", "qk_key"
]  # fmt: skip
AnyKind: TypeAlias = Literal[VectorKind, "vo", "qk"]


def entries_shown(usual: int) -> Any:
    """Describe the argument `k` of a page that shows so many entries of each list if it is not given."""
    return Field(ge=1, description=f"Entries per list, up to what the index stores; {usual} if not given")


class Moved(Exception):
    """What was asked for is at another address of the site. A page's function raises it; `by_chance` says that next
    time it may be at another one."""

    def __init__(self, address: str, *, by_chance: bool = False) -> None:
        super().__init__(address)
        self.address = address
        self.by_chance = by_chance


@dataclass(frozen=True, kw_only=True)
class Site:
    """What a page's function may read besides the address and the arguments."""

    library: Library
    hide_hubs: bool = False
    format: str = "json"  # the format in which the view will leave; "events" if its progress is followed
    part: str = ""  # the page's part, if the browser asks for that alone
    settings: Settings = field(default_factory=Settings.model_construct)
    serves: Callable[[str], bool] = lambda _: False  # tells whether a worker answers for a model
    rows: int | Literal["all"] | None = None  # rows on a page of a list, if not as in the settings
    prepare: Callable[[str], None] = lambda _: None  # starts the worker of a model that will be asked soon
    answers: Sequence[Any] = ()  # the worker's answers to what the page's `asks` gave
    error: ShownError | None = None  # why there is no answer, if the page is made without one (`made_without_answers`)

    def window(self, page: int, rows: int) -> tuple[int, int | None]:
        """Return which page of a list to show, and of how many rows: a CSV is one page with all rows."""
        return (1, None) if self.format == "csv" or self.rows == "all" else (page, self.rows or rows)


@dataclass(frozen=True, kw_only=True)
class ModelSite(Site):
    """What the function of a model's page may read."""

    index: Index

    def hubs(self, lens: str) -> frozenset[int]:
        """Return the tokens that the page leaves out of its lists."""
        return hubs_of(self.index, lens) if self.hide_hubs else frozenset()


@dataclass(frozen=True, kw_only=True)
class TwoModelsSite(Site):
    """What the function of a page of two models may read; the address names both, and neither needs an index."""

    model: str
    other: str


A = TypeVar("A", bound=Address)
Q = TypeVar("Q", bound=Arguments | Ask[Any])  # for a live page, what is asked of its worker
V = TypeVar("V", bound=View)


def _nothing(*_: Any) -> Any:
    return ()


@dataclass(frozen=True, kw_only=True)
class Page(Generic[A, Q, V]):
    """The declaration of a page. Declaring it lets `link` write its addresses."""

    name: str
    title: str  # the title of the page in a list of results: "Neuron {neuron} of layer {layer}"
    at: type[A]
    arguments: type[Q]
    view: type[V]
    make: Callable[[Any, A, Q], V]  # takes a Site or ModelSite; its docstring is the page's description in /docs
    # Returns what workers must answer first: asks for the worker of the page's model, or (model, ask) for that of
    # another. A generator is sent the answer to each ask before it gives the next one.
    asks: Callable[[Any, A, Q], Iterable[Any]] = _nothing
    version: Callable[[Any], str] = lambda _: ""  # returns what the view depends on, besides the address and the index
    formats: tuple[str, ...] = DATA_FORMATS
    # Returns the formats, if some arguments have fewer; the site answers NotFound for another format.
    formats_of: Callable[[Any, Q], tuple[str, ...]] | None = None
    template: str = ""  # the name of the template, if it is not the page's name
    # "suggestions", if the page has them: the browser may ask for this part alone, and `_{part}` shows it.
    part: str = ""
    of: Literal["model", "two models", "site"] = "model"  # the function gets a ModelSite, TwoModelsSite or Site
    is_live: bool = False  # whether a model without a worker has no such page
    has_events: bool = False  # whether the page's progress can be followed at `path.events`
    stages: Mapping[str, str] = field(default_factory=dict)  # texts for visitors by stage of the worker
    is_slow: bool = False  # whether the page reads so much that it is made in a thread, so that others are served
    # Whether a worker's error is shown on the page, instead of answering with that error.
    made_without_answers: bool = False
    leads_to: str = ""  # where the page may redirect (Moved), for /docs
    # What a notebook says of the page and how to get it there, with the numbers of its path in braces.
    in_python: str = ""

    def __post_init__(self) -> None:
        DECLARED[self.name] = Declared(self.at.pattern, self.arguments.left_out(), self.title)
        _PAGES[self.name] = self

    def address(self, model: str, at: A, ask: Q) -> str:
        """Return the page's address. Usual values are left out, so that one view has one address."""
        return link(self.name, model, *dict(at).values(), **ask.query())

    def view_of(self, site: Any, at: A, values: Mapping[str, Any]) -> V:
        """Make the view from arguments by their names; None stands for one that is not given."""
        return self.make(site, at, self.ask_of(site, values))

    def ask_of(self, site: Any, values: Mapping[str, Any]) -> Q:
        """Check arguments by their names, and say the lens; None stands for an argument that is not given."""
        ask = checked(self.arguments, {name: value for name, value in values.items() if value is not None})
        if isinstance(ask, LensArguments) and isinstance(site, ModelSite):
            ask = ask.with_lens(site.index)
        return ask


_PAGES: dict[str, Page[Any, Any, Any]] = {}


@cache
def find_pages() -> Mapping[str, Page[Any, Any, Any]]:
    """Return all pages by their names: those of the site first, then the longest patterns. If two patterns fit a path,
    the first is meant."""
    package = import_module("lexiscope.app.pages")
    for module in walk_packages(package.__path__, f"{package.__name__}."):
        import_module(module.name)

    def order(page: Page[Any, Any, Any]) -> tuple[bool, int]:
        return page.of != "site", -len(list(filter(None, page.at.pattern.split("/"))))

    return dict(sorted(_PAGES.items(), key=lambda item: order(item[1])))
