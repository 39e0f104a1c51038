"""Make other lists (readings) of a stored vector or of a head's pairs: with the model's norms, with the vocabulary
after the first block or its MLP, with the pseudo-inverse, or of some tokens only. They are as exact as stored lists.

- norm: includes norms, which stored lists leave out. A reading vector v meets the stream through its layer's norm, for
  which a token's embedding e is the stream here: the score is v · norm(e) times d, the norm's divisor for e. This is
  v · (g ∘ c(e) + d b), with the norm's gain g, its bias b if it has one, and c(e) = e - mean of e if it centres
  (LayerNorm). So tokens keep the lengths of their embeddings, as in stored lists, and b has the weight that it has
  beside this e in the model. Pairs have this on each side that reads: (g ∘ c(e_s) + d_s b) M (g ∘ c(e_t) + d_t b)ᵀ.
  Under the lens cosine the bias is left out: the lens takes off what all tokens share before the norm, and b is shared.
  A writing vector meets the vocabulary through the final norm: it is centred if this norm centres, and multiplied with
  its gain. This norm's bias is left out, under both lenses: a vector is written with any coefficient, so there is no
  scale on which one number b · u_t per token could be added to its scores.
- first: every token's embedding is replaced by what the model makes of a text of this token alone after its first
  block, at the first position: attention to itself, FF, norms, biases and residuals, as `transformers` computes them.
  Then lists are made as stored ones, of writing vectors, too; of pairs the first tokens, the second, or both.
- mlp: every token's embedding e is replaced by e + MLP_0(norm(e)), the first layer's FF with its norm and biases; then
  lists are made as stored ones. W_E is always used, for writing vectors, too.
- pseudo: scores of a vector v are v E⁺ instead of v Eᵀ: the smallest coefficients with which the tokens' embeddings add
  up to v. With the matrix W whose rows are embeddings, W_E or W_U as in stored lists, v E⁺ = v (Wᵀ W)⁺ Wᵀ: so v (Wᵀ W)⁺
  is compared as a stored list compares v. Under the lens cosine a coefficient less the mean of all is then divided by
  |e_t - mean|. Pairs have this on both sides.
- full: the list is made as the stored one. It differs only if an ask names the tokens that may stand in lists: then it
  is as long as it was asked for, while a stored list may hold few of these tokens.
"""

from collections.abc import Callable
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import Literal

import numpy as np
import torch
from numpy.typing import NDArray

from lexiscope.precompute.errors import NotFound
from lexiscope.precompute.index.tokens import distinct_classes, token_bytes, whole_words
from lexiscope.precompute.live.first_tokens import exact_lists
from lexiscope.precompute.live.parameters import check_number
from lexiscope.precompute.live.states import states_after
from lexiscope.precompute.live.weights import Norm, Weights
from lexiscope.precompute.live.wire.answers import PairsReadingAnswer, ReadingAnswer, TokenPair
from lexiscope.precompute.live.wire.asks import PairsReadingAsk, ReadingAsk
from lexiscope.precompute.live.wire.fields import unpack_tokens
from lexiscope.precompute.live.words import Vocabulary, Words
from lexiscope.precompute.project.embedding import Embedding, Float64, inverse_gram
from lexiscope.precompute.project.pairs.leaderboard import PairList
from lexiscope.precompute.project.pairs.masks import Masks
from lexiscope.precompute.shape import FACTORS, SIDES

TOKENS_AT_ONCE = 4096  # tokens that go through the first block, its MLP or a norm at once
SHARE_BEFORE_SEARCH = 0.5  # share of a pair search's work that comes before the search itself, for the progress bar

Step = Callable[[str, float], None]  # the stage, and which share of all work is done; what it raises ends the work


class MadeVocabulary:
    """A vocabulary that is computed from W_E when it is first asked for, and kept."""

    def __init__(self, w: Weights, make: Callable[[slice], torch.Tensor]) -> None:
        self._w, self._make = w, make
        self._rows_done = 0
        self._vocabulary: Vocabulary | None = None

    @property
    def is_made(self) -> bool:
        return self._vocabulary is not None

    def get(self, tick: Callable[[float], None] = lambda _: None) -> Vocabulary:
        """Return the vocabulary. `tick` is called with the share that is done; if it raises an error, the next call
        continues where this one stopped."""
        if self._vocabulary is None:
            d_vocab = len(self._w.W_E)
            while self._rows_done < d_vocab:
                tick(self._rows_done / d_vocab)
                rows = slice(self._rows_done, min(self._rows_done + TOKENS_AT_ONCE, d_vocab))
                self._rows[rows] = self._make(rows)
                self._rows_done = rows.stop
            self._vocabulary = Vocabulary.of(self._rows)
            del self._rows
        return self._vocabulary

    @cached_property
    def _rows(self) -> torch.Tensor:
        return torch.empty_like(self._w.W_E)


class Readings:
    def __init__(self, w: Weights, words: Words, tokenizer_file: Path) -> None:
        self.w, self.words, self.tokenizer_file = w, words, tokenizer_file
        self.vocabularies = {
            "first": MadeVocabulary(w, self._after_first_block),
            "mlp": MadeVocabulary(w, lambda rows: w.after_first_mlp(w.W_E[rows])),
        }
        self._inverses: dict[int, Float64] = {}  # of the Gram matrices of vocabularies, by their ids
        self._with_divisors: dict[tuple[bool, float], Vocabulary] = {}

    @property
    def made(self) -> set[str]:
        """Return the readings for which nothing has to be computed of the whole vocabulary any more."""
        made = {name for name, vocabulary in self.vocabularies.items() if vocabulary.is_made}
        inverses = 1 if self.words.reads is self.words.writes else 2
        return made | ({"pseudo"} if len(self._inverses) == inverses else set())

    def answer(self, ask: ReadingAsk, step: Step = lambda *_: None) -> ReadingAnswer:
        s = self.w.shape
        if ask.kind not in s.kinds:
            raise NotFound(f"there are no vectors of kind {ask.kind!r}, only {', '.join(s.kinds)}")
        check_number("layer", ask.layer, s.n_layers)
        check_number(ask.kind, ask.index, s.count(ask.kind))
        one, only = slice(ask.index, ask.index + 1), unpack_tokens(ask.only, s.d_vocab)
        v, vocabulary = self._read(ask.kind, one, ask, lambda share: step("vocabulary", share))
        (top,) = exact_lists(vocabulary, v, ask.lens, ask.k, "top", only=only)
        (bottom,) = exact_lists(vocabulary, v, ask.lens, ask.k, "bottom", only=only)
        return {"top": top, "bottom": bottom}

    def _read(
        self, kind: str, rows: slice, ask: ReadingAsk | PairsReadingAsk, tick: Callable[[float], None]
    ) -> tuple[Float64, Vocabulary]:
        """Return vectors of a kind, (n, d_model) or one number longer, and the vocabulary that they are compared
        with."""
        v = self.w.vectors(kind, ask.layer)[rows].cpu().numpy().astype(np.float64)
        stored = self.words.reads if SIDES[kind] == "reads" else self.words.writes
        match ask.reading:
            case "first" | "mlp":
                return v, self.vocabularies[ask.reading].get(tick)
            case "pseudo":
                return v @ self._inverse_gram(stored, tick), stored
            case "norm" if SIDES[kind] == "writes":
                return self.w.norm_numbers("final").scaled(v), stored
            case "norm":
                norm = self.w.norm_numbers("ff" if kind.startswith("ff_") else "attention", ask.layer)
                if norm.exact_bias is None or ask.lens == "cosine":
                    return norm.folded(v), stored
                return np.column_stack((norm.folded(v), v @ norm.exact_bias)), self._beside_divisors(norm)
            case _:
                return v, stored

    def words_of(self, source: Literal["first", "pseudo"]) -> Words:
        """Return the words with other vocabularies in place of W_E and W_U: after the first block, or E⁺ of each."""
        if source == "first":
            after = self.vocabularies["first"].get()
            return replace(self.words, reads=after, writes=after)
        reads = self._pseudo_inverse(self.words.reads)
        tied = self.words.writes is self.words.reads
        return replace(self.words, reads=reads, writes=reads if tied else self._pseudo_inverse(self.words.writes))

    def _pseudo_inverse(self, vocabulary: Vocabulary) -> Vocabulary:
        """Return E⁺, whose rows W (Wᵀ W)⁺ (d_vocab, d_model) are rounded to float32."""
        inverse = torch.from_numpy(self._inverse_gram(vocabulary, lambda _: None))
        blocks = [rows.cpu().double() @ inverse for rows in torch.split(vocabulary.W, TOKENS_AT_ONCE)]
        return Vocabulary.of(torch.cat([block.to(vocabulary.W) for block in blocks]))

    def _after_first_block(self, rows: slice) -> torch.Tensor:
        tokens = torch.arange(rows.start, rows.stop, device=self.w.device)[:, None]
        return states_after(self.w, tokens, layer=0)[:, 0]

    def _inverse_gram(self, vocabulary: Vocabulary, tick: Callable[[float], None]) -> Float64:
        if id(vocabulary) not in self._inverses:
            self._inverses[id(vocabulary)] = inverse_gram(vocabulary.embedding.rows, lambda: tick(0.0))
        return self._inverses[id(vocabulary)]

    def _beside_divisors(self, norm: Norm) -> Vocabulary:
        """Return W_E with one more column, by which the norm divides each token: (d_vocab, d_model + 1)."""
        key = norm.centres, norm.eps
        if key not in self._with_divisors:
            W = self.words.reads.W
            divisors = [norm.divisors(rows.cpu().numpy().astype(np.float64)) for rows in torch.split(W, TOKENS_AT_ONCE)]
            column = torch.from_numpy(np.concatenate(divisors)).to(W)
            self._with_divisors[key] = Vocabulary.of(torch.column_stack((W, column)))
        return self._with_divisors[key]

    def pairs(self, ask: PairsReadingAsk, step: Step) -> PairsReadingAnswer:
        """Find the top pairs of a head's matrix W_V W_O or W_Q W_Kᵀ."""
        from lexiscope.precompute.project.pairs.head_pairs import (  # here, so that numba compiles only for heads
            Matrix,
            top_pairs,
        )

        s = self.w.shape
        check_number("layer", ask.layer, s.n_layers)
        check_number("head", ask.head, s.n_heads)
        step("vocabulary", 0.0)
        (W_left, source), (W_right, target) = (
            self._side(kind, replaced, ask, lambda share: step("vocabulary", share * SHARE_BEFORE_SEARCH))
            for kind, replaced in zip(FACTORS[ask.matrix], (ask.side != "target", ask.side != "source"), strict=True)
        )
        masks = self.masks
        only = unpack_tokens(ask.only, s.d_vocab)
        tokens = np.arange(s.d_vocab) if only is None else np.flatnonzero(only)
        if not len(tokens):
            return {"top": [], "bottom": []}
        if only is not None:  # the search goes over the corner of the matrix that these tokens have
            source, target = source.only(tokens), target.only(tokens)
            masks = Masks.of(masks.surface[tokens], masks.words[tokens])
        step("pairs", SHARE_BEFORE_SEARCH)
        matrix = Matrix(source, target, W_left, W_right, _product(source, W_left), _product(target, W_right))
        top, bottom = top_pairs(matrix, masks, ask.lens, ask.n)[ask.preset]
        return {"top": _scored_pairs(top, tokens), "bottom": _scored_pairs(bottom, tokens)}

    @cached_property
    def masks(self) -> Masks:
        tokens = token_bytes(self.tokenizer_file, self.w.shape.d_vocab)
        return Masks.of(distinct_classes(tokens), whole_words(tokens))

    def _side(
        self, kind: str, replaced: bool, ask: PairsReadingAsk, tick: Callable[[float], None]
    ) -> tuple[Float64, Embedding]:
        """Return the head's vectors of a kind as columns (d_model, d_head), and the tokens that they are compared with;
        these are stored ones if the ask replaces only those of the other side by `first`."""
        first = self.w.shape.row(kind, ask.head, 0)
        rows = slice(first, first + self.w.shape.d_head)
        kept = ask.reading == "first" and not replaced
        vectors, vocabulary = self._read(kind, rows, ask.model_copy(update={"reading": "full"}) if kept else ask, tick)
        return np.ascontiguousarray(vectors.T), vocabulary.embedding


def _scored_pairs(found: PairList, tokens: NDArray[np.intp]) -> list[TokenPair]:
    """Return pairs of numbers among `tokens` as pairs of tokens."""
    pairs = zip(tokens[found.pairs].tolist(), found.scores.tolist(), strict=True)
    return [{"from": {"id": source}, "to": {"id": target}, "score": score} for (source, target), score in pairs]


def _product(embedding: Embedding, W: Float64) -> torch.Tensor:
    """Return the product (d_head, d_vocab) of W (d_model, d_head) with the embeddings of all tokens."""
    return (
        torch.from_numpy(np.ascontiguousarray(W.T, np.float32)).to(embedding.on_device.device) @ embedding.on_device.T
    )
