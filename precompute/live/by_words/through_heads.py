"""Send words through heads: compute what a head looks for with a word (e W_Q W_Kᵀ), and what it writes after attending
to the word (e W_V W_O).

e is the embedding of the word, the mean of its pieces; for a group of words, the mean of theirs. Norms, biases and
positions are left out, but for what the module source adds. Under the lens cosine, embeddings are centred and set to
length one on both sides, as in the lists of pairs.
"""

from collections.abc import Callable, Iterator, Sequence

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from lexiscope.precompute.live.by_words.source import Source
from lexiscope.precompute.live.first_tokens import exact_lists
from lexiscope.precompute.live.parameters import LoadedParameters, check_number
from lexiscope.precompute.live.wire.answers import HeadReading, ScoredToken, ThroughHeadsAnswer, WordUsed
from lexiscope.precompute.live.wire.asks import ThroughHeadsAsk
from lexiscope.precompute.live.wire.fields import End, Lens, unpack_tokens
from lexiscope.precompute.live.wire.grammar import Word
from lexiscope.precompute.live.words import Vocabulary, Words
from lexiscope.precompute.project.embedding import Float64


def through_heads(
    w: LoadedParameters, words: Words, ask: ThroughHeadsAsk, source: Source, check: Callable[[], None] = lambda: None
) -> ThroughHeadsAnswer:
    """Send words through heads. `check` is called between products; an error that it raises ends the work."""
    for layer in ask.layers:
        check_number("layer", layer, w.shape.n_layers)
    check_number("head", ask.head, w.shape.n_heads)
    groups = [[_used(words, word) for word in group] for group in ask.words]
    x = np.stack([mean_vector(source, group) for group in groups])  # (groups, d_model)
    only = unpack_tokens(ask.only, w.shape.d_vocab)
    heads = range(w.shape.n_heads) if ask.head is None else range(ask.head, ask.head + 1)
    readings = head_readings(w, words, x, ask.layers, heads, ask.lens, ask.k, ask.end, check, only, source.into)
    return {"groups": groups, "heads": readings}


def head_readings(
    w: LoadedParameters, words: Words, x: Float64, layers: Sequence[int], heads: range, lens: Lens, k: int,
    end: End = "top", check: Callable[[], None] = lambda: None, only: NDArray[np.bool_] | None = None,
    into: Callable[[int, Float64], Float64] = lambda _, x: x,
) -> list[list[HeadReading]]:  # fmt: skip
    """Return the first tokens of x W_V W_O, by W_U, and of x W_Q W_Kᵀ, by W_E, for each vector of x (n, d_model) and
    each head; `into` returns what a layer is given of x. A list is empty where the product is 0, as for an unchanged
    head of a difference."""

    def lists(matrix: str, vocabulary: Vocabulary) -> Iterator[list[ScoredToken]]:
        outputs = []
        for layer in layers:
            check()
            outputs.append(head_outputs(w, matrix, layer, into(layer, x))[heads.start : heads.stop])
        vectors = np.concatenate(outputs).swapaxes(0, 1).reshape(-1, w.shape.d_model)  # (n * layers * heads, d_model)
        found = exact_lists(vocabulary, vectors, lens, k, end, check, only)
        return iter([tokens if vector.any() else [] for tokens, vector in zip(found, vectors, strict=True)])

    writes, seeks = lists("vo", words.writes), lists("qk", words.reads)

    def reading(layer: int, head: int) -> HeadReading:
        written, sought = next(writes), next(seeks)
        return HeadReading(
            layer=layer,
            head=head,
            writes=written,
            seeks=sought,
            writes_alike=words.writes.alike([token["id"] for token in written]),
            seeks_alike=words.reads.alike([token["id"] for token in sought]),
        )

    return [[reading(layer, head) for layer in layers for head in heads] for _ in x]


def head_outputs(w: LoadedParameters, matrix: str, layer: int, x: Float64) -> Float64:
    """Return the products (n_heads, n, d_model), on the CPU, of x (n, d_model) with the matrix W_V W_O (`vo`) or W_Q
    W_Kᵀ (`qk`) of each head."""
    terms = [sign * _through(left, right, w.shape.n_heads, x) for sign, left, right in w.factors(matrix, layer)]
    return np.asarray(np.sum(terms, axis=0))


def _through(left: Tensor, right: Tensor, n_heads: int, x: Float64) -> Float64:
    """Return the products of x (n, d_model) with left[h]ᵀ right[h] of each head h; grouped heads share a left or a
    right matrix."""
    first, second = (factor.cpu().numpy().astype(np.float64) for factor in (left, right))
    z = np.split(x @ first.reshape(-1, first.shape[2]).T, len(first), axis=1)  # (n, d_head) each
    return np.stack([z[h * len(first) // n_heads] @ second[h * len(second) // n_heads] for h in range(n_heads)])


def _used(words: Words, word: Word) -> WordUsed:
    if word.token is None:
        return word_used(words, word.word)
    check_number("token", word.token, len(words.reads.W))
    return {"word": word.word, "tokens": [{"id": word.token}]}


def word_used(words: Words, word: str) -> WordUsed:
    return {"word": word, "tokens": [{"id": token} for token in words.tokens(word)]}


def ids_of(word: WordUsed) -> list[int]:
    return [token["id"] for token in word["tokens"]]


def mean_vector(source: Source, group: Sequence[WordUsed]) -> Float64:
    """Return the mean vector of a group of words (d_model,), under the lens."""
    e = np.mean([source.vocabulary.word(ids_of(word)) for word in group], axis=0)
    return source.seen(np.asarray(e), " + ".join(word["word"] for word in group))
