"""Measure what the last layers of model B predict with B's own head: the next token at every position, or the label of
a text."""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from lexiscope.precompute.compare.last_layers import LastLayers
from lexiscope.precompute.compare.texts import Cut
from lexiscope.precompute.errors import BadRequest, BadWeights
from lexiscope.precompute.index.stitching import Measured
from lexiscope.precompute.live.run import inputs_of
from lexiscope.precompute.live.vocabulary import PRODUCT_ROWS
from lexiscope.precompute.live.weights import CLASSIFIER, Weights, load_net
from lexiscope.precompute.weights.architectures.base import LABEL_TENSORS, Model


@dataclass
class Tally:
    right: int = 0
    loss: float = 0.0  # the sum of the losses of all predictions
    count: int = 0

    def add(self, logits: Tensor, answers: Tensor) -> None:
        """Count predictions: compare logits (n, classes) with the right answers (n,)."""
        losses = torch.nn.functional.cross_entropy(logits, answers, reduction="none")
        if not losses.isfinite().all():
            raise BadWeights("a stitched run overflows: its states are too large for float32")
        self.right += int((logits.argmax(dim=1) == answers).sum())
        self.loss += float(losses.double().sum())
        self.count += len(answers)

    def measured(self) -> Measured:
        return Measured(accuracy=self.right / self.count, loss=self.loss / self.count)


class NextTokens:
    """Measure what model B predicts at every position for the token after it."""

    def __init__(self, model: Model, last: int, device: torch.device) -> None:
        if not model.causal:
            raise BadRequest(
                f"{model.checkpoint.name} is an encoder, which predicts no next tokens: give a .csv with the columns "
                "text,label and a classifier made from it, or a decoder"
            )
        if model.lacks_unembedding:
            raise BadRequest(
                f"{model.checkpoint.name} is a classifier without a head that predicts tokens: give a .csv with the "
                "columns text,label"
            )
        self.weights = Weights.load(model, device)
        self.n_positions = self.weights.n_positions
        self.layers = LastLayers(model, self.weights.net, last)
        self.classes = model.shape.d_vocab

    def padding(self, cuts: Sequence[Cut]) -> int:  # noqa: ARG002
        return self.weights.padding

    def answers(self, cut: Cut, _: str | None) -> list[int]:
        """Return the tokens that B has to predict: those of the text that have a token before them, in order of their
        positions."""
        return list(cut.b[max(1, cut.first) : cut.first + cut.count])

    def add(self, tally: Tally, tokens: Tensor, cuts: Sequence[Cut], answers: Tensor) -> None:
        """Run the net, with the hooks it has now, on tokens (B, T), and add its predictions to the tally."""
        with self.layers.stream() as stream:
            self.weights.net.base_model(input_ids=tokens, use_cache=False)
        before = [stream()[row, max(1, cut.first) - 1 : cut.first + cut.count - 1] for row, cut in enumerate(cuts)]
        states = torch.cat(before)  # (answers, d_model)
        for start in range(0, len(states), PRODUCT_ROWS):
            rows = slice(start, start + PRODUCT_ROWS)
            tally.add(self.weights.model.logits(states[rows]), answers[rows])


class Labels:
    """Measure which label model B, a classifier, gives to a whole text."""

    def __init__(self, model: Model, last: int, device: torch.device) -> None:
        name = model.checkpoint.name
        if not model.is_classifier:
            raise BadRequest(
                f"{name} is no classifier (it has none of the tensors {', '.join(LABEL_TENSORS)}), so it gives no "
                "labels: give a .txt, or a checkpoint of AutoModelForSequenceClassification"
            )
        self.net, self.causal = load_net(model, device, CLASSIFIER), model.causal
        self.n_positions = model.n_positions(self.net)
        self.layers = LastLayers(model, self.net, last)
        self.names = {str(label).casefold(): int(number) for number, label in self.net.config.id2label.items()}
        self.classes = int(self.net.config.num_labels)
        if self.classes < 2:
            raise BadRequest(f"{name} gives a single number, no labels: give a classifier of two labels or more")
        self.own_padding = self.net.config.pad_token_id

    def padding(self, cuts: Sequence[Cut]) -> int:
        """Return the token to pad with. A decoder gives the label at its last token that is no padding: where
        config.json names no padding token, return one with which none of these texts ends."""
        if isinstance(self.own_padding, int) and self.own_padding >= 0:
            return self.own_padding
        ends = {cut.b[-1] for cut in cuts}
        self.net.config.pad_token_id = next(token for token in range(len(ends) + 1) if token not in ends)
        return int(self.net.config.pad_token_id)

    def answers(self, _: Cut, label: str | None) -> list[int]:
        """Return the number of the label of a text, as a list of one; the label is given by its name or by its
        number."""
        named = self.names.get((label or "").casefold())
        if named is None and label and label.isdecimal() and int(label) < self.classes:
            named = int(label)
        if named is None:
            known = ", ".join(map(repr, self.net.config.id2label.values()))[:200]
            raise BadRequest(f"the label {(label or '')[:100]!r} is none of B's: {known}, or 0 to {self.classes - 1}")
        return [named]

    def add(self, tally: Tally, tokens: Tensor, cuts: Sequence[Cut], answers: Tensor) -> None:
        inputs = inputs_of(tokens, [len(cut.b) for cut in cuts], causal=self.causal)
        tally.add(self.net(**inputs).logits, answers)
