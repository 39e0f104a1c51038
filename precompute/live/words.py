"""Turn words into vectors: find which tokens stand for a word, and take the mean of their embeddings, in float64."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import torch
from numpy.typing import NDArray
from tokenizers import Tokenizer

from lexiscope.precompute.errors import BadRequest, NotFound
from lexiscope.precompute.index.tokens import MASKS
from lexiscope.precompute.live.parameters import LoadedParameters
from lexiscope.precompute.live.seed_words import find_seed
from lexiscope.precompute.live.texts import encode
from lexiscope.precompute.live.wire.fields import Lens
from lexiscope.precompute.live.wire.grammar import Spelling
from lexiscope.precompute.project.embedding import (
    ROUNDING_SHARE,
    SMALLEST_NORM,
    Embedding,
    Float64,
    mean_and_covariance,
)
from lexiscope.precompute.project.moments import CONSTANT


@dataclass(frozen=True)
class Vocabulary:
    """One vocabulary matrix, W_E or W_U, with its mean row and the norms of its rows."""

    embedding: Embedding  # W on the device, and its rows on the CPU; one memory where that is the device
    norm: torch.Tensor  # (d_vocab,) |e_t|, float32
    inverse: torch.Tensor  # (d_vocab,) 1 / |e_t - mean|, float32; 0 where there is no direction
    exact_inverse: Float64  # (d_vocab,)

    @classmethod
    def of(cls, W: torch.Tensor) -> "Vocabulary":
        return cls.of_embedding(Embedding.of(W, W.device))

    @classmethod
    def of_embedding(cls, e: Embedding) -> "Vocabulary":
        norm, inverse = (torch.from_numpy(x).float().to(e.on_device.device) for x in (e.norm, e.inverse_norm))
        return cls(e, norm, inverse, e.inverse_norm)

    @property
    def W(self) -> torch.Tensor:
        return self.embedding.on_device  # (d_vocab, d_model)

    @property
    def mean(self) -> Float64:
        return self.embedding.mean  # (d_model,)

    def word(self, tokens: Sequence[int]) -> Float64:
        """Return the mean embedding (d_model,) of a word's tokens, not centred."""
        return np.asarray(self.embedding.rows[list(tokens)].astype(np.float64).mean(axis=0))

    def alike(self, tokens: Sequence[int]) -> float | None:
        """Return the mean cosine between the centred embeddings of tokens; None if fewer than two have a direction."""
        ids = list(tokens)
        units = (self.embedding.rows[ids] - self.mean) * self.exact_inverse[ids, None]  # (n, d_model)
        count = np.count_nonzero(self.exact_inverse[ids])
        # |u_1 + ... + u_n|² = n + sum over ordered pairs of u_i · u_j
        return float((np.square(units.sum(axis=0)).sum() - count) / (count * (count - 1))) if count > 1 else None

    def direction(self, e: Float64, name: str) -> Float64:
        """Centre e (d_model,) and scale it to length one, as the lens cosine does. Raise BadRequest, which mentions
        `name`, if it has no direction."""
        centred = e - self.mean
        length = np.linalg.norm(centred)
        if length <= ROUNDING_SHARE * (np.linalg.norm(e) + np.linalg.norm(self.mean)) + SMALLEST_NORM:
            raise BadRequest(f"{name!r} has no direction: it stands at the mean of all tokens. Use the lens dot.")
        return np.asarray(centred / length)

    @cached_property
    def covariance(self) -> Float64:
        """Return the covariance of all tokens' embeddings, (d_model, d_model): the scores v · e of a vector v have the
        variance vᵀ covariance v."""
        return mean_and_covariance(lambda block: self.centred(block, "dot"), len(self.W))[1]

    @cached_property
    def of_directions(self) -> tuple[Float64, Float64]:
        """Return the mean and the covariance of what the lens cosine multiplies vectors with: centred embeddings, set
        to length one."""
        return mean_and_covariance(lambda block: self.centred(block, "cosine"), len(self.W))

    def centred(self, tokens: slice | NDArray[np.int64], lens: Lens) -> Float64:
        """Return the centred embeddings of tokens, (n, d_model); under the lens cosine, set to length one."""
        rows = self.embedding.rows[tokens] - self.mean
        return rows if lens == "dot" else rows * self.exact_inverse[tokens, None]

    def deviations(self, tokens: NDArray[np.int64], lens: Lens) -> Float64:
        """Return vectors (tokens, d_model) whose products with a vector v are by how much v's scores of these tokens
        are above its mean score."""
        rows = self.centred(tokens, lens)
        return rows if lens == "dot" else rows - self.of_directions[0]

    def spreads(self, vectors: Float64, lens: Lens = "dot") -> Float64:
        """Return the standard deviations (n,) over all tokens of the scores of vectors (n, d_model); 0 where all scores
        are equal up to rounding."""
        covariance = self.covariance if lens == "dot" else self.of_directions[1]
        variances = np.einsum("nd,nd->n", vectors @ covariance, vectors)
        spreads = np.sqrt(np.maximum(variances, 0))
        norms = self.embedding.norm * (1 if lens == "dot" else self.exact_inverse)
        size = np.sqrt(np.mean(norms**2))
        rounding = CONSTANT * size * np.linalg.norm(vectors, axis=1) + SMALLEST_NORM
        return np.where(spreads > rounding, spreads, 0.0)


@dataclass(frozen=True)
class Words:
    tokenizer: Tokenizer
    reads: Vocabulary  # W_E
    writes: Vocabulary  # W_U
    causal: bool
    padding: int  # the token that fills up the shorter prompts of a batch
    bos: int | None = None  # the model's own first token, by the checkpoint's files

    @classmethod
    def of(cls, w: LoadedParameters, tokenizer: Tokenizer) -> "Words":
        reads = Vocabulary.of(w.W_E)
        writes = reads if w.shape.tied else Vocabulary.of(w.W_U)
        return cls(tokenizer, reads, writes, w.shape.causal, w.padding, w.bos(tokenizer))

    def usual_position(self, tokens: tuple[int, ...]) -> int:
        """Return the position that is shown unless another is chosen: a decoder's last position, which predicts the
        next token; an encoder's mask token or, without one, the last token that the tokenizer did not add itself."""
        if self.causal:
            return len(tokens) - 1
        masks = [at for at, token in enumerate(tokens) if self.special.get(token) in MASKS]
        text = [at for at, token in enumerate(tokens) if token not in self.special]
        return masks[0] if masks else text[-1] if text else 0

    @cached_property
    def special(self) -> dict[int, str]:
        return {number: token.content for number, token in self.tokenizer.get_added_tokens_decoder().items()}

    def tokens(self, word: str, spelling: Spelling = "usual") -> tuple[int, ...]:
        """Return the tokens that stand for a word."""
        tokens = find_seed(self.tokenizer, word, spelling=spelling).tokens
        if wrong := [token for token in tokens if token >= len(self.reads.W)]:
            raise NotFound(f"token {wrong[0]} of {word!r} has no embedding: the model has {len(self.reads.W)}")
        return tokens

    @cached_property
    def put_first(self) -> int | None:
        """Return the token that the tokenizer itself puts in front of every text, if it does."""
        before, _, _ = encode(self.tokenizer, "a")
        return before[0] if before else None

    def prompt(self, text: str, bos: int = 0) -> tuple[int, ...]:
        """Return the tokens of a text as the model is given it, with those that the tokenizer adds itself. With `bos`,
        put the model's own first token in front unless the tokenizer does."""
        try:
            text.encode("utf-8")
        except UnicodeEncodeError:
            raise BadRequest("the prompt is no text (it is not UTF-8)") from None
        tokens = tuple(self.tokenizer.encode(text).ids)
        if bos and self.put_first is None:
            if self.bos is None:
                raise BadRequest("this model has no first token of its own (no bos_token_id): leave out bos")
            tokens = self.bos, *tokens
        if wrong := [token for token in tokens if token >= len(self.reads.W)]:
            raise BadRequest(f"token {wrong[0]} of the prompt has no embedding: the model has {len(self.reads.W)}")
        if not tokens:
            raise BadRequest("the prompt has no tokens: give a text such as The capital of France is")
        return tokens
