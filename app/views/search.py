"""The search page: tokens by their text, the vectors and head pairs that hold them, and parameters by their address."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Annotated, Literal

from pydantic import Field

from lexiscope.app import addresses
from lexiscope.app.library.labels import ModelLabels
from lexiscope.app.views.difference import minus_of
from lexiscope.app.views.labels import ShownLabel, shown
from lexiscope.app.views.parse_address import parse_address
from lexiscope.app.views.search_matches import PairMatch, VectorMatch, find_matches
from lexiscope.app.views.search_text import SearchText, read_search_text
from lexiscope.app.views.token_search import token_search
from lexiscope.app.views.tokens import Token, ViewOfModel, tokens_of
from lexiscope.app.views.vectors import NOT_STORED
from lexiscope.precompute.index.index import Index
from lexiscope.precompute.index.not_stored import check_kinds, check_lens, kinds_not_stored
from lexiscope.precompute.index.tokens import TokenTable

if TYPE_CHECKING:
    from tokenizers import Tokenizer

GROUPS = 20  # of tokens like the search
FIRST_LABELS = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class TokenGroup:
    """Tokens that differ in case and surrounding space only, or in the ## of a WordPiece vocabulary."""

    surface: str
    match: Literal["exact", "prefix", "substring"]
    tokens: list[Token]


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchView(ViewOfModel):
    q: str
    lens: str
    kind: str | None
    jump: str | None  # the path of the parameter that was named; of a pair such as king > queen, Pairs to heads
    relation: Annotated[
        str | None,
        Field(description="Of two words, or king > queen: what to give Pairs to heads as `pairs`"),
    ]
    words: list[TokenGroup]  # what each word of the search stands for
    tokens: list[TokenGroup]  # tokens like the search
    pieces: list[Token]  # how the tokenizer splits a text that is no token itself
    page: int
    missing: tuple[int, ...]  # layers that are not built or damaged: they may match, too
    pages: int
    total: int
    matches: list[VectorMatch]
    pairs: Annotated[list[PairMatch] | None, NOT_STORED]  # of one or two words: the best on page 1; kind vo or qk: all
    pairs_total: Annotated[int | None, NOT_STORED]
    not_stored: Annotated[
        tuple[str, ...], Field(description="Kinds and matrices that the index was built without: they may match, too")
    ]
    labels: Annotated[
        list[ShownLabel], Field(description="What people said in these words: the first on page 1 of any kind")
    ] = field(default_factory=list)
    labels_total: int = 0

    @property
    def token_groups(self) -> list[TokenGroup]:
        """What people see of the tokens: those that every word stands for, then those like the last one."""
        meant = [word for word in self.words if word.tokens] if len(self.words) > 1 else []
        surfaces = {word.surface for word in meant}
        return meant + [group for group in self.tokens if group.surface not in surfaces]


def search_view(
    index: Index,
    q: str,
    lens: str = "dot",
    kind: str | None = None,
    page: int = 1,
    size: int | None = 50,
    tokenizer: "Tokenizer | None" = None,
    hubs: frozenset[int] = frozenset(),
    live: bool = False,
) -> SearchView:
    """A `size` of None: all matches and pairs on one page. Hubs that are given are skipped among first tokens. `live`:
    a worker answers for the model, so that a pair can be looked for in all heads."""
    text = read_search_text(index.tokens, q)
    check_lens(index, lens)
    if kind is not None:
        check_kinds(index, kind)
    view = _without_matches(index, text, lens, kind)
    matches = find_matches(index, [word.tokens for word in text.words], lens, kind, page, size, hubs)
    return replace(
        view,
        jump=view.jump or (_jump_to_relation(index, text, lens) if live else None),
        pieces=_pieces(index.tokens, tokenizer, [word.text for word in text.words if not word.tokens]),
        page=page,
        missing=matches.missing,
        pages=matches.pages,
        total=matches.total,
        matches=matches.vectors,
        pairs=matches.pairs if index.stored.pairs else None,
        pairs_total=matches.pairs_total if index.stored.pairs else None,
    )


def suggest_view(index: Index, q: str, lens: str = "dot", kind: str | None = None) -> SearchView:
    """A search without its matches, for every key that is pressed."""
    return _without_matches(index, read_search_text(index.tokens, q), lens, kind)


def with_labels(index: Index, view: SearchView, labels: ModelLabels) -> SearchView:
    """The search with labels that have its words, on its first page."""
    found = labels.with_words(view.q) if view.kind is None and view.page == 1 else []
    return replace(view, labels=[shown(index, filed) for filed in found[:FIRST_LABELS]], labels_total=len(found))


def _without_matches(index: Index, text: SearchText, lens: str, kind: str | None) -> SearchView:
    """The last word is the one that is being typed: tokens like it are offered."""
    tokens, search = index.tokens, token_search(index.tokens)
    like = search.like(text.words[-1].text, GROUPS) if text.words else []
    return SearchView(
        model=index.manifest.model,
        build=index.manifest.build,
        minus=minus_of(index),
        q=text.q,
        lens=lens,
        kind=kind,
        jump=parse_address(index.manifest.model, index.shape, text.q, lens),
        relation=text.relation,
        words=[_group(tokens, word.text, "exact", word.tokens) for word in text.words],
        tokens=[_group(tokens, surface, how, search.tokens(surface)) for surface, how in like],
        pieces=[],
        page=1,
        missing=(),
        pages=1,
        total=0,
        matches=[],
        pairs=[] if index.stored.pairs else None,
        pairs_total=0 if index.stored.pairs else None,
        not_stored=kinds_not_stored(index),
    )


def _jump_to_relation(index: Index, text: SearchText, lens: str) -> str | None:
    pairs = text.relation if text.has_arrow else None
    return addresses.link("relation", index.manifest.model, pairs=pairs, lens=lens) if pairs else None


def _group(
    tokens: TokenTable, text: str, how: Literal["exact", "prefix", "substring"], ids: Sequence[int]
) -> TokenGroup:
    return TokenGroup(surface=tokens.surface(text) or text, match=how, tokens=tokens_of(tokens, ids))


def _pieces(tokens: TokenTable, tokenizer: "Tokenizer | None", texts: Sequence[str]) -> list[Token]:
    """How the words that are no tokens are split, as they would be in a sentence."""
    if tokenizer is None or not texts:
        return []
    try:
        ids = tokenizer.encode(" " + " ".join(texts), add_special_tokens=False).ids
    except Exception:  # the library raises nothing more special: a tokenizer may know no token for a text
        return []
    return tokens_of(tokens, [token for token in ids if token < len(tokens)])
