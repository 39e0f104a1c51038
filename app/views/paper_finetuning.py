"""The words that the paper printed of vectors changed by fine-tuning (appendix D), in the lists of a difference. Which
vectors these are is not printed, so each group of tables, by kind and layer, is compared as a set of words."""

from dataclasses import dataclass
from typing import Annotated, Any

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from app.library.fault_text import for_visitors
from app.views.paper_tokens import PrintedToken, printed_token, why_not_compared
from app.views.tokens import Token, tokens_of
from precompute.errors import IndexFault, NotFound
from precompute.index.index import Index
from precompute.paper.lists import PrintedDifference
from precompute.shape import ENDS

LISTED = 20  # tokens of each end, as many as are printed
CHANGED_MOST = 50  # vectors whose lists are compared
KINDS = {"FF keys": "ff_key", "W_Q": "w_q", "W_K": "w_k", "W_V": "w_v"}  # as printed, and ours

BY_CHANCE: Any = Field(description="How many there would be if these lists held as many tokens drawn at random")


@dataclass(frozen=True, slots=True, kw_only=True)
class BestVector:
    """The vector whose two lists hold the most of the printed words."""

    kind: str
    layer: int | None  # None of a classification head
    index: int
    head: int | None
    subhead: int | None
    shared: list[Token]


@dataclass(frozen=True, slots=True, kw_only=True)
class WordsCompared:
    kind: str  # as printed
    layer: int | None
    layer_inferred: bool  # from the order of the tables: its heading is lost
    tables: int
    why_not: str | None
    words: list[PrintedToken]  # of both columns of all tables
    found: Annotated[int, Field(description="In the lists of the vectors that changed most, up to the space")]
    by_chance: Annotated[float, BY_CHANCE]
    compared: Annotated[int, Field(description="How many vectors, those that changed most")]
    best: BestVector | None


@dataclass(frozen=True)
class _Words:
    """Tokens that are equal up to the leading space have the same number."""

    numbers: dict[str, int]  # by text without it
    of_tokens: NDArray[np.int64]  # (d_vocab,)

    @classmethod
    def of(cls, index: Index) -> "_Words":
        numbers: dict[str, int] = {}
        bare = (text.removeprefix(" ") for text in index.tokens.texts)
        of_tokens = np.array([numbers.setdefault(text, len(numbers)) for text in bare], np.int64)
        return cls(numbers, of_tokens)


@dataclass(frozen=True)
class _Lists:
    vectors: list[tuple[str, int | None, int]]  # kind, layer, index; those that changed most first
    ids: NDArray[Any]  # (n, tokens): the first of both ends


def words_compared(index: Index, printed: tuple[PrintedDifference, ...], lens: str) -> list[WordsCompared]:
    groups: dict[tuple[str, int | None], list[PrintedDifference]] = {}
    for each in printed:
        groups.setdefault((each.kind, each.layer), []).append(each)
    words = _Words.of(index)
    return [_compared(index, words, kind, layer, tables, lens) for (kind, layer), tables in groups.items()]


def _compared(
    index: Index, words: _Words, kind: str, layer: int | None, tables: list[PrintedDifference], lens: str
) -> WordsCompared:
    printed = dict.fromkeys(text for each in tables for text in (*each.diff, *each.minus_diff))
    lists = _lists(index, kind, layer, lens)
    found, by_chance, compared, best = 0, 0.0, 0, None
    if isinstance(lists, _Lists):
        wanted = [words.numbers.get(text.removeprefix(" "), -1) for text in printed]
        wanted = sorted({number for number in wanted if number >= 0})
        compared = min(len(lists.ids), CHANGED_MOST)
        held = np.unique(words.of_tokens[lists.ids[:compared]])
        found = int(np.isin(held, wanted).sum())
        by_chance = len(wanted) * len(held) / len(words.numbers)
        best = _best(index, lists, np.isin(words.of_tokens[lists.ids], wanted))
    return WordsCompared(
        kind=kind,
        layer=layer,
        layer_inferred=any(each.layer_inferred for each in tables),
        tables=len(tables),
        why_not=None if isinstance(lists, _Lists) else lists,
        words=[printed_token(index.tokens, text) for text in printed],
        found=found,
        by_chance=by_chance,
        compared=compared,
        best=best,
    )


def _best(index: Index, lists: _Lists, is_wanted: NDArray[np.bool_]) -> BestVector | None:
    """`is_wanted`: (n, tokens)."""
    if not is_wanted.any():
        return None
    at = int(is_wanted.sum(axis=1).argmax())
    kind, layer, number = lists.vectors[at]
    head, subhead = index.shape.head_and_subhead(kind, number) if kind.startswith("w_") else (None, None)
    shared = tokens_of(index.tokens, lists.ids[at][is_wanted[at]].tolist())
    return BestVector(kind=kind, layer=layer, index=number, head=head, subhead=subhead, shared=shared)


def _lists(index: Index, kind: str, layer: int | None, lens: str) -> _Lists | str:
    """Or why there are none."""
    try:
        if layer is None:
            return _classifier_lists(index, lens)
        ours = KINDS[kind]
        if why_not := why_not_compared(index, layer, kind, 0, 1, (ours,)):
            return why_not
        shard = index.shard(layer)
        norms = shard.all_norms(ours)
        order = np.argsort(-norms, kind="stable")[: int((norms > 0).sum())]
        if not len(order):
            return f"no {ours} of layer {layer} changed"
        ends = [shard.first_ids(ours, order, lens, LISTED, end) for end in ENDS]
        return _Lists([(ours, layer, number) for number in order.tolist()], np.concatenate(ends, axis=1))
    except (IndexFault, NotFound) as fault:
        return for_visitors(fault, index.folder.parent)


def _classifier_lists(index: Index, lens: str) -> _Lists:
    head = index.classifier()
    numbers = range(len(head.entry.labels))
    ids = [head.vector("classifier", number, lens).ids[:, :LISTED].reshape(-1) for number in numbers]
    return _Lists([("classifier", None, number) for number in numbers], np.stack(ids))
