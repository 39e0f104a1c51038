"""Where a model's lists come from: the views of its pages, whoever makes them. An index in this process and a server
are such sources, and nobody who asks one can tell them apart, but for the errors that say so."""

from collections.abc import Callable, Sequence
from typing import Protocol, TypeAlias, TypeVar

from lexiscope.app.pages.head import HeadView
from lexiscope.app.pages.pairs import PairsView
from lexiscope.app.pages.parameter import DirectionView, NeuronView, SubheadView
from lexiscope.app.pages.prompt.page import PromptView
from lexiscope.app.pages.search import SearchView
from lexiscope.app.pages.seeds import SeedsView
from lexiscope.app.pages.token import TokenView
from lexiscope.app.views.tokens import Token
from lexiscope.precompute.index.index import Index
from lexiscope.precompute.live.wire.asks import PromptArguments
from lexiscope.precompute.live.wire.fields import Lens, Matrix
from lexiscope.precompute.shape import Preset

T = TypeVar("T")
AskedLens: TypeAlias = Lens | None  # None: the first that is stored, `dot` unless it was left out


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

    def run(self, ask: PromptArguments) -> PromptView: ...

    def read(self, make: Callable[[Index], T]) -> T:
        """What is made from the index itself: lists over layers; NeedsIndex of a server."""
