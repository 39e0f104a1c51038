"""Rows of token pages and searches, made of the columns that a lookup in the index gives."""

from functools import partial

from app.views.column_rows import ColumnRows
from app.views.page_types import Match, PairMatch, PairPlace, Place
from app.views.parts import token_views
from precompute.index.lookup.pairs import PairListings, PairMatches
from precompute.index.lookup.vectors import VectorListings, VectorMatches
from precompute.index.tokens import TokenTable
from precompute.shape import ENDS, MATRICES, PRESETS, Shape


def listing_rows(shape: Shape, kind: str, listings: VectorListings) -> ColumnRows[Place]:
    columns = (listings.layer, listings.index, listings.rank, listings.score)
    return ColumnRows(partial(_listing, shape, kind), *columns)


def pair_listing_rows(tokens: TokenTable, found: PairListings) -> ColumnRows[PairPlace]:
    columns = (found.matrix, found.layer, found.head, found.side, found.end, found.rank, found.score, found.other)
    return ColumnRows(partial(_pair_listing, tokens), *columns)


def match_rows(shape: Shape, tokens: TokenTable, found: VectorMatches) -> ColumnRows[Match]:
    columns = (found.layer, found.kind, found.index, found.end, found.ranks, found.tokens)
    return ColumnRows(partial(_match, shape, tokens), *columns)


def pair_match_rows(tokens: TokenTable, found: PairMatches) -> ColumnRows[PairMatch]:
    columns = (found.layer, found.matrix, found.head, found.preset, found.end, found.rank, found.ids, found.score)
    return ColumnRows(partial(_pair_match, tokens), *columns)


def head_and_subhead(shape: Shape, kind: str, index: int) -> tuple[int, int] | tuple[None, None]:
    """None of a neuron; of kinds that heads share, the first head that has the vector."""
    return (None, None) if kind.startswith("ff_") else shape.head_and_subhead(kind, index)


def _listing(shape: Shape, kind: str, layer: int, index: int, rank: int, score: float) -> Place:
    head, subhead = head_and_subhead(shape, kind, index)
    return {
        "kind": kind, "layer": layer, "index": index, "head": head, "subhead": subhead, "rank": rank + 1,
        "score": score,
    }  # fmt: skip


def _pair_listing(
    tokens: TokenTable, matrix: int, layer: int, head: int, side: int, end: int, rank: int, score: float, other: int
) -> PairPlace:
    return {
        "matrix": MATRICES[matrix], "layer": layer, "head": head, "side": "to" if side else "from", "end": ENDS[end],
        "rank": rank + 1, "score": score, "other": {"id": other, "token": tokens.texts[other]},
    }  # fmt: skip


def _match(
    shape: Shape, tokens: TokenTable, layer: int, kind: int, index: int, end: int, ranks: list[int], ids: list[int]
) -> Match:
    head, subhead = head_and_subhead(shape, shape.kinds[kind], index)
    return {
        "kind": shape.kinds[kind], "layer": layer, "index": index, "head": head, "subhead": subhead, "end": ENDS[end],
        "ranks": tuple(rank + 1 for rank in ranks), "tokens": token_views(tokens, ids),
    }  # fmt: skip


def _pair_match(
    tokens: TokenTable, layer: int, matrix: int, head: int, preset: int, end: int, rank: int, pair: list[int],
    score: float,
) -> PairMatch:  # fmt: skip
    first, second = token_views(tokens, pair)
    return {
        "matrix": MATRICES[matrix], "layer": layer, "head": head, "preset": PRESETS[preset], "end": ENDS[end],
        "rank": rank + 1, "from": first, "to": second, "score": score,
    }  # fmt: skip
