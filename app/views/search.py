"""The search page: tokens by their text, the vectors and head pairs that hold them, and parameters by their address."""

import re
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Annotated, Literal

from pydantic import Field
from tokenizers import Tokenizer
from typing_extensions import TypedDict

from app import addresses
from app.library.model_labels import ModelLabels
from app.views.checks import count_pages, page_slice
from app.views.difference import minus_of
from app.views.first_words import FIRST_PAIR, first_pair, to_read, token_rows
from app.views.labels import ShownLabel, shown
from app.views.parse_address import parse_address
from app.views.terms import write_pairs
from app.views.token_search import token_search
from app.views.tokens import Token, TokenPair, ViewOfModel, token_pairs, tokens_of
from app.views.vector_place import InHead, in_head
from app.views.vectors import NOT_STORED
from precompute.errors import BadRequest
from precompute.index.index import Index
from precompute.index.lookup import look_up_words
from precompute.index.lookup.pairs import PairMatches
from precompute.index.lookup.vectors import VectorMatches
from precompute.index.not_stored import check_kinds, check_lens, kinds_not_stored
from precompute.index.tokens import TokenTable
from precompute.live.wire.words import WordPair
from precompute.shape import ENDS, MATRICES, PRESETS

LONGEST = 200  # characters of a search
GROUPS = 20  # of tokens like the search
FIRST_PAIRS = 20  # beside the matches of all kinds
FIRST_LABELS = 20

_WORD = re.compile(r'"(?P<quoted>[^"]+)"(?=[\s,]|$)|(?P<plain>[^\s,]+)')
_ID = re.compile(r"#(\d{1,9})", re.ASCII)
_ARROW = re.compile(r"-?>|→")
_NO_WORD = re.compile(r"-?>|→|[,;\n]")  # what an address of Pairs to heads has between words


@dataclass(frozen=True, slots=True, kw_only=True)
class TokenGroup:
    """Tokens that differ in case and surrounding space only, or in the ## of a WordPiece vocabulary."""

    surface: str
    match: Literal["exact", "prefix", "substring"]
    tokens: list[Token]


class VectorMatch(InHead):
    """A vector that lists every word of a search."""

    kind: str
    layer: int
    index: int
    end: str
    ranks: list[int]  # the best of each word, 1 is the best
    tokens: list[Token]  # and the token that has it
    first: list[Token]  # of the list that holds them


PairMatch = TypedDict(  # a head pair that holds the word of a search, or both words, one at each side
    "PairMatch",
    {
        "matrix": str,
        "layer": int,
        "head": int,
        "preset": str,  # of those whose list holds it, the one in which its rank is best
        "end": str,
        "rank": int,  # 1 is the best
        "from": Token,
        "to": Token,
        "score": float,
        "first": Annotated[TokenPair | None, FIRST_PAIR],
    },
)


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


@dataclass(frozen=True)
class _Word:
    text: str
    tokens: tuple[int, ...]


@dataclass(frozen=True)
class _Matches:
    """The part of a search that comes from the lists."""

    pages: int = 1
    total: int = 0
    vectors: list[VectorMatch] = field(default_factory=list)
    pairs: list[PairMatch] = field(default_factory=list)
    pairs_total: int = 0
    missing: tuple[int, ...] = ()


def search_view(
    index: Index,
    q: str,
    lens: str = "dot",
    kind: str | None = None,
    page: int = 1,
    size: int | None = 50,
    tokenizer: Tokenizer | None = None,
    hubs: frozenset[int] = frozenset(),
    live: bool = False,
) -> SearchView:
    """A `size` of None: all matches and pairs on one page. Hubs that are given are skipped among first tokens. `live`:
    a worker answers for the model, so that a pair can be looked for in all heads."""
    _check(q)
    check_lens(index, lens)
    if kind is not None:
        check_kinds(index, kind)
    words = _words(index.tokens, q)
    matches = _matches(index, [word.tokens for word in words], lens, kind, page, size, hubs)
    pieces = _pieces(index.tokens, tokenizer, [word.text for word in words if not word.tokens])
    return _view(index, q, lens, kind, words, page, pieces, matches, live)


def with_labels(index: Index, view: SearchView, labels: ModelLabels) -> SearchView:
    """The search with labels that have its words, on its first page."""
    found = labels.with_words(view.q) if view.kind is None and view.page == 1 else []
    return replace(view, labels=[shown(index, filed) for filed in found[:FIRST_LABELS]], labels_total=len(found))


def suggest_view(index: Index, q: str, lens: str = "dot", kind: str | None = None) -> SearchView:
    """A search without its matches, for every key that is pressed."""
    _check(q)
    words = _words(index.tokens, q)
    return _view(index, q, lens, kind, words, page=1, pieces=[], matches=_Matches())


def _view(
    index: Index,
    q: str,
    lens: str,
    kind: str | None,
    words: Sequence[_Word],
    page: int,
    pieces: list[Token],
    matches: _Matches,
    live: bool = False,
) -> SearchView:
    """The last word is the one that is being typed: tokens like it are offered."""
    tokens, search = index.tokens, token_search(index.tokens)
    like = search.like(words[-1].text, GROUPS) if words else []
    return SearchView(
        model=index.manifest.model,
        build=index.manifest.build,
        minus=minus_of(index),
        q=q,
        lens=lens,
        kind=kind,
        jump=_jump(index, q, lens, live),
        relation=word_pair(q),
        words=[_group(tokens, word.text, "exact", word.tokens) for word in words],
        tokens=[_group(tokens, text, how, search.tokens(text)) for text, how in like],
        pieces=pieces,
        page=page,
        missing=matches.missing,
        pages=matches.pages,
        total=matches.total,
        matches=matches.vectors,
        pairs=matches.pairs if index.stored.pairs else None,
        pairs_total=matches.pairs_total if index.stored.pairs else None,
        not_stored=kinds_not_stored(index),
    )


def _check(q: str) -> None:
    if len(q) > LONGEST:
        raise BadRequest(f"a search of {len(q)} characters: it has at most {LONGEST}")
    try:
        q.encode()
    except UnicodeEncodeError:
        raise BadRequest("this search is not valid Unicode: type it again") from None


def word_pair(q: str) -> str | None:
    """What Pairs to heads is asked for two words, whether or not an arrow stands between them."""
    sides = _sides(q) or [match["quoted"] or match["plain"] for match in _WORD.finditer(q)]
    if len(sides) != 2 or any(_ID.fullmatch(side) or _NO_WORD.search(side) for side in sides):
        return None
    return write_pairs([WordPair(source=sides[0], target=sides[1])])


def _sides(q: str) -> list[str] | None:
    """The words of `king > queen`, also with -> or →; None of other searches, such as <b>."""
    sides = [side.strip() for side in _ARROW.split(q)]
    return sides if len(sides) == 2 and all(sides) and "<" not in q else None


def _jump(index: Index, q: str, lens: str, live: bool) -> str | None:
    model = index.manifest.model
    if address := parse_address(model, index.shape, q, lens):
        return address
    pair = word_pair(q) if live and _sides(q) else None
    return addresses.relation(model, pairs=pair, lens=lens) if pair else None


def _words(tokens: TokenTable, q: str) -> list[_Word]:
    """Each once, those of a pair without their arrow; a text of nothing but white space and commas is one word, for
    those are tokens, too."""
    search = token_search(tokens)
    words: dict[str, _Word] = {}
    for match in _WORD.finditer(" ".join(_sides(q) or [q])):
        text = match["quoted"] or match["plain"]
        if number := _ID.fullmatch(match["plain"] or ""):
            token = int(number[1])
            words.setdefault(text, _Word(text, (token,) if token < len(tokens) else ()))
        else:
            words.setdefault(tokens.surface(text) or text, _Word(text, search.tokens(text)))
    if not words and q.strip():
        return [_Word(q.strip(), search.tokens(q))]
    return list(words.values())


def _matches(
    index: Index,
    words: Sequence[tuple[int, ...]],
    lens: str,
    kind: str | None,
    page: int,
    size: int | None,
    hubs: frozenset[int],
) -> _Matches:
    """One page of the vectors, or of the pairs if a matrix is asked for; without a kind, some pairs beside page 1."""
    window, first_pairs = page_slice(page, size), slice(0, FIRST_PAIRS if page == 1 else 0)
    matches = look_up_words(
        index, words, lens,
        kinds=[name for name in index.shape.kinds if kind in (None, name)],
        matrices=[name for name in MATRICES if kind in (None, name)],
        vector_part=window,
        pair_part=first_pairs if kind is None and size is not None else window,
        first=to_read(hubs),
    )  # fmt: skip
    in_pages = matches.pairs.total if kind in MATRICES else matches.vectors.total
    return _Matches(
        count_pages(in_pages, page, size),
        matches.vectors.total,
        _vector_matches(index, matches.vectors, hubs),
        _pair_matches(index, matches.pairs, hubs),
        matches.pairs.total,
        matches.missing,
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


def _group(
    tokens: TokenTable, text: str, how: Literal["exact", "prefix", "substring"], ids: Sequence[int]
) -> TokenGroup:
    return TokenGroup(surface=tokens.surface(text) or text, match=how, tokens=tokens_of(tokens, ids))


def _pieces(tokens: TokenTable, tokenizer: Tokenizer | None, texts: Sequence[str]) -> list[Token]:
    """How the words that are no tokens are split, as they would be in a sentence."""
    if tokenizer is None or not texts:
        return []
    try:
        ids = tokenizer.encode(" " + " ".join(texts), add_special_tokens=False).ids
    except Exception:  # the library raises nothing more special: a tokenizer may know no token for a text
        return []
    return tokens_of(tokens, [token for token in ids if token < len(tokens)])
