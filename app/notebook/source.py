"""Get the data of a model's pages: `Here` calls the function of the page with an index of a data folder, and `There`
reads the same data from the JSON of a server."""

import re
import threading
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn, TypeAlias, TypeVar
from urllib.parse import quote

from lexiscope.app.library.library import Library
from lexiscope.app.lists.find_tokens import token_named
from lexiscope.app.lists.kept_tokens import KeptTokens, keep_tokens
from lexiscope.app.lists.view import Token, token_of
from lexiscope.app.notebook.arguments import checked_fields
from lexiscope.app.notebook.errors import NeedsIndex, needed_for, no_such_text
from lexiscope.app.notebook.site import Site
from lexiscope.app.notebook.stored_seeds import stored_seeds_view
from lexiscope.app.pages.page import A, ModelSite, Page, Q, V, checked
from lexiscope.app.pages.search import LONGEST_SEARCH, SEARCH, SearchAt
from lexiscope.app.pages.seeds import SeedsView
from lexiscope.app.pages.token import TOKEN, TokenAt
from lexiscope.app.urls import is_reserved, link
from lexiscope.app.weights import load_engine
from lexiscope.precompute.errors import IndexFault, LexiscopeError, NotFound
from lexiscope.precompute.index.index import Index
from lexiscope.precompute.index.manifest import TOKENIZER
from lexiscope.precompute.index.tokens import text_surface
from lexiscope.precompute.live.wire.asks import PromptAsk, RelationAsk, SeedsAsk, ThroughHeadsAsk
from lexiscope.precompute.live.wire.errors import TooLarge
from lexiscope.precompute.live.wire.protocol import weights_name_of

if TYPE_CHECKING:
    from lexiscope.precompute.live.engine import Engine

T = TypeVar("T")

READ_TRIES = 3  # how often an index is read again if its files are being replaced
_QUOTED = re.compile(r'"[^"]+"')


@lru_cache(32)
def library_of(data: Path) -> Library:
    """Return the library (the open indexes) of a data folder, always the same object: each index is opened once, and
    layers that a build finishes are noticed."""
    return Library(data, is_reserved=is_reserved)


class Here:
    """An index of a data folder, read in this process. The weights are loaded when a page first needs them. Any number
    of threads may use the object; the loaded model computes for one at a time."""

    def __init__(self, data: Path, name: str, weights: bool = False, device: str = "auto") -> None:
        """With `weights=True`, seed words never fall back to stored lists where the weights cannot be had. `device` is
        where the model computes."""
        self.name = name
        self.where = str(data / name)
        self.weights = weights
        self._library = library_of(data)
        self._device = device
        # the name of the weights that are loaded, and the engine that holds them
        self._engine: tuple[str, Engine] | None = None
        self._engine_lock = threading.Lock()

    @property
    def layers(self) -> tuple[int, ...]:
        """Return the layers whose lists are built and can be read."""
        return self._index().layers

    def get(self, page: Page[A, Q, V], at: A, hide_hubs: bool = False, /, **arguments: Any) -> V:
        """Return the data of a page; arguments that are None are left out."""
        values = checked_fields(page.arguments, arguments)

        kept = KeptTokens(words=arguments.get("preset") == "words")

        def make(index: Index) -> V:
            site = ModelSite(index=index, library=self._library, hide_hubs=hide_hubs, kept=kept)
            ask = page.ask_of(site, values)
            answers = [self._answer(index, asked) for asked in page.asks(site, at, ask)]
            view = page.make(replace(site, answers=answers), at, ask)
            return keep_tokens(index, view, hide_hubs, kept)

        return self.read(make)

    def find_token(self, which: str | int, exact: bool) -> Token:
        """Return a token by its id, by its exact text, or by a word as on the site."""
        index = self._index()
        tokens = index.tokens
        if isinstance(which, int):
            tokens.raw(which)  # raises NotFound if there is no such token
            return token_of(tokens, which)
        if not exact:
            return token_of(tokens, token_named(index, which))
        if which not in tokens.numbers:
            raise no_such_text(which, self.name)
        return token_of(tokens, tokens.numbers[which])

    def stored_seeds(
        self, words: str, kinds: Sequence[str], lens: str, k: int
    ) -> tuple[SeedsView, bool, tuple[int, ...]]:
        """Rank vectors by seed words and the stored lists: return the data of the page, False because the result is not
        exact, and the layers that could not be read."""
        tokenizer = self._library.tokenizer(self.name)
        if tokenizer is None:
            index = self._index()
            raise IndexFault(
                f"{index.folder / TOKENIZER} is missing or another one: `{index.manifest.rebuild_command}` replaces it"
            )
        view, missing = self.read(lambda index: stored_seeds_view(index, tokenizer, words, kinds, lens, k))
        return view, False, missing

    def read(self, make: Callable[[Index], T]) -> T:
        """Make something from the index; try again if a file was replaced meanwhile, which the library then opens
        anew."""
        for _ in range(READ_TRIES - 1):
            try:
                made = make(index := self._index())
                if not index.changed:
                    return made
            except IndexFault:
                self._library.wait_for_checks(self.name)
        return make(self._index())

    def _index(self) -> Index:
        return self._library.index(self.name)

    def _answer(self, index: Index, ask: Any) -> Any:
        """Compute the answer to a question that the page would send to a worker."""
        answer: Any
        with self._engine_lock:
            match ask:
                case SeedsAsk():
                    (answer,) = self._loaded(index, "exact seeds").seeds([ask])
                case PromptAsk():
                    engine = self._loaded(index, "a run")
                    tokens = max(engine.token_count(text, ask.bos) for text in (ask.text, ask.from_) if text)
                    if tokens > engine.n_positions:
                        raise TooLarge(f"this text has {tokens} tokens: {self.name} has {engine.n_positions} positions")
                    (answer,) = engine.prompts([ask])
                case RelationAsk() | ThroughHeadsAsk():
                    answer = self._loaded(index, "words through heads").answer(ask)  # type: ignore[misc]
                case _:
                    raise TypeError(f"{type(ask).__name__} is not asked in a notebook")
        if isinstance(answer, LexiscopeError):
            raise answer
        return answer

    def _loaded(self, index: Index, what: str) -> "Engine":
        """Return the model in memory, loaded from exactly the weights of the index, compared by their hash. The caller
        holds the lock."""
        wanted = weights_name_of(index.manifest)
        if self._engine is None or self._engine[0] != wanted:
            self._engine = None  # frees the memory before other weights are loaded
            with needed_for(what, "'lexiscope[precompute]'"):
                self._engine = wanted, load_engine(index, self._device)
        return self._engine[1]


class There:
    """A model on a server."""

    weights = True  # a server computes seeds from the weights

    def __init__(self, site: Site, name: str) -> None:
        self.name = name
        self.where = f"{site.origin}/{quote(name)}"
        self._site = site

    @property
    def layers(self) -> tuple[int, ...]:
        """Return the layers whose lists are built and can be read."""
        return next((card.layers for card in self._site.models() if card.model == self.name), ())

    def get(self, page: Page[A, Q, V], at: A, hide_hubs: bool = False, /, **arguments: Any) -> V:
        """Return the data of a page; arguments that are None are left out."""
        ask = checked(page.arguments, checked_fields(page.arguments, arguments))
        query = ask.query() | ({"hubs": "hide"} if hide_hubs else {})
        return self._site.get(page.view, link(page.name, self.name, *dict(at).values()), query, page.is_live)

    def find_token(self, which: str | int, exact: bool) -> Token:
        """Return a token by its id, by its exact text, or by a word as on the site.

        The server's search page gives the tokens that differ only in case and space. Of these the one with a space
        before it is chosen first, as on the site, then the one without, then one in another case.
        """
        if isinstance(which, int):
            return self.get(TOKEN, TokenAt(token=which)).token
        groups = self.get(SEARCH, SearchAt(), q=_as_one_word(which)).words
        tokens = groups[0].tokens if groups else []
        for wanted in (which,) if exact else (f" {which.strip()}", which.strip()):
            for token in tokens:
                if token["token"] == wanted:
                    return token
        if exact:
            raise no_such_text(which, self.name)
        if not tokens or text_surface(tokens[0]["token"], True) != text_surface(which, True):
            raise NotFound(f"token {which[:100]!r} is none of {self.name}: give a word that is, or an id as #2767")
        return tokens[0]

    def stored_seeds(self, *_: Any) -> NoReturn:
        raise NeedsIndex(
            f"seeds of {self.name} from the stored lists: a server computes them from the weights, so leave out "
            "exact=False, or open the index itself"
        )

    def read(self, _: Callable[[Index], T]) -> T:
        raise NeedsIndex(
            f"lists of {self.name} over layers take the index itself, and this model is read from "
            f"{self._site.origin}. `lexiscope pull` or `lexiscope precompute` brings it here; single neurons, heads, "
            "tokens, searches, seeds and runs work without"
        )


Source: TypeAlias = Here | There


def _as_one_word(text: str) -> str:
    """Return a search text whose first word is exactly this text, whatever signs it has; raise NotFound if no search
    text can express it."""
    q = text.strip() if '"' in text else f'"{text}"'  # a word with quotes in it cannot stand in quotes
    is_parted = '"' in text and (any(c.isspace() or c == "," for c in q) or _QUOTED.fullmatch(q))
    if is_parted or "\0" in text or len(q) > LONGEST_SEARCH - 2:
        raise NotFound(f"token {text[:100]!r}: no search of a server says this text. Give the token's id")
    # An arrow would split a text into two words, but not if the text has a <.
    return q if "<" in text else f"{q} <" if ">" in text or "→" in text else q
