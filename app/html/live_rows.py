"""The rows of tables and maps on live pages, as rows.py has them for stored ones.
The tables are in templates/."""

from collections.abc import Iterable, Sequence
from html import escape
from math import log
from typing import Any

from markupsafe import Markup

from app import addresses
from app.html.figures import HEAT_STEPS, formats, heat, number, peak, steps_per
from app.html.markup import SHOWN, chipper, plain
from app.html.place_rows import place_name
from app.html.rows import pair_rows
from app.views.lists import PairList
from app.views.live_types import RelationHead, SeedHead, SeedPlace, SeedTerm
from app.views.view_types import ReadPairs, TokenView

COLUMNS = 6  # as many words have a column of their own


def seed_rows(model: str, results: Sequence[SeedPlace], seeds: Sequence[SeedTerm]) -> Markup:
    """Rank, where, kind if there are several, first tokens, score, each word's own score."""
    made = chipper(model, "dot")
    tallest = max((abs(place["score"]) for place in results), default=0.0)
    widest = max((abs(score) for place in results for score in place["scores"]), default=0.0)
    steps, (plus, minus) = steps_per(tallest), formats(tallest)

    def words(place: SeedPlace) -> str:
        if len(seeds) > COLUMNS:
            pulled = sorted(zip(place["scores"], seeds, strict=True), key=lambda pair: -pair[0] * pair[1].weight)
            return "<td>" + ", ".join(f"{escape(seed.word)} {number(score)}" for score, seed in pulled[:3])
        return "".join(f"<td class=n data-heat={heat(own, widest or 1.0)}>{score(own)}" for own in place["scores"])

    def score(value: float) -> str:
        return plus % value if value >= 0 else minus % -value

    several = len({place["kind"] for place in results}) > 1
    rows = [
        f'<tr><td class=n>{rank}<th scope=row><a href="{_vector(model, place)}">{_name(place)}</a>'
        f"{'<td>' + place['kind'] if several else ''}<td class=many>{_tokens(made, place['top'])}"
        f"<td class=n data-bar={abs(place['score']) * steps:.0f}>{score(place['score'])}{words(place)}"
        for rank, place in enumerate(results, 1)
    ]
    return Markup("\n".join(rows))


def _tokens(made: Any, tokens: Sequence[TokenView]) -> str:
    return " ".join(map(made, tokens)) if tokens else "<span class=none>layer not built yet</span>"


def _name(place: SeedPlace) -> str:
    return place_name(place)  # type: ignore[arg-type]


def _vector(model: str, place: SeedPlace) -> str:
    return escape(addresses.vector(model, place["layer"], place["index"], place["head"], place["subhead"]))


def seed_head_cells(model: str, heads: Sequence[SeedHead], part: str, matrix: str, hottest: float) -> Markup:
    """A layer's heads: the first token, and under the pointer the next; colour by the score."""
    cells = []
    for each in heads:
        entries = each["writes"] if part == "writes" else each["seeks"]
        where = addresses.pairs(model, each["layer"], each["head"], matrix)
        named = f"L{each['layer']}H{each['head']}: {plain(entries[:8])}"
        cells.append(
            f'<td><a href="{where}" data-heat={heat(entries[0]["score"] if entries else None, hottest)}'
            f' title="{escape(named)}">{SHOWN[entries[0]["token"]] if entries else "–"}</a>'
        )
    return Markup("".join(cells))


def by_layer(entries: Sequence[Any]) -> list[tuple[int, list[Any]]]:
    """What belongs to heads, by layer, the top layer first; heads in their order."""
    layers: dict[int, list[Any]] = {}
    for entry in sorted(entries, key=lambda entry: (-entry["layer"], entry["head"])):
        layers.setdefault(entry["layer"], []).append(entry)
    return list(layers.items())


def seed_words(tokens: Iterable[TokenView], n: int = 4) -> str:
    """The first tokens that are words, as seeds: each once, whatever its case and space."""
    words: dict[str, str] = {}
    for token in tokens:
        word = token["token"].strip()
        if len(word) > 1 and word.isalpha():
            words.setdefault(word.casefold(), word)
        if len(words) == n:
            break
    return ",".join(words.values())


def strongest(heads: Sequence[SeedHead], part: str, n: int = 12) -> list[SeedHead]:
    found = [head for head in heads if head[part]]  # type: ignore[literal-required]
    return sorted(found, key=lambda head: -head[part][0]["score"])[:n]  # type: ignore[literal-required]


def relation_cells(model: str, heads: Sequence[RelationHead], d_vocab: int, lens: str) -> Markup:
    """A layer's heads: the mean rank of the targets, the stronger the colour, the better."""
    cells = [
        f'<td><a href="{addresses.pairs(model, head["layer"], head["head"], "vo", lens=lens)}"'
        f" data-heat={rank_heat(head['rank'], d_vocab)}"
        f' title="L{head["layer"]}H{head["head"]}: mean rank {head["rank"]:,.1f}, from the bottom'
        f' {head["rank_from_bottom"]:,.1f}">{short(head["rank"])}</a>'
        for head in heads
    ]
    return Markup("".join(cells))


def clear_rank(d_vocab: int) -> int:
    """Up to which mean rank a head is said to carry or to suppress a relation: 1 % of the tokens."""
    return max(1, d_vocab // 100)


def rank_heat(rank: float, d_vocab: int) -> int:
    """Ranks matter by their magnitude: 1 is the hottest, a twentieth of the vocabulary has no colour."""
    return round(HEAT_STEPS * max(0.0, 1 - log(max(rank, 1.0)) / log(max(d_vocab / 20, 2.0))))


def short(value: float) -> str:
    """A rank in little room: 7.5, 43, 1.2k, 23k."""
    if value < 9.95:
        return f"{value:.1f}".removesuffix(".0")
    if value < 999.5:
        return f"{value:.0f}"
    return f"{value / 1000:.1f}k" if value < 9950 else f"{value / 1000:.0f}k"


def read_pair_tables(model: str, lens: str, read: ReadPairs, columns: tuple[str, str]) -> Markup:
    """Both ends of a head's pairs in another reading; pairs that the stored end has, too, get a dot."""
    tallest = peak(read.pairs, read.bottom)

    def table(end: str, pairs: PairList) -> str:
        rows = pair_rows(model, pairs, lens, tallest, read.kept)
        return (
            f"<table class='list pairs {end}'><caption>{end}<span class=u>, read again</span></caption><thead><tr>"
            f"<th scope=col>#<th scope=col>{columns[0]} →<th scope=col>{columns[1]}<th scope=col>score</thead>"
            f"<tbody>{rows or '<tr><td><td colspan=3 class=none>no pairs with this preset'}</tbody></table>"
        )

    return Markup(table("top", read.pairs) + table("bottom", read.bottom))


FUNCTIONS: dict[str, Any] = {
    made.__name__: made
    for made in (
        seed_rows, seed_head_cells, seed_words, by_layer, strongest, relation_cells, clear_rank, rank_heat, short,
        read_pair_tables,
    )
}  # fmt: skip
