"""One parameter's lists, read from an index into a view: a neuron, a head's pairs, a subhead; and seed results.
The shapes of views are in view_types.py; showing them is for terminal.py and the pages."""

import math
from collections.abc import Iterable
from typing import Protocol

from app.views.lists import Block, PairList, ScoredList, TokenView
from app.views.notes import pairs_note, subhead_note
from app.views.view_types import FFView, PairsView, RankedView, SeedsView, SeedView, SubheadView, VectorView
from app.views.vocabulary import vocabulary_of
from precompute.errors import NotFound
from precompute.index.index import Index
from precompute.index.shard_reader import Array, Shard
from precompute.index.tokens import TokenTable
from precompute.shape import MATRICES

# What the two columns of a head's pairs are.
COLUMNS = {"vo": ("reads", "writes"), "qk": ("query", "key")}


def ff_view(index: Index, layer: int, neuron: int, lens: str = "dot", k: int | None = None) -> FFView:
    shard, shape = index.shard(layer), index.shape
    _check("neuron", neuron, shape.d_mlp, index)
    places = [(kind, neuron) for kind in (("ff_key", "ff_value", "ff_up") if shape.gated else ("ff_key", "ff_value"))]
    (key, value, *up), ids = _vectors(index, shard, places, lens, k)

    def shared() -> list[int]:
        both = set(ids[0, 0].tolist())
        return [token for token in ids[1, 0].tolist() if token in both]

    def opposed() -> list[int]:
        below = set(ids[2, 1].tolist()) if up else ()
        return [token for token in shared() if token in below] if below else []

    return FFView.of(  # nothing in `later` refers to the view: it would have to wait for the garbage collector
        model=index.manifest.model,
        layer=layer,
        neuron=neuron,
        lens=lens,
        key=key,
        value=value,
        up=up[0] if up else None,
        similarity=shard.similarity(neuron, lens),
        later={
            "shared": lambda: _tokens(index.tokens, shared()),
            "opposed": lambda: _tokens(index.tokens, opposed()),
        },
    )


class Ranking(Protocol):
    """A vector that seed words found; precompute.live.seed_ranking makes them, with the weights at hand."""

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
    ids, scores, lengths = shard.both_ends(matrix, head, lens, preset, k)
    block = Block(vocabulary_of(index.tokens), ids, scores.tolist(), lengths)
    top = PairList(block, 0)

    def coherence() -> tuple[float | None, ...]:
        return tuple(map(_number, shard.pair_coherences(matrix, head, lens, preset)))

    def hidden() -> int:
        """How many of as many pairs of preset `all` are not among the shown, top end."""
        if preset == "all":
            return 0
        best = shard.best_pairs(matrix, head, lens, len(top))
        return len(set(map(tuple, best.tolist())).difference(zip(*top.sides, strict=True)))

    return PairsView.of(
        model=index.manifest.model,
        layer=layer,
        head=head,
        matrix=matrix,
        lens=lens,
        preset=preset,
        pairs=top,
        bottom=PairList(block, 1),
        columns=COLUMNS[matrix],
        later={"coherence": coherence, "hidden": hidden, "note": lambda: pairs_note(index.shape, matrix, head)},
    )


def subhead_view(
    index: Index, layer: int, head: int, subhead: int, lens: str = "dot", k: int | None = None
) -> SubheadView:
    shard, shape = index.shard(layer), index.shape
    _check("head", head, shape.n_heads, index)
    _check("subhead", subhead, shape.d_head, index)

    places = [(kind, shape.row(kind, head, subhead)) for kind in ("w_q", "w_k", "w_v", "w_o")]
    (q, key, v, o), _ = _vectors(index, shard, places, lens, k)
    return SubheadView.of(
        model=index.manifest.model,
        layer=layer,
        head=head,
        subhead=subhead,
        lens=lens,
        q=q,
        k=key,
        v=v,
        o=o,
        later={"note": lambda: subhead_note(shape, head, subhead)},
    )


def _vectors(
    index: Index, shard: Shard, places: list[tuple[str, int]], lens: str, k: int | None
) -> tuple[list[VectorView], Array]:
    """The first k of both lists of each vector; and all ids that are stored, (V, E, k)."""
    _check_length(k)
    ids, scores = shard.vectors(places, lens)
    shown, lengths = ids[:, :, :k].ravel(), [min(k or ids.shape[2], ids.shape[2])] * (2 * len(places))
    block = Block(vocabulary_of(index.tokens), shown, scores[:, :, :k].ravel().tolist(), lengths)
    return [_vector(shard, place, lens, block, 2 * at) for at, place in enumerate(places)], ids


def _vector(shard: Shard, place: tuple[str, int], lens: str, block: Block, row: int) -> VectorView:
    return VectorView.of(
        top=ScoredList(block, row),
        bottom=ScoredList(block, row + 1),
        later={
            "norm": lambda: shard.norm(*place),
            "coherence": lambda: tuple(map(_number, shard.coherences(*place, lens))),
        },
    )


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
