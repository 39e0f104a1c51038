"""A vector's list in another reading, beside the stored one: how much of it they share.
Making the list is for the worker."""

from app.view_types import ReadView
from app.views.seeds import scored_views
from app.wire import ReadingAnswer
from precompute.index import Index


def read_view(index: Index, kind: str, layer: int, row: int, answer: ReadingAnswer) -> ReadView:
    stored = index.shard(layer).vector(kind, row, "dot")
    top, bottom = {entry.id for entry in answer.top}, {entry.id for entry in answer.bottom}
    before = set(stored.top_ids[: len(answer.top)].tolist())
    below = set(stored.bottom_ids[: len(answer.bottom)].tolist())
    return ReadView.of(
        top=scored_views(index, answer.top),
        bottom=scored_views(index, answer.bottom),
        overlap=len(top & before) / len(top | before),
        kept=tuple((top & before) | (bottom & below)),
    )
