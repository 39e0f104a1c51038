"""Where a model's lists come from: the views of its pages, whoever makes them. An index in this process and a server
are such sources, and nobody who asks one can tell them apart, but for the errors that say so."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol, TypeAlias, TypeVar

from app.addresses import CONVENTION
from app.views.direction import DirectionView
from app.views.head import HeadView
from app.views.lengths import LIKELY_TOKENS
from app.views.neuron import NeuronView
from app.views.pairs import PairsView
from app.views.prompt import PromptView
from app.views.search import SearchView
from app.views.seeds import SeedsView
from app.views.subhead import SubheadView
from app.views.token import TokenView
from app.views.tokens import Token
from precompute.index.index import Index
from precompute.live.wire.prompt import Convention, Panel, PatternRows
from precompute.live.wire.shared import Lens, Matrix
from precompute.shape import Preset

T = TypeVar("T")
AskedLens: TypeAlias = Lens | None  # None: the first that is stored, `dot` unless it was left out


@dataclass(frozen=True, kw_only=True)
class RunAsk:
    """A text, and what to tell of its run: the arguments of the page of prompts."""

    text: str
    panels: tuple[Panel, ...]
    position: int | None = None
    layer: int | None = None
    head: int | None = None
    neuron: int | None = None
    lens: Lens = "dot"
    convention: Convention = CONVENTION
    rows: PatternRows = "heads"
    k: int = LIKELY_TOKENS
    off: tuple[str, ...] = ()
    set: tuple[str, ...] = ()
    token: str | None = None
    against: str = "mean"


class Source(Protocol):
    @property
    def name(self) -> str:
        """The model's name, as on the home page."""

    @property
    def where(self) -> str:
        """For people: the folder of the index, or the address of the server."""

    @property
    def layers(self) -> tuple[int, ...]:
        """Those that are ready."""

    def neuron(self, layer: int, neuron: int, lens: AskedLens, k: int | None, hide_hubs: bool) -> NeuronView: ...

    def head(self, layer: int, head: int, lens: AskedLens, preset: Preset, hide_hubs: bool) -> HeadView: ...

    def pairs(
        self, matrix: Matrix, layer: int, head: int, lens: AskedLens, preset: Preset, k: int | None, hide_hubs: bool
    ) -> PairsView: ...

    def subhead(
        self, layer: int, head: int, subhead: int, lens: AskedLens, k: int | None, hide_hubs: bool
    ) -> SubheadView: ...

    def direction(
        self, layer: int, head: int, direction: int, lens: AskedLens, k: int | None, hide_hubs: bool
    ) -> DirectionView: ...

    def find_token(self, which: str | int, exact: bool) -> Token:
        """By its id, by its very text, or else the one that a word stands for on the site."""

    def places(
        self, token: int, lens: AskedLens, preset: Preset, kind: str | None, page: int, hide_hubs: bool
    ) -> TokenView: ...

    def search(self, q: str, lens: AskedLens, kind: str | None, page: int, hide_hubs: bool) -> SearchView: ...

    def seeds(
        self, words: str, kinds: Sequence[str], lens: Lens, k: int, exact: bool | None
    ) -> tuple[SeedsView, bool, tuple[int, ...]]:
        """The view, whether it was computed from the weights, and else the layers that could not be looked at."""

    def run(self, ask: RunAsk) -> PromptView: ...

    def read(self, make: Callable[[Index], T]) -> T:
        """What is made from the index itself: lists over layers; NeedsIndex of a server."""
