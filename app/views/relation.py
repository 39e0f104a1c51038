"""Pairs of words and the heads that carry one to the other, from a worker's answer.
Ranking is for the worker."""

from app.views.live_types import RelationHead, RelationPair, RelationView, WordView
from app.views.parameters import token_view
from app.views.parts import token_views
from app.wire import RelationAnswer
from precompute.index.index import Index


def relation_page(index: Index, lens: str, answer: RelationAnswer | None) -> RelationView:
    """Without an answer, the page that asks for pairs."""
    if answer is None:
        return RelationView.of(model=index.manifest.model, lens=lens, pairs=(), heads=())

    def word(said: str, ids: tuple[int, ...]) -> WordView:
        return WordView.of(word=said, tokens=token_views(index.tokens, ids))

    heads: list[RelationHead] = [
        {
            "layer": head.layer, "head": head.head, "rank": head.rank, "score": head.score,
            "ranks": head.ranks, "scores": head.scores, "rank_from_bottom": head.rank_from_bottom,
        }
        for head in answer.heads
    ]  # fmt: skip
    return RelationView.of(
        model=index.manifest.model,
        lens=lens,
        pairs=tuple(
            RelationPair.of(
                source=word(p.source, p.source_tokens),
                target=word(p.target, p.target_tokens),
                ranked=token_view(index.tokens, p.target_tokens[0]),
            )
            for p in answer.pairs
        ),
        heads=tuple(heads),
    )
