"""What a search finds in the lists: vectors that hold all of its words, and pairs of heads with one word or two."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated

from typing_extensions import TypedDict

from lexiscope.app.views.checks import count_pages, page_slice
from lexiscope.app.views.first_words import FIRST_PAIR, first_pair, to_read, token_rows
from lexiscope.app.views.tokens import Token, TokenPair, token_pairs, tokens_of
from lexiscope.app.views.vector_place import InHead, in_head
from lexiscope.precompute.index.index import Index
from lexiscope.precompute.index.lookup import look_up_words
from lexiscope.precompute.index.lookup.pairs import PairMatches
from lexiscope.precompute.index.lookup.vectors import VectorMatches
from lexiscope.precompute.shape import ENDS, MATRICES, PRESETS

FIRST_PAIRS = 20  # beside the matches of all kinds


class VectorMatch(InHead):
    """A vector that lists every word of a search."""

    kind: str
    layer: int
    index: int
    end: str
    ranks: list[int]  # the best of each word, 1 is the best
    tokens: list[Token]  # and the token that has it
    first: list[Token]  # of the list that holds them


PairMatch = TypedDict(  # a head pair that holds the word of a search, or both words, one at each side
    "PairMatch",
    {
        "matrix": str,
        "layer": int,
        "head": int,
        "preset": str,  # of those whose list holds it, the one in which its rank is best
        "end": str,
        "rank": int,  # 1 is the best
        "from": Token,
        "to": Token,
        "score": float,
        "first": Annotated[TokenPair | None, FIRST_PAIR],
    },
)


@dataclass(frozen=True)
class SearchMatches:
    vectors: list[VectorMatch]
    total: int  # of vectors
    pairs: list[PairMatch]
    pairs_total: int
    pages: int
    missing: tuple[int, ...]  # layers that are not built or damaged


def find_matches(
    index: Index,
    words: Sequence[tuple[int, ...]],
    lens: str,
    kind: str | None,
    page: int,
    size: int | None,
    hubs: frozenset[int],
) -> SearchMatches:
    """Of words, each of which is any of its tokens: one page of the vectors, or of the pairs if a matrix is asked for;
    without a kind, some pairs beside page 1."""
    window, first_pairs = page_slice(page, size), slice(0, FIRST_PAIRS if page == 1 else 0)
    found = look_up_words(
        index, words, lens,
        kinds=[name for name in index.shape.kinds if kind in (None, name)],
        matrices=[name for name in MATRICES if kind in (None, name)],
        vector_part=window,
        pair_part=first_pairs if kind is None and size is not None else window,
        first=to_read(hubs),
    )  # fmt: skip
    in_pages = found.pairs.total if kind in MATRICES else found.vectors.total
    return SearchMatches(
        vectors=_vector_matches(index, found.vectors, hubs),
        total=found.vectors.total,
        pairs=_pair_matches(index, found.pairs, hubs),
        pairs_total=found.pairs.total,
        pages=count_pages(in_pages, page, size),
        missing=found.missing,
    )


def _vector_matches(index: Index, found: VectorMatches, hubs: frozenset[int]) -> list[VectorMatch]:
    columns = (c.tolist() for c in (found.layer, found.kind, found.index, found.end, found.ranks, found.tokens))
    first_tokens = token_rows(index.tokens, found.first, hubs)
    matches: list[VectorMatch] = []
    for layer, kind_at, number, end, ranks, tokens, first in zip(*columns, first_tokens, strict=True):
        kind = index.stored.kinds[kind_at]
        matches.append(
            {
                "kind": kind,
                "layer": layer,
                "index": number,
                **in_head(index.shape, kind, number),
                "end": ENDS[end],
                "ranks": [rank + 1 for rank in ranks],
                "tokens": tokens_of(index.tokens, tokens),
                "first": first,
            }
        )
    return matches


def _pair_matches(index: Index, found: PairMatches, hubs: frozenset[int]) -> list[PairMatch]:
    columns = (found.matrix, found.layer, found.head, found.preset, found.end, found.rank)
    pairs = token_pairs(index.tokens, found.ids.tolist(), found.score.tolist())
    return [
        {
            "matrix": MATRICES[matrix],
            "layer": layer,
            "head": head,
            "preset": PRESETS[preset],
            "end": ENDS[end],
            "rank": rank + 1,
            "from": pair["from"],
            "to": pair["to"],
            "score": pair["score"],
            "first": first_pair(index, MATRICES[matrix], layer, head, hubs),
        }
        for pair, matrix, layer, head, preset, end, rank in zip(
            pairs, *(column.tolist() for column in columns), strict=True
        )
    ]
