"""Define what a panel of a run is: what the run keeps for it, what it answers, and what that costs."""

from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from lexiscope.precompute.index.tokens import is_special, is_wordpiece, surface, token_bytes
from lexiscope.precompute.live.first_tokens import ListEnd
from lexiscope.precompute.live.panels.records import Keep, Record
from lexiscope.precompute.live.panels.token_rows import TokenRows, Vocabularies
from lexiscope.precompute.live.vocabulary import Tick
from lexiscope.precompute.live.weights import Weights
from lexiscope.precompute.live.wire.answers import PanelName, SheetHead
from lexiscope.precompute.live.wire.asks import PromptAsk
from lexiscope.precompute.live.wire.fields import unpack_tokens
from lexiscope.precompute.live.wire.grammar import ComparedWith

Fields = dict[str, Any]  # fields of a PromptAnswer
Count = Callable[[Weights, PromptAsk, int], float]  # returns the count for an ask with so many tokens


class ModelTables:
    """What panels need of a model beside its weights. Each table is computed when it is first needed, and then kept."""

    def __init__(self, w: Weights, marks: Collection[int], tokenizer_file: Path) -> None:
        self.w, self.marks = w, marks  # tokens that a tokenizer puts around a text, masks, and the like
        self.tokenizer_file = tokenizer_file

    @cached_property
    def value_norms(self) -> Tensor:
        norms = [torch.linalg.vector_norm(values, dim=1) for values in self.w.every_layer("ff_value")]
        return torch.stack(norms)  # (n_layers, d_mlp)

    @cached_property
    def vocabularies(self) -> Vocabularies:
        reads = TokenRows.of(self.w, self.w.W_E)
        return reads, reads if self.w.shape.tied else TokenRows.of(self.w, self.w.W_U)

    @cached_property
    def surfaces(self) -> list[str]:
        """Return each token's text without case and surrounding space; "" for one that stands for no text."""
        raws = token_bytes(self.tokenizer_file, self.w.shape.d_vocab)
        wordpiece = is_wordpiece(raws)
        return ["" if is_special(raw.decode("utf-8", "replace")) else surface(raw, wordpiece) for raw in raws]


def only_tokens(w: Weights, ask: PromptAsk) -> Tensor | None:
    """Return flags (d_vocab,), on the device, of the tokens that may stand in lists; None if all may."""
    only = unpack_tokens(ask.only, w.shape.d_vocab)
    return None if only is None else torch.from_numpy(only).to(w.device)


@dataclass(frozen=True)
class PanelRun:
    """A finished run, and all that a panel may need to describe it."""

    w: Weights
    tables: ModelTables
    ask: PromptAsk
    records: Sequence[Record]  # of the run; if it has changes, of the run without them; of the second text, if any
    token: int  # the token whose logit is explained
    against: int | ComparedWith
    tick: Callable[[PanelName], Tick]  # reports vectors multiplied with the vocabulary, by panel
    head_rows: list[SheetHead] = field(default_factory=list)  # of all heads, once the first panel has made them

    @property
    def record(self) -> Record:
        return self.records[0]


@dataclass(frozen=True, kw_only=True)
class Panel:
    name: PanelName
    keeps: frozenset[Keep]  # what the records keep of the run for this panel
    answer: Callable[[PanelRun], Fields]
    rows: Count = lambda *_: 0  # vectors multiplied with the whole vocabulary, or as dear: progress counts them
    cost: Count = lambda *_: 0  # other multiplications
    vectors: Callable[[Fields, bool], Iterator[ListEnd]] = lambda *_: iter(())  # the vectors whose lists are shown
