"""The search page: tokens by their text, the vectors and head pairs that hold them, and parameters by their address.
Finding tokens is for token_search.py, reading addresses for jumps.py."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from tokenizers import Tokenizer

from app.views.jumps import jump
from app.views.listings import match_rows, pair_match_rows
from app.views.page_types import SearchView, TokenGroup
from app.views.parts import cut, part, place_of, token_views
from app.views.token_search import TokenSearch, surface, token_search
from app.views.view_types import TokenView
from precompute.errors import BadRequest
from precompute.index.index import Index
from precompute.index.lookup import look_up_words
from precompute.index.tokens import TokenTable
from precompute.shape import LENSES, MATRICES

LONGEST = 200  # characters of a search
GROUPS = 20  # of tokens like the search
FIRST_PAIRS = 20  # beside the matches of all kinds

_WORD = re.compile(r'"(?P<quoted>[^"]+)"(?=[\s,]|$)|(?P<plain>[^\s,]+)')
_ID = re.compile(r"#(\d{1,9})", re.ASCII)


@dataclass(frozen=True)
class Word:
    text: str
    tokens: tuple[int, ...]


def search_view(
    index: Index,
    q: str,
    lens: str = "dot",
    kind: str | None = None,
    page: int = 1,
    size: int | None = 50,
    tokenizer: Tokenizer | None = None,
) -> SearchView:
    """A `size` of None: all matches and pairs on one page, which are made as they are read."""
    _check(q)
    place_of("lens", lens, LENSES)
    kinds: tuple[str, ...] = index.shape.kinds
    matrices: tuple[str, ...] = MATRICES
    if kind is not None:
        place_of("kind", kind, (*kinds, *MATRICES))
        kinds, matrices = ((), (kind,)) if kind in MATRICES else ((kind,), ())
    words = _words(token_search(index.tokens), len(index.tokens), q)
    vector_part = pair_part = part(page, size)
    if kind is None and size is not None:
        pair_part = slice(0, FIRST_PAIRS if page == 1 else 0)
    found = look_up_words(index, [word.tokens for word in words], lens, kinds, matrices, vector_part, pair_part)
    pages, _ = cut(found.pairs.total if kind in MATRICES else found.vectors.total, page, size)
    matches = match_rows(index.shape, index.tokens, found.vectors)
    pairs = pair_match_rows(index.tokens, found.pairs)
    return _view(
        index, q, lens, kind, words,
        page=page,
        pages=pages,
        pieces=_pieces(index.tokens, tokenizer, [word.text for word in words if not word.tokens]),
        total=found.vectors.total,
        matches=matches if size is None else tuple(matches),
        pairs=pairs if size is None else tuple(pairs),
        pairs_total=found.pairs.total,
        missing=found.missing,
    )  # fmt: skip


def suggest_view(index: Index, q: str, lens: str = "dot", kind: str | None = None) -> SearchView:
    """For every key that is pressed: a search without its matches."""
    _check(q)
    words = _words(token_search(index.tokens), len(index.tokens), q)
    return _view(index, q, lens, kind, words, pieces=(), page=1, pages=1, total=0, matches=(), missing=())


def _view(index: Index, q: str, lens: str, kind: str | None, words: Sequence[Word], **more: Any) -> SearchView:
    """The last word is the one that is being typed: tokens like it are offered."""
    tokens, search = index.tokens, token_search(index.tokens)
    like = search.like(words[-1].text, GROUPS) if words else []
    return SearchView.of(
        model=index.manifest.model,
        q=q,
        lens=lens,
        kind=kind,
        jump=jump(index.manifest.model, index.shape, q),
        words=tuple(_group(tokens, word.text, "exact", word.tokens) for word in words),
        tokens=tuple(_group(tokens, found, how, search.tokens(found)) for found, how in like),
        **more,
    )


def _check(q: str) -> None:
    if len(q) > LONGEST:
        raise BadRequest(f"a search of {len(q)} characters: it has at most {LONGEST}")
    try:
        q.encode()
    except UnicodeEncodeError:
        raise BadRequest("this search is not valid Unicode: type it again") from None


def _words(search: TokenSearch, d_vocab: int, q: str) -> list[Word]:
    """Each once; a text of nothing but white space and commas is one word, for those are tokens, too."""
    words: dict[str, Word] = {}
    for match in _WORD.finditer(q):
        text = match["quoted"] or match["plain"]
        if number := _ID.fullmatch(match["plain"] or ""):
            token = int(number[1])
            words.setdefault(text, Word(text, (token,) if token < d_vocab else ()))
        else:
            words.setdefault(surface(text) or text, Word(text, search.tokens(text)))
    if not words and q.strip():
        return [Word(q.strip(), search.tokens(q))]
    return list(words.values())


def _group(tokens: TokenTable, text: str, how: str, ids: Sequence[int]) -> TokenGroup:
    return TokenGroup.of(surface=surface(text) or text, match=how, tokens=token_views(tokens, ids))


def _pieces(tokens: TokenTable, tokenizer: Tokenizer | None, texts: Sequence[str]) -> tuple[TokenView, ...]:
    """How the words that are no tokens are split, as they would be in a sentence."""
    if tokenizer is None or not texts:
        return ()
    try:
        ids = tokenizer.encode(" " + " ".join(texts), add_special_tokens=False).ids
    except Exception:  # the library raises nothing more special: a tokenizer may know no token for a text
        return ()
    return token_views(tokens, [token for token in ids if token < len(tokens)])
