"""Make other lists (readings) of a stored vector or of a head's pairs: with the model's norms folded in, with the
vocabulary after the first MLP, or of some tokens only. They are as exact as stored lists.

- norm: includes norms, which stored lists leave out. A reading vector v meets the stream through its layer's norm: v is
  multiplied with the norm's gain, and centred if the norm centres (LayerNorm). What a writing vector adds meets the
  vocabulary through the final norm: it is centred if this norm centres, and multiplied with its gain. Divisors and
  biases of norms are left out.
- mlp: every token's embedding e is replaced by e + MLP_0(norm(e)), the first layer's FF with its norm and biases; then
  lists are made as stored ones. W_E is always used, for writing vectors, too.
- full: the list is made as the stored one. It differs only if an ask names the tokens that may stand in lists: then it
  is as long as it was asked for, while a stored list may hold few of these tokens.
"""

from collections.abc import Callable
from functools import cached_property
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray

from lexiscope.precompute.errors import NotFound
from lexiscope.precompute.index.tokens import distinct_classes, token_bytes, whole_words
from lexiscope.precompute.live.first_tokens import exact_lists
from lexiscope.precompute.live.parameters import check_number
from lexiscope.precompute.live.weights import Weights
from lexiscope.precompute.live.wire.answers import PairsReadingAnswer, ReadingAnswer, TokenPair
from lexiscope.precompute.live.wire.asks import PairsReadingAsk, ReadingAsk
from lexiscope.precompute.live.wire.fields import unpack_tokens
from lexiscope.precompute.live.words import Vocabulary, Words
from lexiscope.precompute.project.embedding import Embedding, Float32, Float64
from lexiscope.precompute.project.pairs.leaderboard import PairList
from lexiscope.precompute.project.pairs.masks import Masks
from lexiscope.precompute.shape import FACTORS, SIDES

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
            return _answer(self._stored_as(ask.kind), self.folded(ask.kind, ask.layer, ask.index), ask)
        vector = self.w.vectors(ask.kind, ask.layer)[ask.index].cpu().numpy()
        return _answer(self._after_mlp if ask.reading == "mlp" else self._stored_as(ask.kind), vector, ask)

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

    def _stored_as(self, kind: str) -> Vocabulary:
        """Return the vocabulary with which the stored lists of a kind are made."""
        return self.words.reads if SIDES[kind] == "reads" else self.words.writes

    @cached_property
    def _after_mlp(self) -> Vocabulary:
        return Vocabulary.of_embedding(self.mlp_vocabulary)

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
        source, target, masks = self._vocabulary(left, ask), self._vocabulary(right, ask), self.masks
        only = unpack_tokens(ask.only, s.d_vocab)
        tokens = np.arange(s.d_vocab) if only is None else np.flatnonzero(only)
        if not len(tokens):
            return {"top": [], "bottom": []}
        if only is not None:  # the search goes over the corner of the matrix that these tokens have
            source, target = source.only(tokens), target.only(tokens)
            masks = Masks.of(masks.surface[tokens], masks.words[tokens])
        W_left, W_right = self._factor(left, ask), self._factor(right, ask)
        step("pairs", SHARE_BEFORE_SEARCH)
        matrix = Matrix(source, target, W_left, W_right, _product(source, W_left), _product(target, W_right))
        top, bottom = top_pairs(matrix, masks, ask.lens, ask.n)[ask.preset]
        return {"top": _scored_pairs(top, tokens), "bottom": _scored_pairs(bottom, tokens)}

    @cached_property
    def masks(self) -> Masks:
        tokens = token_bytes(self.tokenizer_file, self.w.shape.d_vocab)
        return Masks.of(distinct_classes(tokens), whole_words(tokens))

    def _vocabulary(self, kind: str, ask: PairsReadingAsk) -> Embedding:
        if ask.reading == "mlp":
            return self.mlp_vocabulary
        return self._stored_as(kind).embedding

    def _factor(self, kind: str, ask: PairsReadingAsk) -> Float32:
        """Return the head's vectors of a kind as columns (d_model, d_head), with the model's norm folded in if the
        reading is `norm`."""
        first = self.w.shape.row(kind, ask.head, 0)
        rows = slice(first, first + self.w.shape.d_head)
        if ask.reading == "norm":
            return np.ascontiguousarray(self.folded(kind, ask.layer, rows).T)
        return np.ascontiguousarray(self.w.vectors(kind, ask.layer)[rows].cpu().numpy().T)


def _answer(vocabulary: Vocabulary, vector: Float32, ask: ReadingAsk) -> ReadingAnswer:
    v, only = vector[None].astype(np.float64), unpack_tokens(ask.only, len(vocabulary.W))
    (top,) = exact_lists(vocabulary, v, ask.lens, ask.k, "top", only=only)
    (bottom,) = exact_lists(vocabulary, v, ask.lens, ask.k, "bottom", only=only)
    return {"top": top, "bottom": bottom}


def _scored_pairs(found: PairList, tokens: NDArray[np.intp]) -> list[TokenPair]:
    """Return pairs of numbers among `tokens` as pairs of tokens."""
    pairs = zip(tokens[found.pairs].tolist(), found.scores.tolist(), strict=True)
    return [{"from": {"id": source}, "to": {"id": target}, "score": score} for (source, target), score in pairs]


def _product(embedding: Embedding, W: Float32) -> torch.Tensor:
    """Return the product (d_head, d_vocab) of W (d_model, d_head) with the embeddings of all tokens."""
    return torch.from_numpy(np.ascontiguousarray(W.T)).to(embedding.on_device.device) @ embedding.on_device.T
