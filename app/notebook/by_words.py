"""Objects for what is found by words: a token and its places in lists, searches, and vectors similar to seed words."""

from collections.abc import Sequence
from dataclasses import dataclass

from lexiscope.app.formats.table import Table
from lexiscope.app.lists.view import visible
from lexiscope.app.notebook.arguments import AskedLens
from lexiscope.app.notebook.pages import Page
from lexiscope.app.notebook.show import Shown
from lexiscope.app.notebook.source import Source
from lexiscope.app.pages.find import page_at
from lexiscope.app.pages.heads import ThroughHeadsView
from lexiscope.app.pages.page import find_pages
from lexiscope.app.pages.relation import RelationView
from lexiscope.app.pages.search import SearchView
from lexiscope.app.pages.seeds import SeedsView
from lexiscope.app.pages.token import TOKEN, TokenAt, TokenView
from lexiscope.precompute.index.index import ranges
from lexiscope.precompute.shape import Preset


class Places(Page[TokenView]):
    """The places of a token: the vectors that read, write, avoid or suppress it, and the heads that map it."""

    def _title(self) -> str:
        token, listed = visible(self.view.token["token"]), sum(role.total for role in self.view.roles)
        return f"places of {token} in {self.view.model}: {listed} lists, lens {self.view.lens}"

    def _notes(self) -> Sequence[str]:
        return _missing(self.view.missing)


@dataclass(frozen=True, repr=False)
class Token(Shown):
    """A token of the vocabulary."""

    id: int
    text: str
    source: Source

    def places(
        self, *, kind: str | None = None, lens: AskedLens = None, preset: Preset = "all", page: int = 1,
        hide_hubs: bool = False,
    ) -> Places:  # fmt: skip
        """Return the lists that hold the token: the best of every kind of vector or, given one `kind`, all of that
        kind, in pages of a hundred."""
        at = TokenAt(token=self.id)
        return Places(self.source.get(TOKEN, at, hide_hubs, lens=lens, preset=preset, kind=kind, page=page))

    def _title(self) -> str:
        return f"token {self.id} {visible(self.text)} of {self.source.name}"

    def _tables(self) -> Sequence[Table]:
        return ()

    def _notes(self) -> Sequence[str]:
        return (f"{self._title()}: places() tells which lists hold it",)


class Search(Page[SearchView]):
    """The result of a search: tokens like some words, the parameters that list all of them, and the heads that pair
    them."""

    def _title(self) -> str:
        found = f"{self.view.total} parameters, {self.view.pairs_total or 0} pairs"
        return f"search {self.view.q!r} in {self.view.model}: {found}, lens {self.view.lens}"

    def _notes(self) -> Sequence[str]:
        """Return notes: what the search text names or, if it names nothing, which words are no tokens and so match
        nothing."""
        if self.view.jump:
            return (_named_by(self.view.jump), *_missing(self.view.missing))
        unknown = [visible(word.surface) for word in self.view.words if not word.tokens]
        pieces = " ".join(visible(piece["token"]) for piece in self.view.pieces)
        said = f"No token of {self.view.model}: {', '.join(unknown)}" + (
            f"; the pieces are {pieces}." if pieces else "."
        )
        return (*([said] if unknown else []), *_missing(self.view.missing))


@dataclass(frozen=True, repr=False)
class Seeds(Page[SeedsView]):
    """The vectors that are about some words, over all layers.

    If `exact` is True, they are computed from the weights, as on the page. Otherwise they come from the stored lists
    alone: a word counts only where a vector lists it, so vectors that are a little about all words are missed;
    `missing` are layers that could not be read.
    """

    exact: bool
    missing: tuple[int, ...] = ()

    def _title(self) -> str:
        how = "from the weights" if self.exact else "from the stored lists"
        return f"seeds {self.view.words!r} in {self.view.model}, {how}, lens {self.view.lens}"

    def _notes(self) -> Sequence[str]:
        if self.exact:
            return ("Computed from the weights: exact.",)
        said = "From the stored lists alone: a word counts where a vector lists it, and nowhere else. "
        if self.view.lens == "dot":
            said += "Scores are v · e_w as listed; those of the weights take off the mean token's. "
        said += "seeds(..., exact=True) computes the ranking from the weights."
        return (said, *_missing(self.missing))


class Relation(Page[RelationView]):
    """The heads that map the first word of each pair to the second, best mean rank first, beside their baselines."""

    def _title(self) -> str:
        pairs = ", ".join(f"{pair['source']['word']}>{pair['target']['word']}" for pair in self.view.pairs)
        return f"heads for {pairs} in {self.view.model}, {self.view.matrix.upper()}, lens {self.view.lens}"


class ThroughHeads(Page[ThroughHeadsView]):
    """What heads look for and write, given some words, as lists of tokens."""

    def _title(self) -> str:
        layers = f"layers {self.view.layers} of {self.view.model}"
        return f"{self.view.words} through heads of {layers}, lens {self.view.lens}"


def _named_by(address: str) -> str:
    """Return a sentence with the Python call for the page that a search names."""
    page, numbers = page_at(address)
    said = find_pages()[page].in_python or "This is a page of the site: {address}"
    return said.format(address=address, **numbers)


def _missing(layers: Sequence[int]) -> tuple[str, ...]:
    return (f"Layers {ranges(tuple(layers))} are not built or damaged: they may match, too.",) if layers else ()
