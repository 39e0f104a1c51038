"""Seed words with weights: the vectors of any kinds that are about them, the tokens near them, what heads make of them.
All asks of a batch share one product for each kind; scores are float64.
"""

from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cached_property

import numpy as np
import torch
from torch import Tensor

from precompute.errors import BadRequest, LexiscopeError, NotFound
from precompute.live.nearest import CoarseVocabulary
from precompute.live.proposals import error_of_products, exact_products, proposals
from precompute.live.seed_ranking import weighted_mean
from precompute.live.through_heads import head_readings
from precompute.live.weights import Weights
from precompute.live.wire import HeadReading, Scored, SeedsAnswer, SeedsAsk, TermUsed
from precompute.live.words import Vocabulary, Words
from precompute.project.embedding import Float64
from precompute.shape import SIDES

NEAREST = 12  # tokens of an answer
HEAD_TOKENS = 5  # of each head of an answer
LARGEST_PRODUCT = 2**26  # numbers: more asks than fit are searched one batch after the other

SortableResult = tuple[float, str, int, int, list[float]]  # minus the score, kind, layer, index, scores of the terms


class Query:
    """One ask: for each vocabulary the vectors of its terms and their weighted mean.

    q = sum of weight * (mean of the word's pieces - mean of all tokens) / sum of |weight|
    """

    def __init__(self, words: Words, w: Weights, ask: SeedsAsk) -> None:
        for kind in ask.kinds:
            if kind not in w.shape.kinds:
                raise NotFound(f"there are no vectors of kind {kind!r}, only {', '.join(w.shape.kinds)}")
        self.ask, self.kinds = ask, tuple(dict.fromkeys(ask.kinds))
        self.used = tuple(TermUsed(word=t.word, weight=t.weight, tokens=words.tokens(t.word)) for t in ask.terms)
        self.weights = np.array([term.weight for term in ask.terms])
        if not np.abs(self.weights).sum() > 0:
            raise BadRequest("all seeds have the weight 0: give at least one another weight")
        self.terms = {"reads": self._terms(words.reads)}  # (terms, d_model) each
        self.terms["writes"] = self.terms["reads"] if words.reads is words.writes else self._terms(words.writes)
        self.q = {side: weighted_mean(terms, self.weights) for side, terms in self.terms.items()}
        if not self.q["reads"].any():
            raise BadRequest("the seed has no direction: it stands at the mean of all tokens. Give another word.")

    def _terms(self, vocabulary: Vocabulary) -> Float64:
        return np.stack([vocabulary.word(term.tokens) - vocabulary.mean for term in self.used])


class SeedSearch:
    def __init__(self, w: Weights, words: Words) -> None:
        self.w, self.words = w, words
        self.share, self.least = error_of_products(w.shape.d_model)

    @cached_property
    def norms(self) -> dict[str, Tensor]:
        """|v| by kind, (n_layers * count,): a product is off in proportion to it."""
        return {
            kind: torch.cat([torch.linalg.vector_norm(V, dim=1) for V in self.w.every_layer(kind)]) + self.least
            for kind in self.w.shape.kinds
        }

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
        for kind in dict.fromkeys(kind for query in good for kind in query.kinds):
            self._search(kind, [query for query in good if kind in query.kinds], results)
        nearest = dict(zip(good, self._nearest(good), strict=True))
        return [
            query if isinstance(query, LexiscopeError) else self._answer(query, results[query], nearest[query])
            for query in queries
        ]

    def _search(self, kind: str, queries: Sequence[Query], results: dict[Query, list[SortableResult]]) -> None:
        """Adds to `results` the best of one kind."""
        layers, count, side = self.w.every_layer(kind), self.w.shape.count(kind), SIDES[kind]
        for query, scores in self._products(layers, queries, side):
            best = proposals(scores, self.norms[kind], self._factor(query.q[side]), query.ask.n)
            exact = exact_products(layers, best, np.vstack((query.q[side][None], query.terms[side])))
            for row, (score, *scores_of_terms) in zip(best.tolist(), exact.tolist(), strict=True):
                results[query].append((-score, kind, *divmod(row, count), scores_of_terms))

    def _nearest(self, queries: Sequence[Query]) -> list[tuple[Scored, ...]]:
        """Tokens with the largest cosine of their centred embedding with the query."""
        vocabulary, answers = self.words.reads, []
        for query, best in self._near(queries):
            q = query.q["reads"]
            products = exact_products([vocabulary.W], best, q[None])[:, 0] - float(vocabulary.mean @ q)
            cosines = products * vocabulary.exact_inverse[best.cpu().numpy()] / np.linalg.norm(q)
            order, ids = np.argsort(-cosines, kind="stable")[:NEAREST], best.tolist()
            answers.append(tuple(Scored(id=ids[at], score=float(cosines[at])) for at in order))
        return answers

    def _near(self, queries: Sequence[Query]) -> Iterator[tuple[Query, Tensor]]:
        """Tokens, rising, that may be among the nearest. A CPU reads a coarse copy of the vocabulary instead."""
        if self.w.device.type != "cpu":
            yield from self.near_by_product(queries)
            return
        coarse = self._pool.map(lambda query: self.coarse.cosines(query.q["reads"]), queries)
        for query, (cosines, off) in zip(queries, coarse, strict=True):
            yield query, proposals(cosines, off, 1.0, NEAREST)

    def near_by_product(self, queries: Sequence[Query]) -> Iterator[tuple[Query, Tensor]]:
        vocabulary = self.words.reads
        norms = (vocabulary.norm + float(np.linalg.norm(vocabulary.mean)) + self.least) * vocabulary.inverse
        for query, products in self._products([vocabulary.W], queries, "reads"):
            scores = (products - float(vocabulary.mean @ query.q["reads"])) * vocabulary.inverse
            yield query, proposals(scores, norms, self._factor(query.q["reads"]), NEAREST)

    def _products(
        self, layers: Sequence[Tensor], queries: Sequence[Query], side: str
    ) -> "Iterator[tuple[Query, Tensor]]":
        """Some matrices (count, d_model), N rows in all, with the q of each query: (N,) each."""
        size = max(1, LARGEST_PRODUCT // sum(map(len, layers)))
        for start in range(0, len(queries), size):
            batch = queries[start : start + size]
            Q = torch.from_numpy(np.stack([query.q[side] for query in batch])).float().to(self.w.device)
            products = [(V @ Q[0])[None] if len(batch) == 1 else Q @ V.T for V in layers]  # (batch, count) each
            yield from zip(batch, torch.cat(products, dim=1), strict=True)

    def _factor(self, q: Float64) -> float:
        return self.share * (float(np.linalg.norm(q)) + self.least)

    def _answer(self, query: Query, best: list[SortableResult], nearest: tuple[Scored, ...]) -> SeedsAnswer:
        best.sort()  # by score, largest first, then by kind, layer and index
        results = [
            {"kind": kind, "layer": layer, "index": index, "score": -minus, "scores": scores}
            for minus, kind, layer, index, scores in best[: query.ask.n]
        ]
        heads: tuple[HeadReading, ...] = ()
        if query.ask.heads:
            every = range(self.w.shape.n_layers), range(self.w.shape.n_heads)
            (heads,) = head_readings(self.w, self.words, query.q["reads"][None], *every, "dot", HEAD_TOKENS)
        fields = {"terms": query.used, "nearest": nearest, "results": results, "heads": heads}
        return SeedsAnswer.model_validate(fields)  # far faster than one object after the other
