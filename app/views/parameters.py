"""One parameter's lists, read from an index into a view: a neuron, a head's pairs, a subhead; and seed results.
The shapes of views are in view_types.py; showing them is for terminal.py and the pages."""

import math
from collections.abc import Iterable
from typing import Protocol

from app.lists import PairList, ScoredList, TokenView
from app.view_types import FFView, PairsView, RankedView, SeedsView, SeedView, SubheadView, VectorView
from app.views.notes import pairs_note, subhead_note
from app.vocabulary import vocabulary_of
from precompute.errors import NotFound
from precompute.index import Index
from precompute.shape import MATRICES
from precompute.shard_reader import Array, Pairs, Shard, VectorLists
from precompute.tokens import TokenTable

# What the two columns of a head's pairs are.
COLUMNS = {"vo": ("reads", "writes"), "qk": ("query", "key")}


def ff_view(index: Index, layer: int, neuron: int, lens: str = "dot", k: int | None = None) -> FFView:
    shard, shape = index.shard(layer), index.shape
    _check("neuron", neuron, shape.d_mlp, index)

    key, value = (shard.vector(kind, neuron, lens) for kind in ("ff_key", "ff_value"))
    up = shard.vector("ff_up", neuron, lens) if shape.gated else None
    shared = _in_both(value.top_ids.tolist(), key.top_ids)
    opposed = _in_both(shared, up.bottom_ids) if up else []
    return FFView.of(
        model=index.manifest.model,
        layer=layer,
        neuron=neuron,
        lens=lens,
        key=_vector(index.tokens, key, k),
        value=_vector(index.tokens, value, k),
        up=_vector(index.tokens, up, k) if up else None,
        similarity=shard.similarity(neuron, lens),
        shared=_tokens(index.tokens, shared),
        opposed=_tokens(index.tokens, opposed),
    )


def _in_both(first: list[int], second: Array) -> list[int]:
    """In the order of the first."""
    both = set(second.tolist()).intersection(first)
    return [token for token in first if token in both] if both else []


class Ranking(Protocol):
    """A vector that seed words found; precompute.seeds makes them, with the weights at hand."""

    @property
    def kind(self) -> str: ...
    @property
    def layer(self) -> int: ...
    @property
    def index(self) -> int: ...
    @property
    def score(self) -> float: ...


class SeedTokens(Protocol):
    @property
    def word(self) -> str: ...
    @property
    def tokens(self) -> tuple[int, ...]: ...
    @property
    def weight(self) -> float: ...


def seeds_view(
    index: Index, kinds: Iterable[str], seeds: Iterable[SeedTokens], results: Iterable[Ranking], first: int = 8
) -> SeedsView:
    """Each result with the first tokens of its list, where its layer is built."""

    def top(result: Ranking) -> tuple[TokenView, ...]:
        if result.layer not in index.layers:
            return ()
        return _tokens(
            index.tokens, index.shard(result.layer).vector(result.kind, result.index, "dot").top_ids[:first].tolist()
        )

    return SeedsView.of(
        model=index.manifest.model,
        kind=",".join(kinds),
        seeds=tuple(
            SeedView.of(word=seed.word, tokens=_tokens(index.tokens, seed.tokens), weight=seed.weight) for seed in seeds
        ),
        results=tuple(
            RankedView.of(kind=r.kind, layer=r.layer, index=r.index, score=r.score, top=top(r)) for r in results
        ),
    )


def pairs_view(
    index: Index, matrix: str, layer: int, head: int, lens: str = "dot", preset: str = "all", k: int | None = None
) -> PairsView:
    if matrix not in MATRICES:
        raise NotFound(f"matrix {matrix!r}: there are {', '.join(MATRICES)}")
    shard = index.shard(layer)
    _check("head", head, index.shape.n_heads, index)
    _check_length(k)
    top, bottom = shard.both_ends(matrix, head, lens, preset, k)
    return PairsView.of(
        model=index.manifest.model,
        layer=layer,
        head=head,
        matrix=matrix,
        lens=lens,
        preset=preset,
        pairs=_pairs(index.tokens, top),
        bottom=_pairs(index.tokens, bottom),
        columns=COLUMNS[matrix],
        coherence=(_number(top.coherence), _number(bottom.coherence)),
        hidden=_hidden(shard, matrix, head, lens, top.ids) if preset != "all" else 0,
        note=pairs_note(index.shape, matrix, head),
    )


def subhead_view(
    index: Index, layer: int, head: int, subhead: int, lens: str = "dot", k: int | None = None
) -> SubheadView:
    shard, shape = index.shard(layer), index.shape
    _check("head", head, shape.n_heads, index)
    _check("subhead", subhead, shape.d_head, index)

    def vector(kind: str) -> VectorView:
        return _vector(index.tokens, shard.vector(kind, shape.row(kind, head, subhead), lens), k)

    return SubheadView.of(
        model=index.manifest.model,
        layer=layer,
        head=head,
        subhead=subhead,
        lens=lens,
        q=vector("w_q"),
        k=vector("w_k"),
        v=vector("w_v"),
        o=vector("w_o"),
        note=subhead_note(shape, head, subhead),
    )


def _vector(tokens: TokenTable, lists: VectorLists, k: int | None) -> VectorView:
    _check_length(k)
    ends = zip(lists.ids[:, :k].tolist(), lists.scores[:, :k].tolist(), strict=True)
    top, bottom = (ScoredList(vocabulary_of(tokens), ids, scores) for ids, scores in ends)
    coherence = _number(lists.coherence_top), _number(lists.coherence_bottom)
    return VectorView.of(top=top, bottom=bottom, norm=lists.norm, coherence=coherence)


def _pairs(tokens: TokenTable, pairs: Pairs) -> PairList:
    firsts, seconds = pairs.ids.T.tolist()
    return PairList(vocabulary_of(tokens), firsts, seconds, pairs.scores.tolist())


def _hidden(shard: Shard, matrix: str, head: int, lens: str, shown: Array) -> int:
    """How many of as many pairs of preset `all` are not among the shown, top end."""
    best = shard.best_pairs(matrix, head, lens, len(shown))
    return len(set(zip(*best.T.tolist(), strict=True)).difference(zip(*shown.T.tolist(), strict=True)))


def _tokens(tokens: TokenTable, ids: Iterable[int]) -> tuple[TokenView, ...]:
    return tuple(token_view(tokens, token) for token in ids)


def token_view(tokens: TokenTable, token: int) -> TokenView:
    return {"id": token, "token": tokens.texts[token]}


def _check_length(k: int | None) -> None:
    if k is not None and k < 1:
        raise NotFound(f"k = {k}: a list is cut to 1 entry or more")


def _check(what: str, number: int, count: int, index: Index) -> None:
    if not 0 <= number < count:
        raise NotFound(f"{what} {number}: {index.manifest.model} has {what}s 0 to {count - 1} in each layer")


def _number(value: float) -> float | None:
    return None if math.isnan(value) else value
