"""A head's pairs: what W_V W_O maps to what, or which query looks for which key."""

from dataclasses import dataclass, replace
from typing import Annotated, Literal, TypeAlias

from pydantic import Field

from app.views.checks import check_length, check_number, finite
from app.views.difference import matrix_change, minus_of
from app.views.labels import LABELS, ShownLabel
from app.views.notes import pairs_note
from app.views.tokens import HUBS_HIDDEN, NOTE, OF_DIFFERENCE, OMIT_NONE, PAGE_ONLY, TokenPair, ViewOfModel, token_pairs
from app.views.vectors import CHANGE, UNCHANGED, Coherence
from precompute.index.index import Index
from precompute.index.not_stored import check_kinds, check_lens
from precompute.index.shard_reader import Shard
from precompute.index.stored import position
from precompute.live.wire.readings import PairsReadingAnswer, ScoredPair
from precompute.shape import MATRICES

Hidden: TypeAlias = Annotated[int, Field(description="Of as many of the best pairs: how many the preset leaves out")]

# What the two columns of a head's pairs are.
COLUMNS = {"vo": ("reads", "writes"), "qk": ("query", "key")}


@dataclass(frozen=True, slots=True, kw_only=True)
class PairsReading:
    """A head's pairs as a worker reads them: with norms folded in, or with tokens after the first MLP."""

    name: str  # norm, mlp
    top: list[TokenPair]
    bottom: list[TokenPair]
    overlap: float  # Jaccard of this top with the stored one of the same length, preset and lens
    kept: Annotated[frozenset[tuple[int, int]], PAGE_ONLY] = frozenset()  # pairs that the stored end has, too
    hubs_hidden_by_end: Annotated[tuple[int, int] | None, HUBS_HIDDEN] = None  # of top and bottom


@dataclass(frozen=True, slots=True, kw_only=True)
class PairsView(ViewOfModel):
    layer: int
    head: int
    matrix: str
    lens: str
    preset: str
    top: list[TokenPair]
    bottom: list[TokenPair]
    reading: Annotated[PairsReading | None, OMIT_NONE] = None  # if asked for
    coherence: Coherence
    hidden: Hidden
    norm: Annotated[float | None, OF_DIFFERENCE] = None  # of the head's matrix, Frobenius'
    base_norm: Annotated[float | None, OF_DIFFERENCE] = None
    change: Annotated[float | None, CHANGE] = None
    unchanged: Annotated[Literal[True] | None, UNCHANGED] = None
    labels: Annotated[list[ShownLabel] | None, LABELS] = None
    note: Annotated[str, NOTE] = ""
    hubs_hidden_by_end: Annotated[tuple[int, int] | None, HUBS_HIDDEN] = None  # of top and bottom

    @property
    def columns(self) -> tuple[str, str]:
        return COLUMNS[self.matrix]


def pairs_view(
    index: Index, matrix: str, layer: int, head: int, lens: str = "dot", preset: str = "all", k: int | None = None
) -> PairsView:
    position("matrix", matrix, MATRICES)
    check_lens(index, lens)
    check_kinds(index, matrix)
    shard = index.shard(layer)
    check_number(index, "head", head, index.shape.n_heads)
    check_length(k)
    ids, scores, (n_top, _) = shard.heads.both_ends(matrix, head, lens, preset, k)
    changed = matrix_change(shard, matrix, head) if index.stored.difference else None
    unchanged = changed is not None and changed["norm"] == 0
    pairs = [] if unchanged else token_pairs(index.tokens, ids.tolist(), scores.tolist())
    coherence_top, coherence_bottom = map(finite, shard.heads.pair_coherences(matrix, head, lens, preset))
    return PairsView(
        model=index.manifest.model,
        build=index.manifest.build,
        minus=minus_of(index),
        layer=layer,
        head=head,
        matrix=matrix,
        lens=lens,
        preset=preset,
        top=pairs[:n_top],
        bottom=pairs[n_top:],
        coherence=(coherence_top, coherence_bottom),
        hidden=0 if preset == "all" else _n_hidden(shard, matrix, head, lens, pairs[:n_top]),
        norm=changed and changed["norm"],
        base_norm=changed and changed["base_norm"],
        change=changed and changed["change"],
        unchanged=True if unchanged else None,
        note=pairs_note(index.shape, matrix, head),
    )


def _n_hidden(shard: Shard, matrix: str, head: int, lens: str, shown: list[TokenPair]) -> int:
    """How many of as many pairs of preset `all` are not among the shown."""
    best = shard.heads.best_pairs(matrix, head, lens, len(shown)).tolist()
    return len({(a, b) for a, b in best} - _ids(shown))


def with_pairs_reading(index: Index, view: PairsView, name: str, answer: PairsReadingAnswer) -> PairsView:
    """The view with the same head's pairs in another reading, compared with as many stored ones."""
    shard, at = index.shard(view.layer), (view.matrix, view.head, view.lens, view.preset)
    top, bottom = (_token_pairs(index, pairs) for pairs in (answer.top, answer.bottom))
    stored_top, stored_bottom = (
        {(a, b) for a, b in shard.heads.pairs(*at, end).ids[: len(pairs)].tolist()}
        for end, pairs in (("top", top), ("bottom", bottom))
    )
    either = _ids(top) | stored_top
    reading = PairsReading(
        name=name,
        top=top,
        bottom=bottom,
        overlap=len(_ids(top) & stored_top) / len(either) if either else 1.0,
        kept=frozenset((_ids(top) & stored_top) | (_ids(bottom) & stored_bottom)),
    )
    return replace(view, reading=reading)


def _token_pairs(index: Index, pairs: tuple[ScoredPair, ...]) -> list[TokenPair]:
    return token_pairs(index.tokens, ((p.source, p.target) for p in pairs), (p.score for p in pairs))


def _ids(pairs: list[TokenPair]) -> set[tuple[int, int]]:
    return {(pair["from"]["id"], pair["to"]["id"]) for pair in pairs}
