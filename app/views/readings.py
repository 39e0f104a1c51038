"""A vector's list in another reading, beside the stored one: how much of it they share.
Making the list is for the worker."""

from collections.abc import Sequence

from app.lists import ScoredList
from app.view_types import ReadView
from app.vocabulary import vocabulary_of
from app.wire import ReadingAnswer, Scored
from precompute.index import Index


def read_view(index: Index, kind: str, layer: int, row: int, answer: ReadingAnswer) -> ReadView:
    stored = index.shard(layer).vector(kind, row, "dot")
    top, bottom = {entry.id for entry in answer.top}, {entry.id for entry in answer.bottom}
    before = set(stored.top_ids[: len(answer.top)].tolist())
    below = set(stored.bottom_ids[: len(answer.bottom)].tolist())
    return ReadView.of(
        top=_listed(index, answer.top),
        bottom=_listed(index, answer.bottom),
        overlap=len(top & before) / len(top | before),
        kept=tuple((top & before) | (bottom & below)),
    )


def _listed(index: Index, entries: Sequence[Scored]) -> ScoredList:
    return ScoredList(vocabulary_of(index.tokens), [entry.id for entry in entries], [entry.score for entry in entries])
