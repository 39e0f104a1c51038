"""A model's lists from a server: the JSON of its pages (DESIGN section 5), read as the views it was made from."""

import re
from collections.abc import Callable, Sequence
from typing import Any, TypeVar
from urllib.parse import quote

from lexiscope.app.notebook.errors import NeedsIndex, no_such_text
from lexiscope.app.notebook.site import Site
from lexiscope.app.notebook.source import AskedLens
from lexiscope.app.packed_text import pack
from lexiscope.app.pages.head import HeadView
from lexiscope.app.pages.pairs import PairsView
from lexiscope.app.pages.parameter import DirectionView, NeuronView, SubheadView
from lexiscope.app.pages.prompt.page import PromptView
from lexiscope.app.pages.search import LONGEST, SearchView
from lexiscope.app.pages.seeds import SeedsView
from lexiscope.app.pages.token import TokenView
from lexiscope.app.views.tokens import Token
from lexiscope.precompute.errors import NotFound
from lexiscope.precompute.index.index import Index
from lexiscope.precompute.index.tokens import text_surface
from lexiscope.precompute.live.wire.asks import PromptArguments
from lexiscope.precompute.live.wire.fields import Lens, Matrix
from lexiscope.precompute.shape import Preset

V = TypeVar("V")

LONG_TEXT = 1000  # characters of a prompt that go into an address as they are
_QUOTED = re.compile(r'"[^"]+"')


class ServerSource:
    def __init__(self, site: Site, name: str) -> None:
        self.name = name
        self.where = f"{site.origin}/{quote(name)}"
        self._site = site

    @property
    def layers(self) -> tuple[int, ...]:
        return next((card.layers for card in self._site.models() if card.model == self.name), ())

    def neuron(self, layer: int, neuron: int, lens: AskedLens, k: int | None, hide_hubs: bool) -> NeuronView:
        return self._get(NeuronView, f"ff/{layer}/{neuron}", hide_hubs, lens=lens, k=k)

    def head(self, layer: int, head: int, lens: AskedLens, preset: Preset, hide_hubs: bool) -> HeadView:
        return self._get(HeadView, f"head/{layer}/{head}", hide_hubs, lens=lens, preset=preset)

    def pairs(
        self, matrix: Matrix, layer: int, head: int, lens: AskedLens, preset: Preset, k: int | None, hide_hubs: bool
    ) -> PairsView:
        return self._get(PairsView, f"head/{layer}/{head}/{matrix}", hide_hubs, lens=lens, preset=preset, k=k)

    def subhead(
        self, layer: int, head: int, subhead: int, lens: AskedLens, k: int | None, hide_hubs: bool
    ) -> SubheadView:
        return self._get(SubheadView, f"head/{layer}/{head}/sub/{subhead}", hide_hubs, lens=lens, k=k)

    def direction(
        self, layer: int, head: int, direction: int, lens: AskedLens, k: int | None, hide_hubs: bool
    ) -> DirectionView:
        return self._get(DirectionView, f"head/{layer}/{head}/svd/{direction}", hide_hubs, lens=lens, k=k)

    def find_token(self, which: str | int, exact: bool) -> Token:
        """The search page tells the tokens that differ in case and space only; of these it is chosen as on the site:
        with a space before it first, then without, then in another case."""
        if isinstance(which, int):
            return self.places(which, None, "all", None, 1, False).token
        groups = self.search(_as_one_word(which), None, None, 1, False).words
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

    def places(
        self, token: int, lens: AskedLens, preset: Preset, kind: str | None, page: int, hide_hubs: bool
    ) -> TokenView:
        return self._get(TokenView, f"token/{token}", hide_hubs, lens=lens, preset=preset, kind=kind, page=page)

    def search(self, q: str, lens: AskedLens, kind: str | None, page: int, hide_hubs: bool) -> SearchView:
        return self._get(SearchView, "search", hide_hubs, q=q, lens=lens, kind=kind, page=page)

    def seeds(
        self, words: str, kinds: Sequence[str], lens: Lens, k: int, exact: bool | None
    ) -> tuple[SeedsView, bool, tuple[int, ...]]:
        if exact is False:
            raise NeedsIndex(
                f"seeds of {self.name} from the stored lists: a server computes them from the weights, so leave out "
                "exact=False, or open the index itself"
            )
        view = self._get(SeedsView, "seeds", False, live=True, words=words, kind=",".join(kinds), lens=lens, k=k)
        return view, True, ()

    def run(self, ask: PromptArguments) -> PromptView:
        text = {"text": None, "z": pack(ask.text)} if len(quote(ask.text)) > LONG_TEXT else {}
        panels = {"panel": ",".join(ask.panel)}
        return self._get(PromptView, "prompt", False, live=True, **ask.query() | panels | text)

    def read(self, make: Callable[[Index], V]) -> V:  # noqa: ARG002
        raise NeedsIndex(
            f"lists of {self.name} over layers take the index itself, and this model is read from "
            f"{self._site.origin}. `lexiscope pull` or `lexiscope precompute` brings it here; single neurons, heads, "
            "tokens, searches, seeds and runs work without"
        )

    def _get(self, view: type[V], path: str, hide_hubs: bool, live: bool = False, **query: Any) -> V:
        hubs = {"hubs": "hide" if hide_hubs else None}
        return self._site.get(view, f"/{quote(self.name)}/{path}", query | hubs, live)


def _as_one_word(text: str) -> str:
    """A search whose first word is this text, whatever signs it has; NotFound where no search says it."""
    q = text.strip() if '"' in text else f'"{text}"'  # a word with quotes in it cannot stand in quotes
    is_parted = '"' in text and (any(c.isspace() or c == "," for c in q) or _QUOTED.fullmatch(q))
    if is_parted or "\0" in text or len(q) > LONGEST - 2:
        raise NotFound(f"token {text[:100]!r}: no search of a server says this text. Give the token's id")
    # An arrow would part two words, but not where there is a <.
    return q if "<" in text else f"{q} <" if ">" in text or "→" in text else q
