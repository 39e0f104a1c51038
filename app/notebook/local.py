"""A model's lists from an index of a data folder, in this process: the views that its pages are made from.
The weights are loaded when something is asked that takes them."""

import threading
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from lexiscope.app.addresses import is_reserved
from lexiscope.app.library.library import Library
from lexiscope.app.notebook.errors import needed_for, no_such_text
from lexiscope.app.notebook.source import AskedLens
from lexiscope.app.notebook.stored_seeds import stored_seeds_view
from lexiscope.app.pages.head import HEAD, HeadAt, HeadView
from lexiscope.app.pages.page import A, ModelSite, Page, Q, V, checked
from lexiscope.app.pages.pairs import PAIRS, PairsAt, PairsView
from lexiscope.app.pages.parameter import (
    DIRECTION,
    NEURON,
    SUBHEAD,
    DirectionAt,
    DirectionView,
    NeuronAt,
    NeuronView,
    SubheadAt,
    SubheadView,
)
from lexiscope.app.pages.prompt.page import PromptAt, PromptView, prompt
from lexiscope.app.pages.prompt.page import asks as asks_of_prompt
from lexiscope.app.pages.search import SEARCH, SearchAt, SearchView
from lexiscope.app.pages.seeds import SEEDS, SeedsAt, SeedsView
from lexiscope.app.pages.token import TOKEN, TokenAt, TokenView
from lexiscope.app.views.hubs import without_hubs
from lexiscope.app.views.token_search import token_named
from lexiscope.app.views.tokens import Token, token_of
from lexiscope.precompute.errors import BadRequest, IndexFault, LexiscopeError
from lexiscope.precompute.index.index import Index
from lexiscope.precompute.index.manifest import TOKENIZER
from lexiscope.precompute.live.wire.asks import PromptArguments, SeedsArguments
from lexiscope.precompute.live.wire.errors import TooLarge
from lexiscope.precompute.live.wire.fields import Lens, Matrix
from lexiscope.precompute.live.wire.grammar import parse_terms
from lexiscope.precompute.live.wire.protocol import weights_name_of
from lexiscope.precompute.shape import Preset

if TYPE_CHECKING:
    from tokenizers import Tokenizer

    from lexiscope.precompute.live.engine import Engine

T = TypeVar("T")

TRIES = 3  # to read an index whose files are being replaced


@lru_cache(32)
def library_of(data: Path) -> Library:
    """One for a data folder: its indexes are opened once, and layers that a build finishes are seen."""
    return Library(data, is_reserved=is_reserved)


class LocalSource:
    """For any number of threads; a model that runs is asked by one at a time."""

    def __init__(self, data: Path, name: str, weights: bool = False, device: str = "auto") -> None:
        """`weights`: seeds are exact unless asked otherwise. `device`: where the model computes."""
        self.name = name
        self.where = str(data / name)
        self._library = library_of(data)
        self._weights = weights
        self._device = device
        self._engine: tuple[str, Engine] | None = None  # with the weights' name
        self._engine_lock = threading.Lock()

    @property
    def layers(self) -> tuple[int, ...]:
        return self._index().layers

    def neuron(self, layer: int, neuron: int, lens: AskedLens, k: int | None, hide_hubs: bool) -> NeuronView:
        return self._page(NEURON, NeuronAt(layer=layer, neuron=neuron), hide_hubs, lens=lens, k=k)

    def head(self, layer: int, head: int, lens: AskedLens, preset: Preset, hide_hubs: bool) -> HeadView:
        return self._page(HEAD, HeadAt(layer=layer, head=head), hide_hubs, lens=lens, preset=preset)

    def pairs(
        self, matrix: Matrix, layer: int, head: int, lens: AskedLens, preset: Preset, k: int | None, hide_hubs: bool
    ) -> PairsView:
        at = PairsAt(layer=layer, head=head, matrix=matrix)
        return self._page(PAIRS, at, hide_hubs, lens=lens, preset=preset, k=k)

    def subhead(
        self, layer: int, head: int, subhead: int, lens: AskedLens, k: int | None, hide_hubs: bool
    ) -> SubheadView:
        return self._page(SUBHEAD, SubheadAt(layer=layer, head=head, subhead=subhead), hide_hubs, lens=lens, k=k)

    def direction(
        self, layer: int, head: int, direction: int, lens: AskedLens, k: int | None, hide_hubs: bool
    ) -> DirectionView:
        at = DirectionAt(layer=layer, head=head, direction=direction)
        return self._page(DIRECTION, at, hide_hubs, lens=lens, k=k)

    def _page(self, page: Page[A, Q, V], at: A, hide_hubs: bool, /, **asked: Any) -> V:
        """Make the view of a page, by the function that its route calls."""

        def make(index: Index) -> V:
            return page.view_of(ModelSite(index=index, library=self._library, hide_hubs=hide_hubs), at, asked)

        return self._view(make, hide_hubs)

    def find_token(self, which: str | int, exact: bool) -> Token:
        index = self._index()
        tokens = index.tokens
        if isinstance(which, int):
            tokens.raw(which)  # NotFound if there is no such token
            return token_of(tokens, which)
        if not exact:
            return token_of(tokens, token_named(index, which))
        if which not in tokens.numbers:
            raise no_such_text(which, self.name)
        return token_of(tokens, tokens.numbers[which])

    def places(
        self, token: int, lens: AskedLens, preset: Preset, kind: str | None, page: int, hide_hubs: bool
    ) -> TokenView:
        return self._page(TOKEN, TokenAt(token=token), hide_hubs, lens=lens, preset=preset, kind=kind, page=page)

    def search(self, q: str, lens: AskedLens, kind: str | None, page: int, hide_hubs: bool) -> SearchView:
        return self._page(SEARCH, SearchAt(), hide_hubs, q=q, lens=lens, kind=kind, page=page)

    def seeds(
        self, words: str, kinds: Sequence[str], lens: Lens, k: int, exact: bool | None
    ) -> tuple[SeedsView, bool, tuple[int, ...]]:
        if not (self._weights if exact is None else exact):
            tokenizer = self._tokenizer()
            view, missing = self.read(lambda index: stored_seeds_view(index, tokenizer, words, kinds, lens, k))
            return view, False, missing
        terms = parse_terms(words)
        if not terms:
            raise BadRequest("there are no words: give some such as horse, dog, lion")
        index = self._index()
        ask = checked(SeedsArguments, {"words": terms, "kind": tuple(kinds), "k": k, "lens": lens})
        site = ModelSite(index=index, library=self._library)
        with self._engine_lock:
            (answer,) = self._loaded(index, "exact seeds").seeds(list(SEEDS.asks(site, SeedsAt(), ask)))
        if isinstance(answer, LexiscopeError):
            raise answer
        return SEEDS.make(replace(site, answers=[answer]), SeedsAt(), ask), True, ()

    def run(self, ask: PromptArguments) -> PromptView:
        site = ModelSite(index=self._index(), library=self._library)
        asks = asks_of_prompt(site, PromptAt(), ask)
        with self._engine_lock:
            engine = self._loaded(site.index, "a run")
            if (tokens := engine.token_count(ask.text)) > engine.n_positions:
                raise TooLarge(f"this text has {tokens} tokens: {self.name} has {engine.n_positions} positions")
            (answer,) = engine.prompts(asks)
        if isinstance(answer, LexiscopeError):
            raise answer
        return prompt(replace(site, answers=[answer]), PromptAt(), ask)

    def read(self, make: Callable[[Index], T]) -> T:
        """Asks again where a file was replaced meanwhile: the library then checks it and opens it anew."""
        for _ in range(TRIES - 1):
            try:
                made = make(index := self._index())
                if not index.changed:
                    return made
            except IndexFault:
                self._library.wait_for_checks(self.name)
        return make(self._index())

    def _index(self) -> Index:
        return self._library.index(self.name)

    def _view(self, make: Callable[[Index], V], hide_hubs: bool) -> V:
        return self.read(lambda index: without_hubs(index, make(index)) if hide_hubs else make(index))

    def _tokenizer(self) -> "Tokenizer":
        if tokenizer := self._library.tokenizer(self.name):
            return tokenizer
        index = self._index()
        raise IndexFault(
            f"{index.folder / TOKENIZER} is missing or another one: `{index.manifest.rebuild_command}` replaces it"
        )

    def _loaded(self, index: Index, what: str) -> "Engine":
        """The model in memory, of the very weights of the index, by their hash; the lock is held."""
        wanted = weights_name_of(index.manifest)
        if self._engine is None or self._engine[0] != wanted:
            self._engine = None  # before another is loaded
            with needed_for(what, "'lexiscope[precompute]'"):
                from lexiscope.app.weights import weights_of_index
                from lexiscope.precompute.live.engine import Engine
                from lexiscope.precompute.weights.difference import Difference

                weights = weights_of_index(index)
                source = weights if isinstance(weights, Difference) else weights.checkpoint
                self._engine = wanted, Engine.load(source, self._device)
        return self._engine[1]
