"""Seed words: which vectors are about them, from a worker's answer; the tokens that each lists come from the index.
Ranking is for the worker."""

from collections.abc import Iterable

from app.views.live_types import SeedHead, SeedPlace, SeedsPageView, SeedTerm
from app.views.parts import token_views
from app.views.view_types import ScoredView, TokenView
from app.wire import Scored, SeedsAnswer
from precompute.errors import IndexFault, NotFound
from precompute.index.index import Index

FIRST = 8  # tokens of each vector


def seeds_page(index: Index, words: str, kind: str, answer: SeedsAnswer | None) -> SeedsPageView:
    """Without an answer, the page that asks for words."""
    asked = {"model": index.manifest.model, "words": words, "kind": kind}
    if answer is None:
        return SeedsPageView.of(**asked, seeds=(), nearest=(), results=(), heads=())

    def place(kind: str, layer: int, row: int, score: float, scores: tuple[float, ...]) -> SeedPlace:
        head, sub = (None, None) if kind.startswith("ff_") else index.shape.head_and_subhead(kind, row)
        top = first_tokens(index, kind, layer, row, FIRST)
        return {
            "kind": kind, "layer": layer, "index": row, "head": head, "subhead": sub,
            "score": score, "scores": scores, "top": top,
        }  # fmt: skip

    heads: list[SeedHead] = [
        {
            "layer": each.layer, "head": each.head,
            "writes": scored_views(index, each.writes), "seeks": scored_views(index, each.seeks),
        }
        for each in answer.heads
    ]  # fmt: skip
    return SeedsPageView.of(
        **asked,
        seeds=tuple(
            SeedTerm.of(word=term.word, weight=term.weight, tokens=token_views(index.tokens, term.tokens))
            for term in answer.terms
        ),
        nearest=scored_views(index, answer.nearest),
        results=tuple(place(r.kind, r.layer, r.index, r.score, r.scores) for r in answer.results),
        heads=tuple(heads),
    )


def scored_views(index: Index, entries: Iterable[Scored]) -> tuple[ScoredView, ...]:
    texts = index.tokens.texts
    return tuple([{"id": entry.id, "token": texts[entry.id], "score": entry.score} for entry in entries])


def first_tokens(index: Index, kind: str, layer: int, row: int, n: int, end: str = "top") -> tuple[TokenView, ...]:
    """Of a stored list; none while its layer is not built, or while its file is damaged."""
    try:
        lists = index.shard(layer).vector(kind, row, "dot")
    except (IndexFault, NotFound):
        return ()
    ids = lists.top_ids if end == "top" else lists.bottom_ids
    return token_views(index.tokens, ids[:n].tolist())
