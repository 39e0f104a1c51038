"""Write tokens as chips, which are small framed links to their pages with visible spaces, safe whatever text the tokens
hold. All other HTML is in templates/."""

from collections.abc import Container, Iterable, Sequence
from functools import lru_cache
from html import escape

from markupsafe import Markup

from lexiscope.app import urls
from lexiscope.app.html.glossary import explain_mark, tip
from lexiscope.app.html.hubs import is_bias, marked
from lexiscope.app.lists.view import ScoredToken, Token, TokenPair, visible
from lexiscope.precompute.index.tokens import CONTINUES, is_special

CUT = 9  # most characters of a chip where lists are side by side
SEED_WORDS = 4
BIAS_TOKENS = 4  # tokens of a folded list that are named

_TAG = '<a class="t" href="'
_FOLDED = f'<details class="bias"><summary title="{tip("high-bias")}">(high bias: '
_HUB_TAG = '<a class="t hub" title="A hub: in unusually many lists, so that its place in one says little" href="'


def chip(token: Token, model: str, lens: str = "dot", marks: bool = True) -> Markup:
    return chips((token,), model, lens, marks)


def chips(tokens: Iterable[Token], model: str, lens: str = "dot", marks: bool = True) -> Markup:
    """Write tokens as chips (small framed links). Hubs, the tokens in very many lists, get a mark, unless `marks` is
    False because the tokens are predictions and not a list."""
    path, query = _around_id(model, lens, tuple(urls.taken_along.get().items()), urls.pinned.get())
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


def list_chips(tokens: Sequence[Token], model: str, lens: str = "dot", marked_ids: Container[int] = ()) -> Markup:
    """Write the first tokens of a list as chips, those with `marked_ids` highlighted. If most are such as any list may
    hold, they are folded, one click away, as in McCormick's tables: (high bias: , . the and)."""
    written = chips(tokens, model, lens)
    if marked_ids:
        each = (chip(token, model, lens) for token in tokens)
        shown = (
            f"<mark>{link}</mark>" if token["id"] in marked_ids else link
            for token, link in zip(tokens, each, strict=True)
        )
        written = Markup(" ".join(shown))
    if not is_bias(tokens, lens):
        return written
    first = " ".join([_bias_text(token["token"]) for token in tokens[:BIAS_TOKENS]])
    return Markup(f"{_FOLDED}{first})</summary>{written}</details>")


@lru_cache(1 << 12)
def _bias_text(text: str) -> str:
    return f"<bdi>{escape(visible(text.strip(' ')))}</bdi>"


def pair_chips(pair: TokenPair, model: str, lens: str = "dot") -> Markup:
    first, second = chip(pair["from"], model, lens), chip(pair["to"], model, lens)
    return Markup(f'<span class="pair">{first}<b>→</b>{second}</span>')


def chip_text(token: Token) -> Markup:
    """Write the inside of a token's chip, without the link, for headings and for links that lead elsewhere."""
    return _chip_text(token["token"])


@lru_cache(256)
def _around_id(
    model: str,
    lens: str,
    taken_along: tuple[tuple[str, str], ...],
    pinned: tuple[str, str],  # noqa: ARG001
) -> tuple[str, str]:
    """Return the parts of the address of a token's page before and after the token's id. `pinned` is what `link`
    adds."""
    path, mark, query = urls.link("token", model, 0, lens=lens, **dict(taken_along)).partition("?")
    return escape(path.removesuffix("0")), f'{escape(mark + query)}">'


@lru_cache(1 << 17)  # the same tokens are in many lists; all tokens of a model fit in the cache
def _chip_text(text: str) -> Markup:
    """Escape a token's text. Spaces around it, which are easily overlooked, and the ## of a piece that continues a word
    get a colour, special tokens a sign. The title attribute of a long token, which may be cut, holds all of it."""
    shown = visible(text)
    title = f' title="{escape(shown)}"' if len(shown) > CUT else ""
    if is_special(text):
        why = explain_mark(text) or "It stands for no text."
        title = f' class="special" title="{escape(shown)}, a special token. {escape(why)}"'
    word = shown.strip("␣")
    before, after = shown.split(word, 1) if word else ("", "")
    if not before and word.startswith(CONTINUES) and word[len(CONTINUES) :].isalnum():
        before, word = CONTINUES, word.removeprefix(CONTINUES)
    marks = [f"<i>{mark}</i>" if mark else "" for mark in (before, after)]
    return Markup(f"<bdi{title}>{marks[0]}{escape(word or shown)}{marks[1]}</bdi>")


def plain(tokens: Iterable[Token]) -> str:
    """Write tokens as plain text, for titles and descriptions of pages."""
    return ", ".join([_plain(token["token"]) for token in tokens])


@lru_cache(1 << 15)
def _plain(text: str) -> str:
    word = text.strip()
    return word if word and word.isprintable() else visible(text)


def plain_pairs(pairs: Iterable[TokenPair]) -> str:
    return ", ".join([f"{_plain(pair['from']['token'])} → {_plain(pair['to']['token'])}" for pair in pairs])


def around_rank(
    entries: Sequence[ScoredToken], rank: int
) -> tuple[list[ScoredToken], list[ScoredToken], list[ScoredToken]]:
    """Split a list into the entries before a rank, those at it, and those after it. The list may lack some ranks,
    because hubs (tokens in very many lists) are left out."""
    ranks = [entry.get("rank", at) for at, entry in enumerate(entries, 1)]
    before, there, after = (
        [entry for entry, at in zip(entries, ranks, strict=True) if (at > rank) - (at < rank) == side]
        for side in (-1, 0, 1)
    )
    return before, there, after


def seed_words(tokens: Iterable[Token]) -> str:
    """Return, as text for a search by seed words, the first tokens that are words, each once regardless of case and
    surrounding space."""
    words: dict[str, str] = {}
    for token in tokens:
        word = token["token"].strip()
        if len(word) > 1 and word.isalpha():
            words.setdefault(word.casefold(), word)
        if len(words) == SEED_WORDS:
            break
    return ",".join(words.values())
