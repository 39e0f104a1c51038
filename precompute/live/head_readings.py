"""Other readings of a head: the top pairs of W_V W_O or W_Q W_Kᵀ with norms folded in, or after the first MLP.
The module readings says what each reading means; the search is that of the stored lists, and as exact.
"""

from collections.abc import Callable
from functools import cached_property
from pathlib import Path

import numpy as np
import torch

from precompute.errors import NotFound
from precompute.index.tokens import distinct_classes, token_bytes, whole_words
from precompute.live.readings import Readings
from precompute.live.weights import Weights
from precompute.live.wire.readings import PairsReadingAnswer, PairsReadingAsk, ScoredPair
from precompute.project.embedding import Embedding, Float32
from precompute.project.pairs.masks import Masks
from precompute.shape import FACTORS, SIDES

SHARE_BEFORE_SEARCH = 0.5  # of the work, for the progress bar

Step = Callable[[str, float], None]  # the stage, and which share of all work is done; what it raises ends the work


class HeadReadings:
    def __init__(self, w: Weights, readings: Readings, tokenizer_file: Path) -> None:
        self.w, self.readings, self.tokenizer_file = w, readings, tokenizer_file

    def answer(self, ask: PairsReadingAsk, step: Step) -> PairsReadingAnswer:
        from precompute.project.pairs.head_pairs import (  # its kernels are not needed until a head is asked about
            Matrix,
            top_pairs,
        )

        s = self.w.shape
        for what, number, count in (("layer", ask.layer, s.n_layers), ("head", ask.head, s.n_heads)):
            if not 0 <= number < count:
                raise NotFound(f"{what} {number} does not exist here: 0 to {count - 1} do")
        left, right = FACTORS[ask.matrix]
        step("vocabulary", 0.0)
        if ask.reading == "mlp":
            self.readings.make_mlp_vocabulary(lambda share: step("vocabulary", share * SHARE_BEFORE_SEARCH))
        source, target = self._vocabulary(left, ask), self._vocabulary(right, ask)
        W_left, W_right = self._factor(left, ask), self._factor(right, ask)
        step("pairs", SHARE_BEFORE_SEARCH)
        matrix = Matrix(source, target, W_left, W_right, _product(source, W_left), _product(target, W_right))
        top, bottom = (
            tuple(
                ScoredPair(source=i, target=j, score=score)
                for (i, j), score in zip(end.pairs.tolist(), end.scores.tolist(), strict=True)
            )
            for end in top_pairs(matrix, self.masks, ask.lens, ask.n)[ask.preset]
        )
        return PairsReadingAnswer(top=top, bottom=bottom)

    @cached_property
    def masks(self) -> Masks:
        tokens = token_bytes(self.tokenizer_file, self.w.shape.d_vocab)
        return Masks.of(distinct_classes(tokens), whole_words(tokens))

    def _vocabulary(self, kind: str, ask: PairsReadingAsk) -> Embedding:
        if ask.reading == "mlp":
            return self.readings.mlp_vocabulary
        words = self.readings.words
        return (words.reads if SIDES[kind] == "reads" else words.writes).embedding

    def _factor(self, kind: str, ask: PairsReadingAsk) -> Float32:
        """(d_model, d_head): the head's vectors of a kind, with the norm folded in where that is the reading."""
        first = self.w.shape.row(kind, ask.head, 0)
        rows = slice(first, first + self.w.shape.d_head)
        if ask.reading == "norm":
            return np.ascontiguousarray(self.readings.folded(kind, ask.layer, rows).T)
        return np.ascontiguousarray(self.w.vectors(kind, ask.layer)[rows].cpu().numpy().T)


def _product(embedding: Embedding, W: Float32) -> torch.Tensor:
    """(d_head, d_vocab)"""
    return torch.from_numpy(np.ascontiguousarray(W.T)).to(embedding.on_device.device) @ embedding.on_device.T
