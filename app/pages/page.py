"""Declare a page: its path, its arguments, the type of its data (its view), and the function that makes the view.

Each module of this folder declares a `Page`. The site makes routes from pages (app/site/routes.py); search, `show`, the
notebook and /docs use the same pages. No list of pages is written anywhere: `find_pages` looks into this folder.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from importlib import import_module
from pkgutil import walk_packages
from typing import Annotated, Any, ClassVar, Generic, Literal, Self, TypeAlias, TypeVar

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from lexiscope.app.html.glossary import tip
from lexiscope.app.library.library import Library
from lexiscope.app.lists.kept_tokens import ALL_TOKENS, KeptTokens, hubs_of
from lexiscope.app.lists.view import ShownError, View
from lexiscope.app.settings import Settings
from lexiscope.app.urls import DATA_FORMATS, DECLARED, Declared, link
from lexiscope.precompute.errors import BadRequest
from lexiscope.precompute.index.index import Index
from lexiscope.precompute.live.wire.asks import Reading
from lexiscope.precompute.live.wire.fields import Ask
from lexiscope.precompute.shape import PRESETS, Preset


class Address(BaseModel):
    """The values in the path of a page after its model, such as the numbers of a layer and a neuron. The pattern of the
    path names these fields."""

    model_config = ConfigDict(frozen=True)
    pattern: ClassVar[str]  # "ff/{layer:number}/{neuron:number}"


B = TypeVar("B", bound=BaseModel)


def checked(asked: type[B], values: Mapping[str, Any]) -> B:
    """Return an object of this pydantic class with these values; BadRequest names a wrong argument."""
    try:
        return asked.model_validate(values)
    except ValidationError as error:
        wrong = [f"{each['loc'][0]} = {str(each['input'])[:100]!r}: {each['msg']}" for each in error.errors()]
        raise BadRequest("; ".join(wrong)) from None


class Arguments(BaseModel):
    """The arguments in the query of a page's address, in the order in which addresses have them."""

    # unknown arguments are ignored, because FastAPI passes the whole query
    model_config = ConfigDict(frozen=True, extra="ignore", populate_by_name=True)
    usual: ClassVar[Mapping[str, Any]] = {}  # values that an address leaves out, besides default values
    # Arguments that only a CSV takes, so that the address of its page leaves them out.
    of_csv: ClassVar[tuple[str, ...]] = ()

    @model_validator(mode="before")
    @classmethod
    def _leave_out_empty(cls, values: Any) -> Any:
        """Remove empty arguments, which forms send if nothing was chosen, so that default values apply."""
        return {name: value for name, value in values.items() if value != ""} if isinstance(values, dict) else values

    def query(self) -> dict[str, Any]:
        """Return the arguments as they are written in an address."""
        return self.model_dump(by_alias=True, exclude={*self.of_csv})

    @classmethod
    def left_out(cls) -> dict[str, Any]:
        """Return for each argument the value that is not written in an address."""
        return {
            field.alias or name: cls.usual.get(name, field.default)
            for name, field in cls.model_fields.items()
            if name not in cls.of_csv
        }


class LensArguments(Arguments):
    """The arguments of a page of stored lists. Before the page's function is called, `with_lens` sets the lens (dot or
    cosine)."""

    lens: Annotated[
        Literal["dot", "cosine"],
        Field(
            description="How a score is read: `dot` as in the paper, `cosine` with token embeddings centred and "
            "scaled. If it is not given: `dot`, or `cosine` where that alone is stored"
        ),
    ] = None  # type: ignore[assignment]  # only before with_lens sets it
    usual: ClassVar[Mapping[str, Any]] = {"lens": "dot"}

    def with_lens(self, index: Index) -> Self:
        """Return the arguments with a lens (dot or cosine): the first that the index has, if none is asked for."""
        return self if self.lens else self.model_copy(update={"lens": index.stored.lens})


# Arguments that several pages take.
AnyPreset: TypeAlias = Annotated[
    Preset, Field(description="Which pairs compete. " + " ".join(f"`{preset}`: {tip(preset)}" for preset in PRESETS))
]
AnyReading: TypeAlias = Annotated[
    Reading | None,
    Field(
        description="Beside the stored lists, the worker's: `norm` folds norms in, `first` and `mlp` take tokens as "
        "the first block or its MLP leaves them, `pseudo` takes E⁺ for Eᵀ, and `full`, where lists are kept to some "
        "tokens, makes the full lists of these"
    ),
]
PageNumber: TypeAlias = Annotated[
    int, Field(ge=1, description="Which page of a long list, from 1; a `.csv` has all of them")
]
VectorKind: TypeAlias = Literal[
    "ff_key", "ff_up", "ff_value", "w_q", "w_k", "w_v", "w_o", "vo_in", "vo_out", "qk_query", "qk_key"
]  # fmt: skip
AnyKind: TypeAlias = Literal[VectorKind, "vo", "qk"]


def entries_shown(usual: int) -> Any:
    """Describe the argument `k` of a page, which says how many entries of each list are shown; by default `usual`."""
    return Field(ge=1, description=f"Entries per list, up to what the index stores; {usual} if not given")


class Moved(Exception):
    """An exception that a page's function raises to redirect to another address of the site. `by_chance` means that the
    address may be another one next time."""

    def __init__(self, address: str, *, by_chance: bool = False) -> None:
        super().__init__(address)
        self.address = address
        self.by_chance = by_chance


@dataclass(frozen=True, kw_only=True)
class Site:
    """The values that a page's function may read besides the address and the arguments."""

    library: Library
    hide_hubs: bool = False
    kept: KeptTokens = ALL_TOKENS  # the tokens that may stand in lists, besides hubs
    format: str = "json"  # the format of the answer; "events" if the progress is sent, too
    part: str = ""  # the name of the page's part, if the browser asks only for that
    settings: Settings = field(default_factory=Settings.model_construct)
    serves: Callable[[str], bool] = lambda _: False  # returns True if a worker can run the model
    rows: int | Literal["all"] | None = None  # how many rows of a list are on a page, if not as the page says
    prepare: Callable[[str], None] = lambda _: None  # starts the worker of a model that will soon be asked something
    answers: Sequence[Any] = ()  # the worker's answers to the requests of the page's function `asks`
    error: ShownError | None = None  # why there is no answer, if the page is made without one (`made_without_answers`)

    def window(self, page: int, rows: int) -> tuple[int, int | None]:
        """Return which page of a list to show and how many rows it has. A CSV is one page with all rows."""
        return (1, None) if self.format == "csv" or self.rows == "all" else (page, self.rows or rows)


@dataclass(frozen=True, kw_only=True)
class ModelSite(Site):
    """The values that the function of a model's page may read."""

    index: Index

    def left_out(self, lens: str) -> frozenset[int]:
        """Return the tokens that the visitor wants left out of lists: hubs (tokens in very many lists), and all that
        are no words, or not in the vocabulary."""
        return self.outside | (hubs_of(self.index, lens) if self.hide_hubs else frozenset())

    @property
    def outside(self) -> frozenset[int]:
        """Return the tokens left out because they are no words, or not in the vocabulary."""
        return self.kept.outside(self.index)

    @property
    def outside_pairs(self) -> frozenset[int]:
        return self.kept.of_pairs.outside(self.index)


@dataclass(frozen=True, kw_only=True)
class TwoModelsSite(Site):
    """The values that the function of a page of two models may read. The address names both models, and neither needs
    an index."""

    model: str
    other: str


A = TypeVar("A", bound=Address)
Q = TypeVar("Q", bound=Arguments | Ask[Any])  # the arguments of a page or, for a live page, the request to its worker
V = TypeVar("V", bound=View)


def _nothing(*_: Any) -> Any:
    return ()


@dataclass(frozen=True, kw_only=True)
class Page(Generic[A, Q, V]):
    """The declaration of a page. Once it is made, `link` can write addresses of the page."""

    name: str
    title: str  # the title of the page in a list of results: "Neuron {neuron} of layer {layer}"
    at: type[A]
    arguments: type[Q]
    view: type[V]
    make: Callable[[Any, A, Q], V]  # takes a Site or ModelSite; its docstring is the page's description in /docs
    # Returns what workers must answer first: requests for the worker of the page's model, or (model, request) for that
    # of another model. A generator is sent the answer to each request before it gives the next one.
    asks: Callable[[Any, A, Q], Iterable[Any]] = _nothing
    # returns a text that changes with what the view depends on besides the address and the index
    version: Callable[[Any], str] = lambda _: ""
    formats: tuple[str, ...] = DATA_FORMATS
    # Returns the formats of a page that has fewer with some arguments; the site answers NotFound for another format.
    formats_of: Callable[[Any, Q], tuple[str, ...]] | None = None
    template: str = ""  # the name of the template, if it is not the page's name
    # "suggestions", if the page has them: the browser may ask for this part alone, and the template `_{part}` shows it.
    part: str = ""
    # which class of Site the function gets: ModelSite, TwoModelsSite or Site
    of: Literal["model", "two models", "site"] = "model"
    is_live: bool = False  # True if a model without a worker has no such page
    has_events: bool = False  # True if the page's progress can be followed at `path.events`
    # for each stage of the worker's progress, the text for visitors
    stages: Mapping[str, str] = field(default_factory=dict)
    # True if the page reads so much that it is made in a thread, so that other requests need not wait
    is_slow: bool = False
    # True if a worker's error is shown on the page; otherwise the answer is the error alone.
    made_without_answers: bool = False
    leads_to: str = ""  # where the page may redirect (Moved), for /docs
    # How a notebook describes the page and gets it, with the numbers of its path in braces.
    in_python: str = ""

    def __post_init__(self) -> None:
        DECLARED[self.name] = Declared(self.at.pattern, self.arguments.left_out(), self.title)
        _PAGES[self.name] = self

    def address(self, model: str, at: A, ask: Q) -> str:
        """Return the page's address. Default values are left out, so that one view has one address."""
        return link(self.name, model, *dict(at).values(), **ask.query())

    def view_of(self, site: Any, at: A, values: Mapping[str, Any]) -> V:
        """Make the page's view from arguments by name; None stands for an argument that is not given."""
        return self.make(site, at, self.ask_of(site, values))

    def ask_of(self, site: Any, values: Mapping[str, Any]) -> Q:
        """Check arguments by name and set the lens (dot or cosine); None stands for an argument that is not given."""
        ask = checked(self.arguments, {name: value for name, value in values.items() if value is not None})
        if isinstance(ask, LensArguments) and isinstance(site, ModelSite):
            ask = ask.with_lens(site.index)
        return ask


_PAGES: dict[str, Page[Any, Any, Any]] = {}


@cache
def find_pages() -> Mapping[str, Page[Any, Any, Any]]:
    """Import all modules of pages and return the pages by name: first those without a model, then those with the
    longest paths. If a path fits two pages, the first one is taken."""
    package = import_module("lexiscope.app.pages")
    for module in walk_packages(package.__path__, f"{package.__name__}."):
        import_module(module.name)

    def order(page: Page[Any, Any, Any]) -> tuple[bool, int]:
        return page.of != "site", -len(list(filter(None, page.at.pattern.split("/"))))

    return dict(sorted(_PAGES.items(), key=lambda item: order(item[1])))
