"""Make other lists (readings) of a stored vector or of a head's pairs: with the model's norms folded in, or with the
vocabulary after the first MLP. They are made by project/, as stored lists are, and are as exact.

- norm: includes norms, which stored lists leave out. A reading vector v meets the stream through its layer's norm: v is
  multiplied with the norm's gain, and centred if the norm centres (LayerNorm). What a writing vector adds meets the
  vocabulary through the final norm: it is centred if this norm centres, and multiplied with its gain. Divisors and
  biases of norms are left out.
- mlp: every token's embedding e is replaced by e + MLP_0(norm(e)), the first layer's FF with its norm and biases; then
  lists are made as stored ones. W_E is always used, for writing vectors, too.
"""

from collections.abc import Callable
from functools import cached_property
from pathlib import Path

import numpy as np
import torch

from lexiscope.precompute.errors import NotFound
from lexiscope.precompute.index.tokens import distinct_classes, token_bytes, whole_words
from lexiscope.precompute.live.parameters import check_number
from lexiscope.precompute.live.vocabulary import scored
from lexiscope.precompute.live.weights import Weights
from lexiscope.precompute.live.wire.answers import PairsReadingAnswer, ReadingAnswer, TokenPair
from lexiscope.precompute.live.wire.asks import PairsReadingAsk, ReadingAsk
from lexiscope.precompute.live.words import Words
from lexiscope.precompute.project.embedding import Embedding, Float32, Float64
from lexiscope.precompute.project.pairs.leaderboard import PairList
from lexiscope.precompute.project.pairs.masks import Masks
from lexiscope.precompute.project.vectors import Projector
from lexiscope.precompute.shape import FACTORS, LENSES, SIDES

LONGEST_LIST = 100  # tokens
MLP_TOKENS = 4096  # tokens that go through the MLP at once
SHARE_BEFORE_SEARCH = 0.5  # share of a pair search's work that comes before the search itself, for the progress bar

Step = Callable[[str, float], None]  # the stage, and which share of all work is done; what it raises ends the work


class Readings:
    def __init__(self, w: Weights, words: Words, tokenizer_file: Path) -> None:
        self.w, self.words, self.tokenizer_file = w, words, tokenizer_file
        self._mlp_vocabulary: Embedding | None = None
        self._rows_done = 0  # rows of that vocabulary that are computed already

    def answer(self, ask: ReadingAsk) -> ReadingAnswer:
        s = self.w.shape
        if ask.kind not in s.kinds:
            raise NotFound(f"there are no vectors of kind {ask.kind!r}, only {', '.join(s.kinds)}")
        check_number("layer", ask.layer, s.n_layers)
        check_number(ask.kind, ask.index, s.count(ask.kind))
        if ask.reading == "norm":
            projector = self._reads if SIDES[ask.kind] == "reads" else self._writes
            return _answer(projector, self.folded(ask.kind, ask.layer, ask.index), ask)
        vector = self.w.vectors(ask.kind, ask.layer)[ask.index].cpu().numpy()
        return _answer(self._after_mlp, vector, ask)

    def folded(self, kind: str, layer: int, rows: int | slice) -> Float32:
        """Return vectors (..., d_model) of a kind times the gain of the norm that they meet, centred if that norm
        centres."""
        v = self.w.vectors(kind, layer)[rows].cpu().numpy().astype(np.float64)
        writes = SIDES[kind] == "writes"
        norm = self.w.norm_numbers("final" if writes else "ff" if kind.startswith("ff_") else "attention", layer)
        gain = norm.gain.cpu().numpy().astype(np.float64)

        def centred(x: Float64) -> Float64:
            return x - x.mean(axis=-1, keepdims=True) if norm.centres else x

        return np.asarray(gain * centred(v) if writes else centred(gain * v), np.float32)

    @cached_property
    def _reads(self) -> Projector:
        return Projector(self.words.reads.embedding, LONGEST_LIST)

    @cached_property
    def _writes(self) -> Projector:
        tied = self.words.reads is self.words.writes
        return self._reads if tied else Projector(self.words.writes.embedding, LONGEST_LIST)

    @cached_property
    def _after_mlp(self) -> Projector:
        return Projector(self.mlp_vocabulary, LONGEST_LIST)

    @property
    def has_mlp_vocabulary(self) -> bool:
        return self._mlp_vocabulary is not None

    @property
    def mlp_vocabulary(self) -> Embedding:
        """Return the vocabulary after the first MLP, which is computed when first asked for, and kept."""
        self.make_mlp_vocabulary(lambda _: None)
        assert self._mlp_vocabulary is not None
        return self._mlp_vocabulary

    def make_mlp_vocabulary(self, tick: Callable[[float], None]) -> None:
        """Compute the vocabulary after the first MLP, if it does not exist yet. `tick` is called with the share that is
        done; if it raises an error, the next call continues where this one stopped."""
        if self._mlp_vocabulary is not None:
            return
        w = self.w
        while self._rows_done < len(w.W_E):
            tick(self._rows_done / len(w.W_E))
            rows = slice(self._rows_done, self._rows_done + MLP_TOKENS)
            self._rows[rows] = w.after_first_mlp(w.W_E[rows])
            self._rows_done = rows.stop
        self._mlp_vocabulary = Embedding.of(self._rows, w.device)

    @cached_property
    def _rows(self) -> torch.Tensor:
        return torch.empty_like(self.w.W_E)

    def pairs(self, ask: PairsReadingAsk, step: Step) -> PairsReadingAnswer:
        """Find the top pairs of a head's matrix W_V W_O or W_Q W_Kᵀ."""
        from lexiscope.precompute.project.pairs.head_pairs import (  # here, so that numba compiles only for heads
            Matrix,
            top_pairs,
        )

        s = self.w.shape
        check_number("layer", ask.layer, s.n_layers)
        check_number("head", ask.head, s.n_heads)
        left, right = FACTORS[ask.matrix]
        step("vocabulary", 0.0)
        if ask.reading == "mlp":
            self.make_mlp_vocabulary(lambda share: step("vocabulary", share * SHARE_BEFORE_SEARCH))
        source, target = self._vocabulary(left, ask), self._vocabulary(right, ask)
        W_left, W_right = self._factor(left, ask), self._factor(right, ask)
        step("pairs", SHARE_BEFORE_SEARCH)
        matrix = Matrix(source, target, W_left, W_right, _product(source, W_left), _product(target, W_right))
        top, bottom = top_pairs(matrix, self.masks, ask.lens, ask.n)[ask.preset]
        return {"top": _scored_pairs(top), "bottom": _scored_pairs(bottom)}

    @cached_property
    def masks(self) -> Masks:
        tokens = token_bytes(self.tokenizer_file, self.w.shape.d_vocab)
        return Masks.of(distinct_classes(tokens), whole_words(tokens))

    def _vocabulary(self, kind: str, ask: PairsReadingAsk) -> Embedding:
        if ask.reading == "mlp":
            return self.mlp_vocabulary
        return (self.words.reads if SIDES[kind] == "reads" else self.words.writes).embedding

    def _factor(self, kind: str, ask: PairsReadingAsk) -> Float32:
        """Return the head's vectors of a kind as columns (d_model, d_head), with the model's norm folded in if the
        reading is `norm`."""
        first = self.w.shape.row(kind, ask.head, 0)
        rows = slice(first, first + self.w.shape.d_head)
        if ask.reading == "norm":
            return np.ascontiguousarray(self.folded(kind, ask.layer, rows).T)
        return np.ascontiguousarray(self.w.vectors(kind, ask.layer)[rows].cpu().numpy().T)


def _answer(projector: Projector, vector: Float32, ask: ReadingAsk) -> ReadingAnswer:
    v = torch.from_numpy(np.ascontiguousarray(vector))[None].to(projector.embedding.on_device.device)
    lens = LENSES.index(ask.lens)
    ids, scores = (np.empty((1, 2, 2, projector.k), kind) for kind in (np.uint32, np.float32))
    projector.select(v, v @ projector.embedding.on_device.T, ids, scores)
    top, bottom = (
        scored(tokens[: ask.k].tolist(), numbers[: ask.k].tolist())
        for tokens, numbers in zip(ids[0, lens], scores[0, lens], strict=True)
    )
    return {"top": top, "bottom": bottom}


def _scored_pairs(found: PairList) -> list[TokenPair]:
    pairs = zip(found.pairs.tolist(), found.scores.tolist(), strict=True)
    return [{"from": {"id": source}, "to": {"id": target}, "score": score} for (source, target), score in pairs]


def _product(embedding: Embedding, W: Float32) -> torch.Tensor:
    """Return the product (d_head, d_vocab) of W (d_model, d_head) with the embeddings of all tokens."""
    return torch.from_numpy(np.ascontiguousarray(W.T)).to(embedding.on_device.device) @ embedding.on_device.T
