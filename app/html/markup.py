"""Tokens as markup: chips that link to a token's page, with visible spaces, whatever hostile text they hold.
Rows of tables are in rows.py, everything that stands on a page once in templates/."""

from collections.abc import Callable, Iterable
from functools import lru_cache
from html import escape
from typing import Any
from urllib.parse import quote

from markupsafe import Markup

from app.html.figures import ratio
from app.views.token_text import shown
from app.views.view_types import PairView, ScoredView, TokenView
from app.views.vocabulary import token_markup

_MAX_SHOWN = 1 << 18


class _Shown(dict[str, str]):
    """text -> its markup; made once, and emptied before it can fill the memory."""

    def __missing__(self, text: str) -> str:
        if len(self) >= _MAX_SHOWN:
            self.clear()
        made = self[text] = token_markup(text)
        return made


SHOWN = _Shown()


@lru_cache(256)
def around_id(model: str, lens: str) -> tuple[str, str]:
    """What stands before and after the id in a chip's opening tag."""
    query = "" if lens == "dot" else f"?lens={quote(lens)}"
    return f'<a class=t href="/{quote(model)}/token/', f'{query}">'


def chipper(model: str, lens: str) -> Callable[[TokenView], str]:
    """token -> chip, for those who make many."""
    start, end = around_id(model, lens)
    return lambda token: f"{start}{token['id']}{end}{SHOWN[token['token']]}</a>"


def chip(model: str, token: TokenView, lens: str = "dot") -> Markup:
    return Markup(chipper(model, lens)(token))


def chips(model: str, tokens: Iterable[TokenView], lens: str = "dot") -> Markup:
    return Markup(" ".join(map(chipper(model, lens), tokens)))


def near_chips(model: str, entries: Iterable[ScoredView], to: str, lens: str = "dot") -> Markup:
    """Tokens with their cosines, each of which says what it is with."""
    made = chipper(model, lens)
    said = [
        f'<span class="near" title="{escape(near_tip(entry, to))}">{made(entry)} <span class="num">'
        f"{ratio(entry['score'])}</span></span>"
        for entry in entries
    ]
    return Markup(" ".join(said))


def near_tip(entry: ScoredView, to: str) -> str:
    return f"The cosine of {shown(entry['token'])}, its embedding centred, with {to}: {entry['score']:.3f}"


def pair(model: str, entry: PairView, lens: str = "dot") -> Markup:
    made = chipper(model, lens)
    return Markup(f'<span class="pair">{made(entry["from"])}<b>→</b>{made(entry["to"])}</span>')


def token_text(token: TokenView) -> Markup:
    """The token without a link, for headings."""
    return Markup(f'<span class="t">{SHOWN[token["token"]]}</span>')


def plain(tokens: Iterable[TokenView]) -> str:
    """Tokens as text, for titles and descriptions."""
    return ", ".join([token["token"].strip() or shown(token["token"]) for token in tokens])


def plain_pairs(entries: Iterable[PairView]) -> str:
    return ", ".join([f"{plain([entry['from']])} → {plain([entry['to']])}" for entry in entries])


def grouped(entries: Iterable[PairView]) -> list[tuple[TokenView, list[PairView]]]:
    """Pairs by their first token, in the order of the best of each."""
    groups: dict[int, list[PairView]] = {}
    for entry in entries:
        groups.setdefault(entry["from"]["id"], []).append(entry)
    return [(group[0]["from"], group) for group in groups.values()]


def ticked(text: str) -> Markup:
    """Text in which `this` is code."""
    parts = escape(text).split("`")
    if len(parts) % 2 == 0:  # an odd tick
        return Markup(escape(text))
    return Markup("".join([f"<code>{part}</code>" if i % 2 else part for i, part in enumerate(parts)]))


FUNCTIONS: dict[str, Any] = {
    made.__name__: made
    for made in (chip, chips, near_chips, pair, token_text, plain, plain_pairs, grouped, ticked, shown)
}
