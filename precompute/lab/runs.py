"""Run a model on texts, one after the other, so that memory does not grow with their number.

A position is a token of a text; special tokens that the tokenizer puts around the text are run but not counted.
Positions are numbered from 0, text after text.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import torch
from numpy.typing import NDArray
from tokenizers import Tokenizer
from torch import Tensor

from lexiscope.precompute.errors import BadRequest
from lexiscope.precompute.index.lab_record import TextsUsed
from lexiscope.precompute.live.panels.coverage import most_active
from lexiscope.precompute.live.run import Watcher, run
from lexiscope.precompute.live.texts import Encoded, Texts, encode, tokenizer_of
from lexiscope.precompute.live.weights import Weights
from lexiscope.precompute.live.words import Vocabulary
from lexiscope.precompute.weights.architectures.base import Model

LAB_TEXTS, LAB_TOKENS = 60, 128  # how many texts run, as many as in the paper, and tokens of each
CHARACTERS = 64  # characters of a text that are kept for each token wanted: far more than a token has

Numbers = NDArray[np.int64]


def drawn(count: int, n: int, seed: int) -> Numbers:
    """Draw n numbers below `count`, possibly some of them more than once; they are the same on every machine."""
    return np.random.RandomState(seed).randint(count, size=n, dtype=np.int64)


@dataclass(frozen=True)
class CutText:
    tokens: tuple[int, ...]
    own: slice  # the positions of the text itself, without special tokens

    @property
    def positions(self) -> int:
        return len(range(*self.own.indices(len(self.tokens))))


@dataclass(frozen=True)
class Active:
    """The m most active neurons of a layer at each of T positions, or its m most active subheads, numbered through all
    heads."""

    numbers: Numbers  # (T, m)
    signs: Numbers  # (T, m) signs of their coefficients; 0: not active
    read_signs: Numbers  # (T, m) signs of what the keys of neurons read; for subheads the same as `signs`


class Activity(Watcher):
    """The states of one text, and for each layer the most active neurons and subheads at every position."""

    def __init__(self, own: slice, m: int) -> None:
        self.own, self.m = own, m
        self.states: list[Tensor] = []  # (T, d_model) after each layer
        self.neurons: list[Active] = []
        self.subheads: list[Active] = []

    def stream(self, layer: int, after: str, x: Tensor) -> None:  # noqa: ARG002
        if after == "ff":
            self.states.append(x[0, self.own].clone())

    def attention(self, layer: int, x: Tensor, weights: Tensor, z: Tensor, rotation: object) -> None:  # noqa: ARG002
        if self.m:
            mixed = z[0, :, self.own].transpose(0, 1).flatten(1)  # (T, n_heads * d_head)
            self.subheads.append(self._active(mixed, mixed))

    def ff(self, layer: int, keys: Tensor, coefficients: Tensor) -> None:  # noqa: ARG002
        if self.m:
            self.neurons.append(self._active(coefficients[0, self.own], keys[0, self.own]))

    def _active(self, coefficients: Tensor, read: Tensor) -> Active:
        numbers = most_active(coefficients, self.m)
        signs, read_signs = (values.gather(1, numbers).sign().long() for values in (coefficients, read))
        return Active(*(tensor.cpu().numpy() for tensor in (numbers, signs, read_signs)))


class TextRuns:
    def __init__(self, model: Model, texts: Texts, device: torch.device, length: int = LAB_TOKENS) -> None:
        if model.lacks_unembedding:
            raise BadRequest(f"{model.checkpoint.name} is a classifier without its W_U, which cannot run here")
        self.weights = Weights.load(model, device)
        self._name, self._sha256 = texts.name, texts.sha256
        self._length = min(length, self.weights.n_positions)
        tokenizer = tokenizer_of(model)
        cuts = (self._cut(*self._encoded(tokenizer, text)) for text in texts.texts)
        self.texts = [cut for cut in cuts if cut.positions > 0]
        if not self.texts:
            raise BadRequest(f"none of the {len(texts.texts)} texts of {texts.name} has a token: give other texts")
        self.starts = np.cumsum([0, *(text.positions for text in self.texts)])  # first position of each text among all

    @property
    def positions(self) -> int:
        return int(self.starts[-1])

    @property
    def used(self) -> TextsUsed:
        return TextsUsed(
            name=self._name, sha256=self._sha256, count=len(self.texts), length=self._length, positions=self.positions
        )

    @cached_property
    def vocabulary(self) -> Vocabulary:
        return Vocabulary.of(self.weights.W_U)

    @torch.inference_mode()
    def activity(self, text: int, m: int) -> Activity:
        """Run a text and return its states and its most active neurons and subheads; with m = 0, its states alone."""
        cut, device = self.texts[text], self.weights.device
        activity = Activity(cut.own, m)
        run(self.weights, torch.tensor([cut.tokens], device=device), [len(cut.tokens)], [()], activity)
        return activity

    @torch.inference_mode()
    def states(self, activity: Activity) -> Tensor:
        """Return the states after each layer, (n_layers, T, d_model), through the final norm, as they are multiplied
        with W_U."""
        states = self.weights.model.before_unembedding(torch.stack(activity.states))
        if not states.isfinite().all():
            raise BadRequest("a run of this model gives numbers that are not finite: its states have no lists")
        return states

    def states_at(
        self, positions: Numbers, text_done: Callable[[], None] = lambda: None
    ) -> Iterator[tuple[NDArray[np.bool_], Numbers, Tensor]]:
        """Yield for each text flags of those `positions` that it has, their places in the text, and its states
        (n_layers, T, d_model)."""
        holders = np.searchsorted(self.starts, positions, side="right") - 1
        for text in range(len(self.texts)):
            chosen = holders == text
            if chosen.any():
                yield chosen, positions[chosen] - self.starts[text], self.states(self.activity(text, 0))
            text_done()

    def _encoded(self, tokenizer: Tokenizer, text: str) -> Encoded:
        """Encode a text, but only its beginning where that is enough, because a text may be very long."""
        beginning = encode(tokenizer, text[: CHARACTERS * self._length])
        return beginning if len(beginning[1]) > 2 * self._length else encode(tokenizer, text)

    def _cut(self, before: tuple[int, ...], text: tuple[int, ...], after: tuple[int, ...]) -> CutText:
        """Cut a text to as many tokens as fit between the special ones."""
        kept = text[: max(0, self._length - len(before) - len(after))]
        tokens = (*before, *kept, *after)
        if tokens and max(tokens) >= self.weights.shape.d_vocab:
            raise BadRequest(
                f"token {max(tokens)} of a text has no embedding: the model has {self.weights.shape.d_vocab}"
            )
        return CutText(tokens, slice(len(before), len(before) + len(kept)))
