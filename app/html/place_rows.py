"""The rows that lead from a token to the lists that hold it: each to its very row there, however far down.
Rows of the lists themselves are in rows.py."""

from collections.abc import Iterable
from html import escape
from typing import Any

from markupsafe import Markup

from app import addresses
from app.html.figures import formats, number, steps_per
from app.html.markup import chipper, token_text
from app.html.rows import pair_anchor
from app.views.lengths import PAIR_ENTRIES, VECTOR_ENTRIES, reaching
from app.views.page_types import Match, PairMatch, PairPlace, Place, RoleList
from app.views.view_types import TokenView
from precompute.index.index import Index
from precompute.shape import Shape

_SHARED = ("w_k", "w_v")  # by grouped heads


def place_rows(index: Index, token: int, listed: RoleList, lens: str, peak: float) -> Markup:
    """Rank, where, score."""
    steps = steps_per(peak)
    plus, minus = formats(peak)
    rows = [
        f'<tr><td>{place["rank"]}<td><a href="{escape(_row_of(index, place, listed.end, place["rank"], token, lens))}">'
        f"{place_name(place, index.shape)}</a>"
        f"<td data-bar={abs(score := place['score']) * steps:.0f}>{plus % score if score >= 0 else minus % -score}"
        for place in listed.places
    ]
    return Markup("\n".join(rows))


def match_address(index: Index, match: Match, lens: str) -> str:
    """Of a list that holds all words of a search, long enough for all of them; the first is marked."""
    return _row_of(index, match, match["end"], max(match["ranks"]), match["tokens"][0]["id"], lens)


def pair_match_address(index: Index, match: PairMatch, lens: str) -> str:
    """Of the list in which the pair's rank is best."""
    return _row_of_pair(index, match, (match["from"]["id"], match["to"]["id"]), lens, match["preset"])


def mapped_rows(index: Index, token: TokenView, places: Iterable[PairPlace], lens: str, preset: str) -> Markup:
    """Head, from, to, end, rank, score."""
    made, here = chipper(index.manifest.model, lens), token_text(token)
    rows = []
    for place in places:
        there, first = made(place["other"]), place["side"] == "from"
        ids = (token["id"], place["other"]["id"]) if first else (place["other"]["id"], token["id"])
        rows.append(
            f'<tr><th scope=row><a href="{escape(_row_of_pair(index, place, ids, lens, preset))}">'
            f"L{place['layer']}H{place['head']}</a>"
            f"<td>{here if first else there}<td>{there if first else here}<td>{place['end']}"
            f"<td class=n>{place['rank']}<td class=n>{number(place['score'])}"
        )
    return Markup("\n".join(rows))


def place_name(place: Place | Match, shape: Shape | None = None) -> str:
    """L10N2361, L8H11.5, or L8H0–2.5 of what grouped heads share: what the search understands."""
    if place["head"] is None:
        return f"L{place['layer']}N{place['index']}"
    group = shape.n_heads // shape.n_kv_heads if shape and place["kind"] in _SHARED else 1
    heads = f"{place['head']}–{place['head'] + group - 1}" if group > 1 else f"{place['head']}"
    return f"L{place['layer']}H{heads}.{place['subhead']}"


def _row_of(index: Index, place: Place | Match, end: str, rank: int, token: int, lens: str) -> str:
    where = addresses.vector(
        index.manifest.model, place["layer"], place["index"], place["head"], place["subhead"],
        lens=lens, k=reaching(rank, VECTOR_ENTRIES, index.manifest.k),
    )  # fmt: skip
    return f"{where}#{place['kind']}-{end[0]}{token}"


def _row_of_pair(index: Index, place: PairPlace | PairMatch, ids: tuple[int, int], lens: str, preset: str) -> str:
    where = addresses.pairs(
        index.manifest.model, place["layer"], place["head"], place["matrix"],
        lens=lens, preset=preset, k=reaching(place["rank"], PAIR_ENTRIES, index.manifest.pairs),
    )  # fmt: skip
    return f"{where}#{pair_anchor(place['end'][0], *ids)}"


FUNCTIONS: dict[str, Any] = {
    made.__name__: made for made in (place_rows, match_address, pair_match_address, mapped_rows, place_name)
}
