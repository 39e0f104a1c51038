"""What people type into the search: words, tokens by their ids, a pair of words such as king > queen."""

import re
from dataclasses import dataclass

from lexiscope.app.views.token_search import token_search
from lexiscope.precompute.errors import BadRequest
from lexiscope.precompute.index.tokens import TokenTable
from lexiscope.precompute.live.wire.grammar import WordPair, write_pairs

LONGEST = 200  # characters of a search

_WORD = re.compile(r'"(?P<quoted>[^"]+)"(?=[\s,]|$)|(?P<plain>[^\s,]+)')
_ID = re.compile(r"#(\d{1,9})", re.ASCII)
_ARROW = re.compile(r"-?>|→")
_NO_WORD = re.compile(r"-?>|→|[,;\n]")  # what an address of Pairs to heads has between words


@dataclass(frozen=True)
class SearchWord:
    text: str
    tokens: tuple[int, ...]  # that it stands for


@dataclass(frozen=True)
class SearchText:
    q: str
    words: tuple[SearchWord, ...]
    has_arrow: bool  # between two words, as in `king > queen`
    relation: str | None  # of two words, with an arrow or without: what Pairs to heads is asked


def read_search_text(tokens: TokenTable, q: str) -> SearchText:
    """BadRequest if it cannot be a search."""
    if len(q) > LONGEST:
        raise BadRequest(f"a search of {len(q)} characters: it has at most {LONGEST}")
    try:
        q.encode()
    except UnicodeEncodeError:
        raise BadRequest("this search is not valid Unicode: type it again") from None
    sides = _sides(q)
    return SearchText(q, _words(tokens, q, sides), sides is not None, _relation(q, sides))


def _sides(q: str) -> list[str] | None:
    """The words of `king > queen`, also with -> or →; None of other searches, such as <b>."""
    sides = [side.strip() for side in _ARROW.split(q)]
    return sides if len(sides) == 2 and all(sides) and "<" not in q else None


def _words(tokens: TokenTable, q: str, sides: list[str] | None) -> tuple[SearchWord, ...]:
    """Each once, those of a pair without their arrow; a text of nothing but white space and commas is one word, for
    those are tokens, too."""
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


def _relation(q: str, sides: list[str] | None) -> str | None:
    words = sides or [match["quoted"] or match["plain"] for match in _WORD.finditer(q)]
    if len(words) != 2 or any(_ID.fullmatch(word) or _NO_WORD.search(word) for word in words):
        return None
    return write_pairs([WordPair(source=words[0], target=words[1])])
