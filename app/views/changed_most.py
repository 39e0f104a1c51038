"""What is worth reading first in a difference: what moved far and reads clearly, by |Δ| times coherence.
Not by |Δ| / |base|, which is large mostly where the base is small. What is worth reading in a model is for
worth_reading.py."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from typing_extensions import TypedDict

from lexiscope.app.views.checks import finite
from lexiscope.app.views.difference import head_changes, vector_changes
from lexiscope.app.views.hubs import LOOKED_AT as LOOKED_AT_FIRST
from lexiscope.app.views.hubs import first_kept
from lexiscope.app.views.readable import SAME, FreshWords, readable
from lexiscope.app.views.tokens import Token, tokens_of
from lexiscope.app.views.worth_reading import (
    HEAD_PRESET,
    NAMEABLE,
    TOKENS,
    HeadCard,
    NeuronCard,
    head_card,
    head_lens,
    largest_cards,
)
from lexiscope.precompute.index.index import Index
from lexiscope.precompute.index.shard_reader import Shard
from lexiscope.precompute.index.tensor_file import Array, Floats
from lexiscope.precompute.shape import ENDS, MATRICES

NEURON_KINDS = ("ff_key", "ff_value")
SUBHEAD_KINDS = ("w_q", "w_k", "w_v", "w_o")


class SubheadCard(TypedDict):
    layer: int
    head: int  # of kinds that heads share, the first that has it
    subhead: int
    kind: str
    change: float | None
    number: float  # coherence
    end: str
    tokens: list[Token]


@dataclass(frozen=True)
class ChangedMost:
    """None: not stored."""

    neurons: tuple[NeuronCard, ...] | None  # keys, then values
    subheads: tuple[SubheadCard, ...] | None
    heads: tuple[HeadCard, ...] | None


@dataclass(frozen=True)
class _ChangedVector:
    """A list that can be read."""

    kind: str
    layer: int
    row: int
    end: str
    change: float | None
    number: float
    tokens: list[Token]


def changed_most(
    index: Index, shards: Mapping[int, Shard], lens: str, hubs: frozenset[int] = frozenset()
) -> ChangedMost:
    """Hubs that are given are skipped among first tokens."""
    stored = index.stored
    neurons = [_clearest(index, shards, (kind,), lens, hubs) for kind in NEURON_KINDS if kind in stored.kinds]
    subheads = _clearest(index, shards, [kind for kind in SUBHEAD_KINDS if kind in stored.kinds], lens, hubs)
    return ChangedMost(
        neurons=tuple(_neuron(found) for of_kind in neurons for found in of_kind) if neurons else None,
        subheads=tuple(_subhead(index, found) for found in subheads) if stored.subheads else None,
        heads=_heads(index, shards) if stored.pairs else None,
    )


def _clearest(
    index: Index, shards: Mapping[int, Shard], kinds: Sequence[str], lens: str, hubs: frozenset[int]
) -> tuple[_ChangedVector, ...]:
    """The lists with the largest |Δ| times coherence; of several kinds, |Δ| is taken relative to the kind's median."""
    fresh = FreshWords(readable(index))
    changes = {(kind, layer): vector_changes(shard, kind) for kind in kinds for layer, shard in shards.items()}
    coherences = {
        (kind, layer, end): shard.all_coherences(kind, lens, end)
        for kind in kinds
        for layer, shard in shards.items()
        for end in ENDS
    }
    moved = {kind: _moved({layer: shard.all_norms(kind) for layer, shard in shards.items()}) for kind in kinds}
    numbers = {
        at: np.where((moved[at[0]][at[1]] > 0) & (coherence < SAME), moved[at[0]][at[1]] * coherence, np.nan)
        for at, coherence in coherences.items()
    }

    def card_of(at: tuple[str, int, str], row: int, _: float) -> _ChangedVector | None:
        kind, layer, end = at
        listed = shards[layer].first_ids(kind, np.array([row]), lens, LOOKED_AT_FIRST if hubs else TOKENS, end)
        ids = first_kept(listed.tolist(), hubs, TOKENS)[0]
        if not fresh.take_if_all_words(ids):
            return None
        coherence, change = float(coherences[at][row]), finite(float(changes[kind, layer][row]))
        return _ChangedVector(kind, layer, row, end, change, coherence, tokens_of(index.tokens, ids))

    return largest_cards(card_of, numbers)


def _moved(norms: Mapping[int, Floats]) -> dict[int, Floats]:
    """By layer: |Δ| of each, relative to the median of all that changed."""
    changed = np.concatenate([np.empty(0), *norms.values()])
    usual = np.median(changed[changed > 0]) if changed.any() else 1.0
    return {layer: of_layer / usual for layer, of_layer in norms.items()}


def _heads(index: Index, shards: Mapping[int, Shard]) -> tuple[HeadCard, ...]:
    """The same of heads, by |Δ| times readability, of those that can be named."""
    fresh, lens = FreshWords(readable(index)), head_lens(index)
    readabilities: dict[tuple[int, str], Array] = {}
    numbers: dict[tuple[int, str], Array] = {}
    for matrix in MATRICES:
        moved = _moved({layer: shard.heads.all_matrix_norms(matrix)[0] for layer, shard in shards.items()})
        for layer, shard in shards.items():
            of_heads = readabilities[layer, matrix] = shard.heads.all_readabilities(matrix, lens, HEAD_PRESET)
            wanted = (moved[layer] > 0) & (of_heads >= NAMEABLE)
            numbers[layer, matrix] = np.where(wanted, moved[layer] * of_heads, np.nan)

    def card(at: tuple[int, str], head: int, _: float) -> HeadCard | None:
        made = head_card(index, fresh, *at, head, float(readabilities[at][head]), lens)
        return made and {**made, "change": finite(float(head_changes(shards[at[0]], at[1])[head]))}

    return largest_cards(card, numbers)


def _neuron(vector: _ChangedVector) -> NeuronCard:
    return {
        "layer": vector.layer, "neuron": vector.row, "number": vector.number, "end": vector.end,
        "tokens": vector.tokens, "kind": vector.kind, "change": vector.change,
    }  # fmt: skip


def _subhead(index: Index, vector: _ChangedVector) -> SubheadCard:
    head, subhead = index.shape.head_and_subhead(vector.kind, vector.row)
    return {
        "layer": vector.layer, "head": head, "subhead": subhead, "kind": vector.kind, "change": vector.change,
        "number": vector.number, "end": vector.end, "tokens": vector.tokens,
    }  # fmt: skip
