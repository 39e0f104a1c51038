"""Find the values that heads and neurons get in a changed run: their means, or those of a second text."""

from collections.abc import Callable, Sequence

import torch
from torch import Tensor

from lexiscope.precompute.errors import BadRequest
from lexiscope.precompute.live.beforehand import SENTENCES
from lexiscope.precompute.live.panels.records import Record
from lexiscope.precompute.live.run import Change, Given, Watcher, run
from lexiscope.precompute.live.weights import Weights
from lexiscope.precompute.live.wire.asks import PromptAsk
from lexiscope.precompute.live.wire.grammar import Replaced, off_name
from lexiscope.precompute.live.words import Words
from lexiscope.precompute.weights.architectures.base import Rotation


def check_replaced(ask: PromptAsk, tokens: int, second: int) -> None:
    """Raise BadRequest if a value cannot be had of the second text, or if it is not clear which of two changes holds.
    `tokens` and `second` are the lengths of the texts."""
    if ask.patch and not second:
        raise BadRequest("from is empty: patch takes values of a second text, such as from=The capital of Italy is")
    for change in ask.patch:
        if change.position is None and tokens != second:
            raise BadRequest(
                f"patch = {off_name(change)!r}: the texts have {tokens} and {second} tokens, and only texts of as many "
                f"tokens are patched everywhere. Name a position, as in {off_name(change)}@{min(tokens, second) - 1}"
            )
        if change.position is not None and change.position >= second:
            raise BadRequest(f"patch = {off_name(change)!r}: the second text has the positions 0 to {second - 1}")
    named = [off_name(change) for change in (*ask.off, *ask.set, *ask.mean, *ask.patch)]
    for given in (*ask.mean, *ask.patch):
        if named.count(name := off_name(given)) > 1:
            raise BadRequest(
                f"{given.kind} = {name!r}: it is changed in two ways at once: keep one of off, set, mean, patch"
            )


class MeansOfTexts(Watcher):
    """The means of all heads' mixed values and all neurons' coefficients over the positions, but the first ones, of the
    sentences that Lexiscope has, which are run once."""

    def __init__(self, w: Weights, words: Words) -> None:
        self.w, self.words, self.positions = w, words, 0

    def make(self, check: Callable[[], None]) -> None:
        """Run the sentences, if that was not done yet. `check` is called before each layer, and may raise an error."""
        if self.positions:
            return
        s, device, self.check = self.w.shape, self.w.device, check
        self.mixed = torch.zeros(s.n_layers, s.n_heads, s.d_head, device=device)
        self.coefficients = torch.zeros(s.n_layers, s.d_mlp, device=device)
        texts = [self.words.prompt(sentence)[: self.w.n_positions] for sentence in SENTENCES]
        for tokens in texts:
            run(self.w, torch.tensor([tokens], device=device), [len(tokens)], [()], self)
        self.positions = sum(map(len, texts)) - len(texts)

    def layer(self, layer: int) -> None:  # noqa: ARG002
        self.check()

    def attention(self, layer: int, x: Tensor, weights: Tensor, z: Tensor, rotation: Rotation | None) -> None:  # noqa: ARG002
        self.mixed[layer] += z[0, :, 1:].sum(dim=1)

    def ff(self, layer: int, keys: Tensor, coefficients: Tensor) -> None:  # noqa: ARG002
        self.coefficients[layer] += coefficients[0, 1:].sum(dim=0)

    def of(self, change: Replaced) -> Tensor:
        """Return the mean (d_head,) of a head, or () of a neuron."""
        sums, number = (self.coefficients, change.neuron) if change.head is None else (self.mixed, change.head)
        return sums[change.layer, number] / self.positions


def given_values(ask: PromptAsk, records: Sequence[Record], texts: MeansOfTexts) -> list[Change]:
    """Return the changes of a run with the values that replaced heads and neurons get. `records` are of that run, of
    the run without changes and of the second text; those that values are taken from have run."""
    changes: list[Change] = [*ask.off, *ask.set]
    for change in (*ask.mean, *ask.patch):
        values = records[1 if change.kind == "mean" else -1].values.get(change)
        if change.kind == "mean":
            mean = texts.of(change) if values is None else values.mean(dim=0)
            values = mean.expand(len(records[0].tokens), *mean.shape)
        assert values is not None
        changes.append(Given(change.layer, change.head, change.neuron, change.position, values))
    return changes
