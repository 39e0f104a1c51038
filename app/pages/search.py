"""Search for tokens by their text, for vectors whose lists hold all of the words, for heads with pairs of one word or
two, and for parameters by their names."""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import Field
from typing_extensions import TypedDict

from lexiscope.app.formats.csv_format import defused
from lexiscope.app.formats.stored_tables import FIRST_PAIR as FIRST_PAIR_COLUMNS
from lexiscope.app.formats.stored_tables import FIRST_TOKENS, HEAD, HEAD_COLUMNS, VECTOR_COLUMNS, WHERE, listed_neurons
from lexiscope.app.formats.table import SCORE, Column, Table, csv_order
from lexiscope.app.lists.checks import count_pages, page_slice
from lexiscope.app.lists.find_tokens import token_search
from lexiscope.app.lists.first_words import FIRST_PAIR, first_pair, to_read, token_rows
from lexiscope.app.lists.labels import ShownLabel, shown
from lexiscope.app.lists.stored_transitions import LISTED_TRANSITIONS, ListedTransition, listed_transitions
from lexiscope.app.lists.vectors import NOT_STORED
from lexiscope.app.lists.view import (
    PAGE_ONLY,
    InHead,
    Token,
    TokenPair,
    ViewOfModel,
    in_head,
    of_index,
    token_pairs,
    tokens_of,
    visible,
)
from lexiscope.app.pages.find import pasted_model, possible_pages
from lexiscope.app.pages.page import Address, AnyKind, LensArguments, ModelSite, Moved, Page, PageNumber
from lexiscope.app.urls import link
from lexiscope.precompute.errors import BadRequest
from lexiscope.precompute.index.index import Index
from lexiscope.precompute.index.lookup import look_up_words
from lexiscope.precompute.index.lookup.pairs import PairMatches
from lexiscope.precompute.index.lookup.vectors import VectorMatches
from lexiscope.precompute.index.not_stored import check_kinds, check_lens, kinds_not_stored
from lexiscope.precompute.index.parameter_names import out_of_range
from lexiscope.precompute.index.tokens import TokenTable
from lexiscope.precompute.live.wire.grammar import LONGEST_WORD, Term, WordPair, parse_terms, write_pairs, write_terms
from lexiscope.precompute.shape import ENDS, MATRICES, PRESETS

if TYPE_CHECKING:
    from tokenizers import Tokenizer

GROUPS = 20  # most groups of tokens like the search
SUGGESTED, SUGGESTED_FORMS = 8, 3  # most words that are suggested, and most tokens of the one that was typed
FIRST_LABELS = 20
PAIRS_BESIDE = 20  # most pairs that are shown beside the vectors of all kinds
LONGEST_SEARCH = 200  # most characters of a search

FROM, TO = Column("from", "token", heading="reads or query"), Column("to", "token", heading="writes or key")

_WORD = re.compile(r'"(?P<quoted>[^"]+)"(?=[\s,]|$)|(?P<plain>[^\s,]+)')
_ID = re.compile(r"#(\d{1,9})", re.ASCII)
_ARROW = re.compile(r"-?>|→")
_NO_WORD = re.compile(r"-?>|→|[,;\n]")  # characters between words of the argument of the page Pairs to heads


class SearchAt(Address):
    pattern = "search"


class SearchArguments(LensArguments):
    q: Annotated[
        str,
        Field(
            description='Words, "quoted phrases", token ids such as #3290, an address such as L10N2361, or a pair '
            "such as king > queen",
            examples=["dog", "L10N2361"],
        ),
    ] = ""
    kind: Annotated[AnyKind | None, Field(description="Only vectors of this kind, or pairs of this matrix")] = None
    page: PageNumber = 1

    def query(self) -> dict[str, Any]:
        return {"q": self.q, **super().query()}


class VectorMatch(InHead):
    """A vector whose lists hold every word of a search."""

    kind: str
    layer: int
    index: int
    end: str
    ranks: list[int]  # for each word, the best rank of its tokens; 1 is the first
    tokens: list[Token]  # for each word, the token that has this rank
    first: list[Token]  # the first tokens of the list that holds the words


PairMatch = TypedDict(  # a pair of a head that holds the word of a search, or both words, one at each side
    "PairMatch",
    {
        "matrix": str,
        "layer": int,
        "head": int,
        "preset": str,  # the preset; if several presets hold the pair, the one in which its rank is best
        "end": str,
        "rank": int,  # the rank in the list; 1 is the first
        "from": Token,
        "to": Token,
        "score": float,
        "first": Annotated[TokenPair | None, FIRST_PAIR],
    },
)


@dataclass(frozen=True)
class SearchMatches:
    vectors: list[VectorMatch]
    total: int  # how many vectors match
    pairs: list[PairMatch]
    pairs_total: int
    pages: int
    missing: tuple[int, ...]  # the layers that are not built or damaged


@dataclass(frozen=True)
class SearchWord:
    text: str
    tokens: tuple[int, ...]  # the tokens that the word stands for


@dataclass(frozen=True)
class SearchText:
    q: str
    words: tuple[SearchWord, ...]
    has_arrow: bool  # whether an arrow stands between two words, as in `king > queen`
    pair: WordPair | None  # the two words, if there are two

    @property
    def relation(self) -> str | None:
        """Return the argument for the page Pairs to heads."""
        return write_pairs([self.pair]) if self.pair else None


@dataclass(frozen=True, slots=True, kw_only=True)
class TokenGroup:
    """Tokens that differ only in case and surrounding space, or in the ## of a WordPiece vocabulary."""

    surface: str
    match: Literal["exact", "prefix", "substring"]
    tokens: list[Token]


class Suggestion(Token):
    """A token that is suggested while somebody types."""

    lists: int  # how many lists of vectors hold it


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchView(ViewOfModel):
    q: str
    lens: str
    kind: str | None
    # the path of the page that the search names: a parameter's, or for `king > queen` that of Pairs to heads
    jump: str | None
    relation: Annotated[
        str | None, Field(description="Of two words, or king > queen: what to give Pairs to heads as `pairs`")
    ]
    words: list[TokenGroup]  # what each word of the search stands for
    tokens: list[TokenGroup]  # tokens like the search
    pieces: list[Token]  # how the tokenizer splits a text that is no token itself
    page: int
    missing: tuple[int, ...]  # the layers that are not built or damaged: they may match, too
    pages: int
    total: int
    matches: list[VectorMatch]
    # For one or two words: on page 1 the best pairs; all pairs with kind vo or qk.
    pairs: Annotated[list[PairMatch] | None, NOT_STORED]
    pairs_total: Annotated[int | None, NOT_STORED]
    not_stored: Annotated[
        tuple[str, ...], Field(description="Kinds and matrices that the index was built without: they may match, too")
    ]
    neurons: Annotated[list[ListedTransition] | None, LISTED_TRANSITIONS] = None
    neurons_total: int | None = None
    labels: Annotated[
        list[ShownLabel], Field(description="What people said in these words: the first on page 1 of any kind")
    ] = field(default_factory=list)
    labels_total: int = 0
    # The pages that the text may mean, with their titles.
    named: Annotated[list[tuple[str, str]], PAGE_ONLY] = field(default_factory=list)
    # A text that says which parameters exist, if the search names one that does not.
    outside: Annotated[str | None, PAGE_ONLY] = None
    pasted_model: Annotated[str | None, PAGE_ONLY] = None  # the model in the pasted address of a page
    suggested: Annotated[list[Suggestion], PAGE_ONLY] = field(default_factory=list)

    @property
    def token_groups(self) -> list[TokenGroup]:
        """Return the groups of tokens that people see: those that the words stand for, then those like the last
        word."""
        meant = [word for word in self.words if word.tokens] if len(self.words) > 1 else []
        surfaces = {word.surface for word in meant}
        return meant + [group for group in self.tokens if group.surface not in surfaces]

    @property
    def seeds(self) -> tuple[Term, ...]:
        """Return the words of the search as seed words; none if it names a parameter, a token or a pair, or holds
        nothing that can be a seed."""
        if self.named or self.outside or self.pasted_model or _ID.search(self.q) or _ARROW.search(self.q):
            return ()
        try:
            return parse_terms(self.q)
        except BadRequest:
            return ()

    @property
    def seed_words(self) -> str:
        """Return the seed words as the page of seed words takes them."""
        return write_terms(self.seeds)

    def match_table(self) -> Table:
        """Make the page's table of vectors whose lists hold every word."""
        where, found = replace(WHERE, kind="address"), Column("tokens", heading="found, with ranks")
        return Table("", (where, Column("list"), FIRST_TOKENS, found), self.matches)

    def pair_table(self) -> Table:
        """Make the page's table of heads that pair the words."""
        columns = (
            HEAD, Column("matrix"), FROM, TO, Column("end"), Column("rank", "number"), Column("score", "number"),
            FIRST_PAIR_COLUMNS[0],
        )  # fmt: skip
        return Table("", columns, self.pairs or ())

    def neuron_table(self) -> Table:
        return listed_neurons(self.model, self.neurons)

    def about(self) -> dict[str, Any]:
        return {"model": self.model, "q": defused(self.q), "lens": self.lens}

    def tables(self) -> list[Table]:
        by_word = [column for at in range(len(self.words)) for column in _of_word(at)]
        groups = (
            Column("match", get=lambda group: group.match),
            Column("word", get=lambda group: visible(group.surface)),
            Column("tokens", "tokens", get=lambda group: group.tokens),
        )
        matches = (
            *VECTOR_COLUMNS, Column("kind"), Column("end"), *by_word,
            Column("ranks", get=lambda match: ", ".join(map(str, match["ranks"])), audience="people"),
            Column("tokens", "tokens", audience="people"), FIRST_TOKENS,
        )  # fmt: skip
        pairs = (
            *HEAD_COLUMNS, Column("kind", get=lambda pair: pair["matrix"], heading="matrix"), FROM, TO,
            Column("end"), Column("preset"), Column("rank", "number"), SCORE, *FIRST_PAIR_COLUMNS,
        )  # fmt: skip
        order: tuple[Column | str, ...] = (
            "kind", "layer", "index", "head", "subhead", "end", *by_word, "preset", "rank", FROM, TO, "score",
            FIRST_TOKENS, *FIRST_PAIR_COLUMNS, "direction",
        )  # fmt: skip
        tables = [csv_order(*order), Table(f"{self.model}, tokens like {self.q}", groups, self.token_groups, "people")]
        if self.matches:
            title = f"{self.model}, parameters that list {self.q} ({self.lens})"
            tables.append(Table(title, matches, self.matches))
        if self.neurons:
            tables.append(self.neuron_table())
        if self.pairs:
            tables.append(Table(f"{self.model}, heads that pair {self.q} ({self.lens})", pairs, self.pairs))
        return tables


def search(site: ModelSite, at: SearchAt, ask: SearchArguments) -> SearchView:  # noqa: ARG001
    """Tokens that are like the words, the parameters that list all of them, and the heads that pair one or two.

    An address such as L10N2361, 8.11 or a pasted link is returned in `jump`; the page for people redirects there. A
    pair such as `king > queen` redirects to the page Pairs to heads.
    """
    index, q, lens, kind = site.index, ask.q, ask.lens, ask.kind
    model = index.manifest.model
    text = _read_search_text(index.tokens, q)
    if site.part:  # the suggestions of the search box
        return replace(_without_matches(index, text, lens, kind), suggested=_suggestions(index, text, lens))
    check_lens(index, lens)
    if kind is not None:
        check_kinds(index, kind)
    view = _without_matches(index, text, lens, kind)
    jump = view.jump or (_jump_to_relation(index, text, lens) if site.serves(model) else None)
    page, size = site.window(ask.page, site.settings.search_rows)
    matches = _find_matches(index, [word.tokens for word in text.words], lens, kind, page, size, site.left_out(lens))
    if jump and site.format == "html":
        raise Moved(jump)
    neurons, neurons_total = listed_transitions(index, [text.pair] if text.pair and text.has_arrow else (), lens)
    labels = site.library.labels.of(index).with_words(q) if kind is None and page == 1 else []
    tokenizer = site.library.tokenizer(model) if q else None
    return replace(
        view,
        jump=jump,
        pieces=_pieces(index.tokens, tokenizer, [word.text for word in text.words if not word.tokens]),
        page=page,
        missing=matches.missing,
        pages=matches.pages,
        total=matches.total,
        matches=matches.vectors,
        pairs=matches.pairs if index.stored.pairs else None,
        pairs_total=matches.pairs_total if index.stored.pairs else None,
        neurons=neurons,
        neurons_total=neurons_total,
        labels=[shown(index, filed) for filed in labels[:FIRST_LABELS]],
        labels_total=len(labels),
    )


def _without_matches(index: Index, text: SearchText, lens: str, kind: str | None) -> SearchView:
    """Return the result of a search without matching vectors and pairs, which is made for every key that is pressed."""
    tokens, search = index.tokens, token_search(index.tokens)
    model = index.manifest.model
    named = possible_pages(model, index.shape, text.q, lens)
    like = search.like(text.words[-1].text, GROUPS) if text.words else []
    return SearchView(
        **of_index(index),
        q=text.q,
        lens=lens,
        kind=kind,
        jump=named[0][0] if named else None,
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
        named=named,
        outside=out_of_range(model, index.shape, text.q),
        pasted_model=pasted_model(text.q),
    )


def _suggestions(index: Index, text: SearchText, lens: str) -> list[Suggestion]:
    """Return a token for each text like the last word, which is still being typed: the one with a space before it if
    there is one. Other tokens of the word as it is typed come last."""
    search, texts = token_search(index.tokens), index.tokens.texts
    suggested: list[int] = []
    forms: list[int] = []
    for surface, how in search.suggest(text.words[-1].text, SUGGESTED) if text.words else ():
        tokens = search.tokens(surface)
        suggested.append(next((token for token in tokens if texts[token].startswith(" ")), tokens[0]))
        forms += [token for token in tokens if token != suggested[-1]][: SUGGESTED_FORMS - 1] if how == "exact" else []
    lists = index.lists_of_tokens(lens if lens in index.stored.lenses else index.stored.lens)
    return [{"id": token, "token": texts[token], "lists": int(lists[token])} for token in (*suggested, *forms)]


def _jump_to_relation(index: Index, text: SearchText, lens: str) -> str | None:
    pairs = text.relation if text.has_arrow else None
    return link("relation", index.manifest.model, pairs=pairs, lens=lens) if pairs else None


def _group(
    tokens: TokenTable, text: str, how: Literal["exact", "prefix", "substring"], ids: Sequence[int]
) -> TokenGroup:
    return TokenGroup(surface=tokens.surface(text) or text, match=how, tokens=tokens_of(tokens, ids))


def _pieces(tokens: TokenTable, tokenizer: "Tokenizer | None", texts: Sequence[str]) -> list[Token]:
    """Split the words that are not tokens into tokens, as the tokenizer would in a sentence."""
    if tokenizer is None or not texts:
        return []
    try:
        ids = tokenizer.encode(" " + " ".join(texts), add_special_tokens=False).ids
    except Exception:  # the library has no narrower error for a text that the tokenizer has no token for
        return []
    return tokens_of(tokens, [token for token in ids if token < len(tokens)])


def _read_search_text(tokens: TokenTable, q: str) -> SearchText:
    """Return the words of a search; raise BadRequest if the text cannot be a search."""
    if len(q) > LONGEST_SEARCH:
        raise BadRequest(f"a search of {len(q)} characters: it has at most {LONGEST_SEARCH}")
    try:
        q.encode()
    except UnicodeEncodeError:
        raise BadRequest("this search is not valid Unicode: type it again") from None
    sides = _sides(q)
    return SearchText(q, _words(tokens, q, sides), sides is not None, _pair(q, sides))


def _sides(q: str) -> list[str] | None:
    """Return the two words of `king > queen`, which may also have -> or →; None for other searches, such as <b>."""
    sides = [side.strip() for side in _ARROW.split(q)]
    return sides if len(sides) == 2 and all(sides) and "<" not in q else None


def _words(tokens: TokenTable, q: str, sides: list[str] | None) -> tuple[SearchWord, ...]:
    """Return each word of the search once, without the arrow of a pair. A text of only white space and commas is one
    word, because there are such tokens, too."""
    search = token_search(tokens)
    words: dict[str, SearchWord] = {}
    for match in _WORD.finditer(" ".join(sides or [q])):
        text = match["quoted"] or match["plain"]
        if number := _ID.fullmatch(match["plain"] or ""):
            token = int(number[1])
            words.setdefault(text, SearchWord(text, (token,) if token < len(tokens) else ()))
        else:
            words.setdefault(tokens.surface(text) or text, SearchWord(text, search.tokens(text)))
    if not words and q.strip():
        return (SearchWord(q.strip(), search.tokens(q)),)
    return tuple(words.values())


def _pair(q: str, sides: list[str] | None) -> WordPair | None:
    words = sides or [match["quoted"] or match["plain"] for match in _WORD.finditer(q)]
    if len(words) != 2 or any(_ID.fullmatch(word) or _NO_WORD.search(word) for word in words):
        return None
    return WordPair(source=words[0], target=words[1]) if max(map(len, words)) <= LONGEST_WORD else None


def _find_matches(
    index: Index,
    words: Sequence[tuple[int, ...]],
    lens: str,
    kind: str | None,
    page: int,
    size: int | None,
    hubs: frozenset[int],
) -> SearchMatches:
    """Find the vectors and pairs that match the words, each of which stands for any of its tokens: one page of vectors,
    or of pairs if `kind` is a matrix; without a kind, page 1 also has some pairs."""
    window, first_pairs = page_slice(page, size), slice(0, PAIRS_BESIDE if page == 1 else 0)
    found = look_up_words(
        index, words, lens,
        kinds=[name for name in index.shape.kinds if kind in (None, name)],
        matrices=[name for name in MATRICES if kind in (None, name)],
        vector_part=window,
        pair_part=first_pairs if kind is None and size is not None else window,
        first=to_read(hubs),
    )  # fmt: skip
    in_pages = found.pairs.total if kind in MATRICES else found.vectors.total
    return SearchMatches(
        vectors=_vector_matches(index, found.vectors, hubs),
        total=found.vectors.total,
        pairs=_pair_matches(index, found.pairs, hubs),
        pairs_total=found.pairs.total,
        pages=count_pages(in_pages, page, size),
        missing=found.missing,
    )


def _vector_matches(index: Index, found: VectorMatches, hubs: frozenset[int]) -> list[VectorMatch]:
    columns = (c.tolist() for c in (found.layer, found.kind, found.index, found.end, found.ranks, found.tokens))
    first_tokens = token_rows(index.tokens, found.first, hubs)
    matches: list[VectorMatch] = []
    for layer, kind_at, number, end, ranks, tokens, first in zip(*columns, first_tokens, strict=True):
        kind = index.stored.kinds[kind_at]
        matches.append(
            {
                "kind": kind,
                "layer": layer,
                "index": number,
                **in_head(index.shape, kind, number),
                "end": ENDS[end],
                "ranks": [rank + 1 for rank in ranks],
                "tokens": tokens_of(index.tokens, tokens),
                "first": first,
            }
        )
    return matches


def _pair_matches(index: Index, found: PairMatches, hubs: frozenset[int]) -> list[PairMatch]:
    columns = (found.matrix, found.layer, found.head, found.preset, found.end, found.rank)
    pairs = token_pairs(index.tokens, found.ids.tolist(), found.score.tolist())
    return [
        {
            "matrix": MATRICES[matrix],
            "layer": layer,
            "head": head,
            "preset": PRESETS[preset],
            "end": ENDS[end],
            "rank": rank + 1,
            "from": pair["from"],
            "to": pair["to"],
            "score": pair["score"],
            "first": first_pair(index, MATRICES[matrix], layer, head, hubs),
        }
        for pair, matrix, layer, head, preset, end, rank in zip(
            pairs, *(column.tolist() for column in columns), strict=True
        )
    ]


def _of_word(at: int) -> Iterable[Column]:
    """Yield the columns of CSV for the rank and the token of one word of a search."""

    def token(match: Any) -> Token:
        tokens: list[Token] = match["tokens"]
        return tokens[at]

    yield Column(f"rank_{at + 1}", get=lambda match: match["ranks"][at], audience="programs")
    yield Column(f"token_{at + 1}", "token", get=token, audience="programs")


def _version(site: ModelSite) -> str:
    """Return a text that changes when the tokenizer's file disappears or comes back, or when a worker begins to
    answer."""
    model = site.index.manifest.model
    return "" if site.part else f"{site.library.tokenizer(model) is not None}, {site.serves(model)}"


SEARCH = Page(
    name="search", title="Search", at=SearchAt, arguments=SearchArguments, view=SearchView, make=search,
    version=_version, part="suggestions",
    leads_to="The search names a parameter, or a pair: the page for people goes there",
)  # fmt: skip
