"""Where a head is easier to read than on the page that is shown: under the lens and preset that leave mostly words.
A page keeps the lens and preset of its address; this is what it offers beside them."""

from collections.abc import Sequence
from dataclasses import dataclass

from app.views.head import PAIRS, HeadView
from app.views.pairs import pairs_view
from app.views.readable import Readable, readable
from app.views.tokens import TokenPair
from app.views.worth_reading import HEAD_LENS, HEAD_PRESET, without_repetition
from precompute.errors import IndexFault
from precompute.index.index import Index
from precompute.shape import MATRICES


@dataclass(frozen=True)
class Alternative:
    lens: str
    preset: str
    here: int  # of the first pairs of both matrices: those of two different words that people can read
    there: int
    of: int
    pairs: list[TokenPair]  # a few of those there


def readable_alternative(index: Index, view: HeadView) -> Alternative | None:
    """None where it would show no more words, or is not stored; or where its lists are damaged, which is no reason to
    miss the page's."""
    if view.vo is None or view.qk is None or HEAD_LENS not in index.stored.lenses:
        return None
    shown: list[TokenPair] = [*view.vo.top, *view.qk.top]
    alternative: list[TokenPair] = []
    try:
        for matrix in MATRICES:
            alternative += pairs_view(index, matrix, view.layer, view.head, HEAD_LENS, HEAD_PRESET, PAIRS).top
    except IndexFault:
        return None
    words = readable(index)
    here, there = _readable_pairs(words, shown), _readable_pairs(words, alternative)
    if len(there) <= len(here):
        return None
    return Alternative(
        HEAD_LENS, HEAD_PRESET, len(here), len(there), len(alternative), without_repetition(words, there)[0]
    )


def _readable_pairs(words: Readable, pairs: Sequence[TokenPair]) -> list[TokenPair]:
    return [
        pair
        for pair in pairs
        if len(words.stems((pair["from"]["id"], pair["to"]["id"]))) == 2
        and words.tokens.surface(pair["from"]["token"]) != words.tokens.surface(pair["to"]["token"])
    ]
