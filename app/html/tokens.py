"""Tokens as chips: links to their pages, with visible spaces, whatever hostile text they hold.
All other HTML is in templates/."""

from collections.abc import Iterable, Sequence
from functools import lru_cache
from html import escape

from markupsafe import Markup

from lexiscope.app import addresses
from lexiscope.app.html.hubs import marked
from lexiscope.app.views.token_text import visible
from lexiscope.app.views.tokens import ScoredToken, Token, TokenPair
from lexiscope.precompute.index.tokens import CONTINUES

CUT = 9  # lists side by side have room for about as many characters
SEED_WORDS = 4

_TAG = '<a class="t" href="'
_HUB_TAG = '<a class="t hub" title="A hub: in unusually many lists, so that its place in one says little" href="'


def chip(token: Token, model: str, lens: str = "dot", marks: bool = True) -> Markup:
    return chips((token,), model, lens, marks)


def chips(tokens: Iterable[Token], model: str, lens: str = "dot", marks: bool = True) -> Markup:
    """Hubs have their mark, unless the tokens are of no list (`marks`): predictions of the model."""
    path, query = _around_id(model, lens, addresses.taken_along.get().get("hubs"))
    plain_tag, hub_tag = f"{_TAG}{path}", f"{_HUB_TAG}{path}"
    hubs = marked(lens) if marks else ()
    return Markup(
        " ".join(
            [
                f"{hub_tag if token['id'] in hubs else plain_tag}{token['id']}{query}{_chip_text(token['token'])}</a>"
                for token in tokens
            ]
        )
    )


def chip_text(token: Token) -> Markup:
    """What stands inside a chip: for headings, and for links that lead elsewhere."""
    return _chip_text(token["token"])


@lru_cache(256)
def _around_id(model: str, lens: str, hubs: str | None) -> tuple[str, str]:
    """What stands before and after a token's id in the address of its page."""
    path, mark, query = addresses.link("token", model, 0, lens=lens, hubs=hubs).partition("?")
    return escape(path.removesuffix("0")), f'{escape(mark + query)}">'


@lru_cache(1 << 17)  # the same tokens are in many lists; the tokens of a model fit
def _chip_text(text: str) -> Markup:
    """The spaces around a token, which are easily overlooked, and the ## of a piece that goes on with a word are set
    apart by colour; a token that may be cut is whole in its title."""
    shown = visible(text)
    title = f' title="{escape(shown)}"' if len(shown) > CUT else ""
    word = shown.strip("␣")
    before, after = shown.split(word, 1) if word else ("", "")
    if not before and word.startswith(CONTINUES) and word[len(CONTINUES) :].isalnum():
        before, word = CONTINUES, word.removeprefix(CONTINUES)
    marks = [f"<i>{mark}</i>" if mark else "" for mark in (before, after)]
    return Markup(f"<bdi{title}>{marks[0]}{escape(word or shown)}{marks[1]}</bdi>")


def plain(tokens: Iterable[Token]) -> str:
    """Tokens as text, for titles and descriptions."""
    words = [(token["token"], token["token"].strip()) for token in tokens]
    return ", ".join([word if word and word.isprintable() else visible(text) for text, word in words])


def plain_pairs(pairs: Iterable[TokenPair]) -> str:
    return ", ".join([f"{plain([pair['from']])} → {plain([pair['to']])}" for pair in pairs])


def around_rank(
    entries: Sequence[ScoredToken], rank: int
) -> tuple[list[ScoredToken], list[ScoredToken], list[ScoredToken]]:
    """The entries of a list before a rank, at it, and after it: hubs may be left out."""
    ranks = [entry.get("rank", at) for at, entry in enumerate(entries, 1)]
    before, there, after = (
        [entry for entry, at in zip(entries, ranks, strict=True) if (at > rank) - (at < rank) == side]
        for side in (-1, 0, 1)
    )
    return before, there, after


def seed_words(tokens: Iterable[Token]) -> str:
    """The first tokens that are words, as seed words: each once, whatever its case and space."""
    words: dict[str, str] = {}
    for token in tokens:
        word = token["token"].strip()
        if len(word) > 1 and word.isalpha():
            words.setdefault(word.casefold(), word)
        if len(words) == SEED_WORDS:
            break
    return ",".join(words.values())
