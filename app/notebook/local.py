"""A model's lists from an index of a data folder, in this process: the views that its pages are made from.
The weights are loaded when something is asked that takes them."""

import threading
from collections.abc import Callable, Sequence
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from app.addresses import is_reserved
from app.library.library import Library
from app.notebook.errors import checked, needed_for, no_such_text
from app.notebook.source import AskedLens, RunAsk
from app.views.difference import check_can_run
from app.views.direction import DirectionView
from app.views.first_tokens import unbuilt
from app.views.head import HeadView
from app.views.hubs import hubs_of, without_hubs
from app.views.layer import token_named
from app.views.neuron import NeuronView
from app.views.pairs import PairsView
from app.views.parameter_pages import direction_page, head_page, neuron_page, pairs_page, subhead_page
from app.views.prompt import PromptView, prompt_view
from app.views.search import SearchView, search_view, with_labels
from app.views.seeds import SeedsView, seeds_view
from app.views.stored_seeds import stored_seeds_view
from app.views.subhead import SubheadView
from app.views.token import TokenView, token_view
from app.views.tokens import Token, View, token_of
from app.views.typed_parameters import parse_off, parse_set
from app.views.typed_words import parse_against, parse_terms, parse_token, write_terms
from app.workers.errors import TooLarge
from app.workers.protocol import weights_name_of
from precompute.errors import BadRequest, IndexFault, LexiscopeError
from precompute.index.index import Index
from precompute.index.manifest import TOKENIZER
from precompute.live.wire.prompt import PromptAsk
from precompute.live.wire.shared import Lens, Matrix
from precompute.live.wire.words import SeedsAsk
from precompute.shape import Preset

if TYPE_CHECKING:
    from tokenizers import Tokenizer

    from precompute.live.engine import Engine

T = TypeVar("T")
V = TypeVar("V", bound=View)

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
        return self._view(
            lambda index: neuron_page(self._library, index, layer, neuron, lens or index.stored.lens, k, hide_hubs),
            hide_hubs,
        )

    def head(self, layer: int, head: int, lens: AskedLens, preset: Preset, hide_hubs: bool) -> HeadView:
        return self._view(
            lambda index: head_page(self._library, index, layer, head, lens or index.stored.lens, preset, hide_hubs),
            hide_hubs,
        )

    def pairs(
        self, matrix: Matrix, layer: int, head: int, lens: AskedLens, preset: Preset, k: int | None, hide_hubs: bool
    ) -> PairsView:
        return self._view(
            lambda index: pairs_page(self._library, index, matrix, layer, head, lens or index.stored.lens, preset, k),
            hide_hubs,
        )

    def subhead(
        self, layer: int, head: int, subhead: int, lens: AskedLens, k: int | None, hide_hubs: bool
    ) -> SubheadView:
        def make(index: Index) -> SubheadView:
            return subhead_page(self._library, index, layer, head, subhead, lens or index.stored.lens, k, hide_hubs)

        return self._view(make, hide_hubs)

    def direction(
        self, layer: int, head: int, direction: int, lens: AskedLens, k: int | None, hide_hubs: bool
    ) -> DirectionView:
        def make(index: Index) -> DirectionView:
            return direction_page(self._library, index, layer, head, direction, lens or index.stored.lens, k, hide_hubs)

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
        def make(index: Index) -> TokenView:
            chosen = lens or index.stored.lens
            return token_view(
                index, token, chosen, preset, kind, page, hubs=hubs_of(index, chosen) if hide_hubs else frozenset()
            )

        return self._view(make, hide_hubs)

    def search(self, q: str, lens: AskedLens, kind: str | None, page: int, hide_hubs: bool) -> SearchView:
        def make(index: Index) -> SearchView:
            chosen = lens or index.stored.lens
            hubs = hubs_of(index, chosen) if hide_hubs else frozenset()
            tokenizer = self._library.tokenizer(self.name) if q else None
            view = search_view(index, q, chosen, kind, page, tokenizer=tokenizer, hubs=hubs)
            return with_labels(index, view, self._library.labels(index))

        return self._view(make, hide_hubs)

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
        fields = {"terms": terms, "kinds": tuple(kinds), "n": k, "lens": lens, "unbuilt": unbuilt(index, lens)}
        ask = checked(SeedsAsk, fields)
        with self._engine_lock:
            (answer,) = self._loaded(index, "exact seeds").seeds([ask])
        if isinstance(answer, LexiscopeError):
            raise answer
        return seeds_view(index, write_terms(terms), ",".join(kinds), lens, answer), True, ()

    def run(self, ask: RunAsk) -> PromptView:
        index = self._index()
        check_can_run(index)
        asked = checked(
            PromptAsk,
            {
                "text": ask.text, "panels": ask.panels, "position": ask.position, "layer": ask.layer,
                "neuron": ask.neuron, "head": ask.head, "convention": ask.convention, "lens": ask.lens,
                "rows": ask.rows, "k": ask.k, "unbuilt": unbuilt(index, ask.lens),
                "interventions": (*parse_off(",".join(ask.off)), *parse_set(",".join(ask.set))),
                "token": ask.token and parse_token(ask.token), "against": parse_against(ask.against),
            },
        )  # fmt: skip
        with self._engine_lock:
            engine = self._loaded(index, "a run")
            if (tokens := engine.token_count(ask.text)) > engine.n_positions:
                raise TooLarge(f"this text has {tokens} tokens: {self.name} has {engine.n_positions} positions")
            (answer,) = engine.prompts([asked])
        if isinstance(answer, LexiscopeError):
            raise answer
        return prompt_view(index, asked, ",".join(ask.panels), answer)

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
                from app.weights import weights_of_index
                from precompute.live.engine import Engine
                from precompute.weights.difference import Difference

                weights = weights_of_index(index)
                source = weights if isinstance(weights, Difference) else weights.checkpoint
                self._engine = wanted, Engine.load(source, self._device)
        return self._engine[1]
