"""The parts of a page that hold lists: a vector with both its ends, pairs with both theirs, as captioned tables.
The rows in them are made in rows.py; the page around them is in templates/."""

from collections.abc import Collection
from html import escape
from typing import Any

from markupsafe import Markup

from app.html.figures import peak, ratio
from app.html.glossary import tip
from app.html.rows import pair_rows, scored_rows
from app.views.lists import PairList, ScoredList
from app.views.view_types import ReadView, VectorView

_RANK, _SCORE, _COHERENCE, _NORM, _OVERLAP = (
    escape(tip(key)) for key in ("rank", "score", "coherence", "norm", "overlap")
)
_FIRST = f'<thead><tr><th scope=col><abbr title="{_RANK}">#</abbr>'
_LAST = f'<th scope=col title="{_SCORE}">score</thead><tbody>'


def vector_section(
    model: str, lens: str, vector: VectorView, name: str, kind: str, does: str, marked: Collection[int] = ()
) -> Markup:
    """A vector under its heading: `name` for people, `kind` for the glossary, `does`: reads or writes."""
    tallest = peak(vector.top, vector.bottom)

    def table(end: str, entries: ScoredList, coherence: float | None, marked: Collection[int]) -> str:
        rows = scored_rows(model, entries, lens, tallest, marked, f"{kind}-{end[0]}")
        return (
            f"<table class='list {end}'><caption>{end}<span class=u> of {name}</span>{_coherence(coherence)}</caption>"
            f"{_FIRST}<th scope=col>token{_LAST}{rows}</tbody></table>"
        )

    high, low = vector.coherence
    return Markup(
        f'<section class=vector aria-labelledby={kind}><h2 id={kind}><span title="{escape(tip(kind))}">{name}</span>'
        f' <small>{does} · <span title="{_NORM}">norm {vector.norm:.3g}</span></small></h2><div class=ends>'
        f"{table('top', vector.top, high, marked)}{table('bottom', vector.bottom, low, ())}</div></section>"
    )


def reading_section(model: str, lens: str, read: ReadView, name: str, kind: str) -> Markup:
    """A vector's list in another reading; tokens that the stored list has, too, get a dot."""
    tallest = peak(read.top, read.bottom)

    def table(end: str, entries: ScoredList) -> str:
        rows = scored_rows(model, entries, lens, tallest, read.kept)
        return (
            f"<table class='list {end}'><caption>{end}<span class=u> of {name}, read again</span></caption>"
            f"{_FIRST}<th scope=col>token{_LAST}{rows}</tbody></table>"
        )

    return Markup(
        f'<section class=vector aria-labelledby={kind}-again><h3 id={kind}-again>{name} <small title="{_OVERLAP}">'
        f"overlap with the stored top {ratio(read.overlap)}</small></h3><div class=ends>"
        f"{table('top', read.top)}{table('bottom', read.bottom)}</div></section>"
    )


def pair_tables(
    model: str,
    lens: str,
    top: PairList,
    bottom: PairList,
    columns: tuple[str, str],
    coherence: tuple[float | None, float | None] = (None, None),
    anchors: bool = False,
) -> Markup:
    """Both ends of a head's pairs, the columns named; `anchors` where they stand on the page once."""
    tallest = peak(top, bottom)

    def table(end: str, entries: PairList, coherence: float | None) -> str:
        none = "" if entries else "<tr><td><td colspan=3 class=none>no pairs with this preset"
        return (
            f"<table class='list pairs {end}'><caption>{end}{_coherence(coherence)}</caption>{_FIRST}"
            f"<th scope=col>{columns[0]} →<th scope=col>{columns[1]}{_LAST}"
            f"{pair_rows(model, entries, lens, tallest, anchor=end[0] if anchors else '')}{none}</tbody></table>"
        )

    return Markup(table("top", top, coherence[0]) + table("bottom", bottom, coherence[1]))


def _coherence(value: float | None) -> str:
    return "" if value is None else f' <small title="{_COHERENCE}">coherence {ratio(value)}</small>'


FUNCTIONS: dict[str, Any] = {made.__name__: made for made in (vector_section, reading_section, pair_tables)}
