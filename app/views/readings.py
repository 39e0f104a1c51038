"""A vector's or a head's list in another reading, beside the stored one: how much of it they share.
Making the list is for the worker."""

from collections.abc import Sequence

import numpy as np

from app.views.lists import PairList, ScoredList
from app.views.view_types import PairsView, ReadPairs, ReadView
from app.views.vocabulary import vocabulary_of
from app.wire import PairsReadingAnswer, ReadingAnswer, Scored, ScoredPair
from precompute.index.index import Index


def read_view(index: Index, kind: str, layer: int, row: int, lens: str, answer: ReadingAnswer) -> ReadView:
    stored = index.shard(layer).vector(kind, row, lens)
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
    return ScoredList.of(
        vocabulary_of(index.tokens), [entry.id for entry in entries], [entry.score for entry in entries]
    )


def read_pairs_view(index: Index, view: PairsView, name: str, answer: PairsReadingAnswer) -> PairsView:
    """The view with its pairs in another reading."""
    ends = {"top": answer.top, "bottom": answer.bottom}
    now = {end: {(pair.source, pair.target) for pair in pairs} for end, pairs in ends.items()}
    before = {end: _stored(index, view, end, len(pairs)) for end, pairs in ends.items()}
    either = now["top"] | before["top"]
    read = ReadPairs.of(
        name=name,
        pairs=_pairs(index, answer.top),
        bottom=_pairs(index, answer.bottom),
        overlap=len(now["top"] & before["top"]) / len(either) if either else 1.0,
        kept=frozenset((now["top"] & before["top"]) | (now["bottom"] & before["bottom"])),
    )
    return PairsView.of(**{**view.__dict__, "reading": read})


def _stored(index: Index, view: PairsView, end: str, n: int) -> set[tuple[int, int]]:
    found = index.shard(view.layer).pairs(view.matrix, view.head, view.lens, view.preset, end)
    return {(first, second) for first, second in found.ids[:n].tolist()}


def _pairs(index: Index, pairs: Sequence[ScoredPair]) -> PairList:
    ids = np.array([(pair.source, pair.target) for pair in pairs], np.intp).reshape(-1, 2)
    return PairList.of(vocabulary_of(index.tokens), ids, [pair.score for pair in pairs])
