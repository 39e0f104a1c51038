"""Search by seed words with weights: find the vectors of any kind that are about these words, the tokens near them, and
what heads make of them. All asks of a batch share one product for each kind of vectors; scores are float64."""

from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cached_property

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from lexiscope.precompute.errors import BadRequest, LexiscopeError, NotFound
from lexiscope.precompute.live.by_words.nearest import CoarseVocabulary
from lexiscope.precompute.live.by_words.through_heads import head_readings, ids_of
from lexiscope.precompute.live.first_tokens import ListEnd, first_tokens
from lexiscope.precompute.live.parameters import LoadedParameters
from lexiscope.precompute.live.proposals import error_of_products, exact_products, proposals
from lexiscope.precompute.live.seed_ranking import inverse_lengths, weighted_mean
from lexiscope.precompute.live.vocabulary import scored
from lexiscope.precompute.live.wire.answers import HeadReading, ScoredToken, SeedResult, SeedsAnswer, TermUsed
from lexiscope.precompute.live.wire.asks import SeedsAsk, VectorPlace
from lexiscope.precompute.live.words import Vocabulary, Words
from lexiscope.precompute.project.embedding import Float64
from lexiscope.precompute.shape import DIRECTION_KINDS, SIDES

NEAREST_TO_SEEDS = 12  # tokens nearest to the seed words that an answer has
TOKENS_OF_HEAD = 5  # tokens that an answer has of each head
LARGEST_PRODUCT = 2**26  # numbers of a product: asks that do not fit are searched in another batch

SortableResult = tuple[float, str, int, int, list[float]]  # minus the score, kind, layer, index, scores of the terms


class Query:
    """The seed words of one ask as vectors: for W_E and for W_U, a vector for each term (a word with its weight), and
    their weighted mean q.

    q = sum of weight * (mean of the word's pieces - mean of all tokens) / sum of |weight|
    Under the lens cosine each difference in brackets is set to length one, and a vector's score is divided by the
    vector's length.
    """

    def __init__(self, words: Words, w: LoadedParameters, ask: SeedsAsk) -> None:
        for kind in ask.kind:
            if kind not in w.shape.kinds:
                raise NotFound(f"there are no vectors of kind {kind!r}, only {', '.join(w.shape.kinds)}")
        self.ask, self.kinds = ask, tuple(dict.fromkeys(ask.kind))
        self.used = [
            TermUsed(word=t.word, weight=t.weight, tokens=[{"id": token} for token in words.tokens(t.word, t.spelling)])
            for t in ask.words
        ]
        if wanted := ask.rank_of:
            _check_vector(w, wanted, self.kinds)
        self.weights = np.array([term.weight for term in ask.words])
        if not np.abs(self.weights).sum() > 0:
            raise BadRequest("all seeds have the weight 0: give at least one another weight")
        self.terms = {"reads": self._terms(words.reads)}  # (terms, d_model) each
        self.terms["writes"] = self.terms["reads"] if words.reads is words.writes else self._terms(words.writes)
        self.q = {side: weighted_mean(terms, self.weights) for side, terms in self.terms.items()}
        if not self.q["reads"].any():
            raise BadRequest("the seed has no direction: it stands at the mean of all tokens. Give another word.")

    def _terms(self, vocabulary: Vocabulary) -> Float64:
        words = [vocabulary.word(ids_of(term)) for term in self.used]
        if self.ask.lens == "cosine":
            return np.stack([vocabulary.direction(e, term["word"]) for e, term in zip(words, self.used, strict=True)])
        return np.stack([e - vocabulary.mean for e in words])


class SeedSearch:
    def __init__(self, w: LoadedParameters, words: Words) -> None:
        self.w, self.words = w, words
        self.share, self.least = error_of_products(w.shape.d_model)
        self._norms: dict[str, Tensor] = {}
        self._inverse_lengths: dict[str, tuple[Tensor, Float64]] = {}

    def norms(self, kind: str) -> Tensor:
        """Return the lengths of all vectors of a kind, (n_layers * count,), each plus a tiny number: errors of products
        are proportional to these. They are computed once."""
        if kind not in self._norms:
            norms = [torch.linalg.vector_norm(V, dim=1) for V in self.w.every_layer(kind)]
            self._norms[kind] = torch.cat(norms) + self.least
        return self._norms[kind]

    def inverse_lengths(self, kind: str) -> tuple[Tensor, Float64]:
        """Return 1 / |v| of all vectors of a kind, (n_layers * count,), in float32 on the device and in float64. They
        are computed once."""
        if kind not in self._inverse_lengths:
            exact = np.concatenate([inverse_lengths(V.cpu().numpy()) for V in self.w.every_layer(kind)])
            self._inverse_lengths[kind] = torch.from_numpy(exact).float().to(self.w.device), exact
        return self._inverse_lengths[kind]

    @cached_property
    def _pool(self) -> ThreadPoolExecutor:
        return ThreadPoolExecutor(torch.get_num_threads())

    @cached_property
    def coarse(self) -> CoarseVocabulary:
        return CoarseVocabulary.of(self.words.reads.embedding)

    def answers(self, asks: Sequence[SeedsAsk]) -> list[SeedsAnswer | LexiscopeError]:
        queries: list[Query | LexiscopeError] = []
        for ask in asks:
            try:
                queries.append(Query(self.words, self.w, ask))
            except LexiscopeError as error:
                queries.append(error)
        good = [query for query in queries if isinstance(query, Query)]
        results: dict[Query, list[SortableResult]] = {query: [] for query in good}
        ranks: dict[Query, int] = {}
        for kind in dict.fromkeys(kind for query in good for kind in query.kinds):
            self._search(kind, [query for query in good if kind in query.kinds], results, ranks)
        nearest = dict(zip(good, self._nearest(good), strict=True))
        return [
            query
            if isinstance(query, LexiscopeError)
            else self._answer(query, results[query], nearest[query], ranks.get(query))
            for query in queries
        ]

    def _search(
        self, kind: str, queries: Sequence[Query], results: dict[Query, list[SortableResult]], ranks: dict[Query, int]
    ) -> None:
        """Add to `results` the best vectors of one kind for each query, and to `ranks` the rank of the vector that a
        query asks for."""
        layers, count, side = self.w.every_layer(kind), self.w.shape.count(kind), SIDES[kind]
        for query, scores in self._products(layers, queries, side):
            error, q = self.norms(kind), np.vstack((query.q[side][None], query.terms[side]))
            if query.ask.lens == "cosine":
                inverse, exact_inverse = self.inverse_lengths(kind)
                # twice the error, because rounding of the inverse and of the product with it adds less than that again
                scores, error = scores * inverse, 2 * error * inverse
            best = proposals(scores, error, self._factor(query.q[side]), query.ask.k)
            if query.ask.rank_of and query.ask.rank_of.kind == kind:
                row = query.ask.rank_of.layer * count + query.ask.rank_of.index
                off = error * self._factor(query.q[side])
                near = torch.nonzero((scores - scores[row]).abs() <= off + off[row])[:, 0]
                close = exact_products(layers, near, query.q[side][None])[:, 0]  # float64 decides among these
                if query.ask.lens == "cosine":
                    close *= exact_inverse[near.cpu().numpy()]
                ranks[query] = _rank(scores, row, near.cpu().numpy(), close, off)
            exact = exact_products(layers, best, q)
            if query.ask.lens == "cosine":
                exact *= exact_inverse[best.cpu().numpy(), None]
            for row, (score, *scores_of_terms) in zip(best.tolist(), exact.tolist(), strict=True):
                may_be_none = self.w.is_difference or kind in DIRECTION_KINDS
                if score == 0 and may_be_none and not layers[row // count][row % count].any():
                    continue  # the vector did not change, or there is no such direction
                results[query].append((-score, kind, *divmod(row, count), scores_of_terms))

    def _nearest(self, queries: Sequence[Query]) -> list[list[ScoredToken]]:
        """Return for each query the tokens whose centred embeddings have the largest cosine with its q."""
        vocabulary, answers = self.words.reads, []
        for query, best in self._near(queries):
            q = query.q["reads"]
            products = exact_products([vocabulary.W], best, q[None])[:, 0] - float(vocabulary.mean @ q)
            cosines = products * vocabulary.exact_inverse[best.cpu().numpy()] / np.linalg.norm(q)
            order, ids = np.argsort(-cosines, kind="stable")[:NEAREST_TO_SEEDS], best.tolist()
            answers.append(scored([ids[at] for at in order], cosines[order].tolist()))
        return answers

    def _near(self, queries: Sequence[Query]) -> Iterator[tuple[Query, Tensor]]:
        """Yield for each query the ids, in rising order, of tokens that may be among the nearest. On a CPU they are
        found with the smaller copy of the vocabulary that CoarseVocabulary holds."""
        if self.w.device.type != "cpu":
            yield from self.near_by_product(queries)
            return
        coarse = self._pool.map(lambda query: self.coarse.cosines(query.q["reads"]), queries)
        for query, (cosines, off) in zip(queries, coarse, strict=True):
            yield query, proposals(cosines, off, 1.0, NEAREST_TO_SEEDS)

    def near_by_product(self, queries: Sequence[Query]) -> Iterator[tuple[Query, Tensor]]:
        vocabulary = self.words.reads
        norms = (vocabulary.norm + float(np.linalg.norm(vocabulary.mean)) + self.least) * vocabulary.inverse
        for query, products in self._products([vocabulary.W], queries, "reads"):
            scores = (products - float(vocabulary.mean @ query.q["reads"])) * vocabulary.inverse
            yield query, proposals(scores, norms, self._factor(query.q["reads"]), NEAREST_TO_SEEDS)

    def _products(
        self, layers: Sequence[Tensor], queries: Sequence[Query], side: str
    ) -> "Iterator[tuple[Query, Tensor]]":
        """Yield for each query the products (N,) of its q with the N rows of all matrices (count, d_model)."""
        size = max(1, LARGEST_PRODUCT // sum(map(len, layers)))
        for start in range(0, len(queries), size):
            batch = queries[start : start + size]
            Q = torch.from_numpy(np.stack([query.q[side] for query in batch])).float().to(self.w.device)
            products = [(V @ Q[0])[None] if len(batch) == 1 else Q @ V.T for V in layers]  # (batch, count) each
            yield from zip(batch, torch.cat(products, dim=1), strict=True)

    def _factor(self, q: Float64) -> float:
        return self.share * (float(np.linalg.norm(q)) + self.least)

    def _answer(
        self, query: Query, best: list[SortableResult], nearest: list[ScoredToken], rank: int | None
    ) -> SeedsAnswer:
        best.sort()  # by score, largest first, then by kind, layer and index
        results: list[SeedResult] = [
            {"kind": kind, "layer": layer, "index": index, "score": -minus, "scores": scores}
            for minus, kind, layer, index, scores in best[: query.ask.k]
        ]
        heads: list[HeadReading] = []
        if query.ask.heads:
            every = range(self.w.shape.n_layers), range(self.w.shape.n_heads)
            (heads,) = head_readings(self.w, self.words, query.q["reads"][None], *every, query.ask.lens, TOKENS_OF_HEAD)
        ranked = (ListEnd(kind, layer, index) for _, kind, layer, index, _ in best[: query.ask.k])
        lists = first_tokens(self.w.vectors, self.words.reads, self.words.writes, query.ask.unbuilt, ranked)
        return {
            "terms": query.used, "nearest": nearest, "results": results, "heads": heads, "lists": lists, "rank": rank,
        }  # fmt: skip


def _check_vector(w: LoadedParameters, vector: VectorPlace, kinds: Sequence[str]) -> None:
    if vector.kind not in kinds:
        raise BadRequest(f"the rank of a vector of kind {vector.kind!r}: these are seeds for {', '.join(kinds)}")
    if vector.layer >= w.shape.n_layers or vector.index >= w.shape.count(vector.kind):
        raise NotFound(f"{vector.kind} {vector.index} of layer {vector.layer} does not exist in this model")


def _rank(scores: Tensor, row: int, near: NDArray[np.int64], exact: Float64, off: Tensor) -> int:
    """Return the rank of a row among all rows, from 1. Rows that are larger by more than rounding come before it; of
    the `near` rows, whose order float32 cannot tell, those whose `exact` score is larger, or equal with a smaller
    number."""
    above = int(torch.count_nonzero(scores - scores[row] > off + off[row]))
    own = exact[np.searchsorted(near, row)]
    return 1 + above + int((exact > own).sum()) + int(((exact == own) & (near < row)).sum())
