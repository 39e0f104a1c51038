"""The markup that a page repeats by the hundred: token chips, and rows of scored tokens, pairs and places.
Made here because a loop in Python is several times faster than in a template; the rest of a page is in templates/."""

from collections.abc import Callable, Collection, Iterable, Sequence
from html import escape
from typing import Any
from urllib.parse import quote

from markupsafe import Markup

from app import addresses
from app.figures import number, steps_per
from app.page_types import Match, Place
from app.token_text import shown
from app.view_types import PairView, ScoredView, TokenView, VectorView

_MAX_SHOWN = 1 << 18


class _Shown(dict[str, str]):
    """text -> its markup; made once, and emptied before it can fill the memory."""

    def __missing__(self, text: str) -> str:
        if len(self) >= _MAX_SHOWN:
            self.clear()
        made = self[text] = _text(text)
        return made


def _text(text: str) -> str:
    """The spaces around a token, which are easily overlooked, are set apart by colour."""
    seen = shown(text)
    word = seen.strip("␣")
    if not word:
        return f"<bdi>{escape(seen)}</bdi>"
    before, after = seen.split(word)[0], seen.rsplit(word)[-1]
    marks = [f"<i>{mark}</i>" if mark else "" for mark in (before, after)]
    return f"<bdi>{marks[0]}{escape(word)}{marks[1]}</bdi>"


_SHOWN = _Shown()


def token_text(token: TokenView) -> Markup:
    """The token without a link, for headings."""
    return Markup(f'<span class="t">{_SHOWN[token["token"]]}</span>')


def chip(model: str, token: TokenView, lens: str = "dot") -> Markup:
    return Markup(_chipper(model, lens)(token))


def chips(model: str, tokens: Iterable[TokenView], lens: str = "dot") -> Markup:
    return Markup(" ".join(map(_chipper(model, lens), tokens)))


def pair(model: str, entry: PairView, lens: str = "dot") -> Markup:
    made = _chipper(model, lens)
    return Markup(f'<span class="pair">{made(entry["from"])}<b>→</b>{made(entry["to"])}</span>')


def scored_rows(
    model: str, entries: Sequence[ScoredView], lens: str, peak: float, marked: Collection[int] = ()
) -> Markup:
    """Rows rank, token, score; a bar as long as the score is of `peak`; `marked` tokens get a dot."""
    start, end = _around(model, lens)
    steps, texts = steps_per(peak), _SHOWN
    rows = [
        f"<tr{' class=m' if (token := entry['id']) in marked else ''}><td>{rank}"
        f"<td>{start}{token}{end}{texts[entry['token']]}</a>"
        f"<td data-bar={abs(score := entry['score']) * steps:.0f}>{number(score)}"
        for rank, entry in enumerate(entries, 1)
    ]
    return Markup("\n".join(rows))


def pair_rows(model: str, entries: Sequence[PairView], lens: str, peak: float) -> Markup:
    """Rows rank, from, to, score."""
    made, steps = _chipper(model, lens), steps_per(peak)
    rows = [
        f"<tr><td>{rank}<td>{made(entry['from'])}<td>{made(entry['to'])}"
        f"<td data-bar={abs(score := entry['score']) * steps:.0f}>{number(score)}"
        for rank, entry in enumerate(entries, 1)
    ]
    return Markup("\n".join(rows))


def place_rows(model: str, places: Sequence[Place], lens: str, peak: float) -> Markup:
    """Rows rank, where, score."""
    steps = steps_per(peak)
    rows = [
        f'<tr><td>{place["rank"]}<td><a href="{_place_address(model, place, lens)}">{place_name(place)}</a>'
        f"<td data-bar={abs(score := place['score']) * steps:.0f}>{number(score)}"
        for place in places
    ]
    return Markup("\n".join(rows))


def place_name(place: Place | Match) -> str:
    """L10N2361, or L8H11.5: what the search understands."""
    if place["head"] is None:
        return f"L{place['layer']}N{place['index']}"
    return f"L{place['layer']}H{place['head']}.{place['subhead']}"


def _place_address(model: str, place: Place, lens: str) -> str:
    where = addresses.vector(model, place["layer"], place["index"], place["head"], place["subhead"], lens=lens)
    return escape(where)


def grouped(entries: Sequence[PairView]) -> list[tuple[TokenView, list[PairView]]]:
    """Pairs by their first token, in the order of the best of each."""
    groups: dict[int, list[PairView]] = {}
    for entry in entries:
        groups.setdefault(entry["from"]["id"], []).append(entry)
    return [(group[0]["from"], group) for group in groups.values()]


def shared(first: VectorView, second: VectorView) -> list[TokenView]:
    """The tokens at the top of both, in the order of the first."""
    ids = {entry["id"] for entry in second.top}
    return [entry for entry in first.top if entry["id"] in ids]


def ids(tokens: Iterable[TokenView]) -> frozenset[int]:
    return frozenset([token["id"] for token in tokens])


def plain(tokens: Iterable[TokenView]) -> str:
    """Tokens as text, for titles and descriptions."""
    return ", ".join(token["token"].strip() or shown(token["token"]) for token in tokens)


def _around(model: str, lens: str) -> tuple[str, str]:
    """What stands before and after the id in a chip's opening tag."""
    query = "" if lens == "dot" else f"?lens={quote(lens)}"
    return f'<a class=t href="/{quote(model)}/token/', f'{query}">'


def _chipper(model: str, lens: str) -> Callable[[TokenView], str]:
    start, end = _around(model, lens)
    return lambda token: f"{start}{token['id']}{end}{_SHOWN[token['token']]}</a>"


FUNCTIONS: dict[str, Any] = {
    made.__name__: made
    for made in (
        token_text, chip, chips, pair, scored_rows, pair_rows, place_rows, place_name, grouped, shared, ids, plain
    )
}  # fmt: skip
