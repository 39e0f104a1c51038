"""Search by seed words with weights: find the vectors of any kind that are about these words, the tokens near them, and
what heads make of them. All asks of a batch share one product for each kind of vectors; scores are float64.

Vectors are ranked by the paper's score (section 4.1), v · q with the average q of the words, or by their fit: v · q
over the standard deviation of v · e over all tokens e, so that a vector does not rank high for scoring all tokens
high. For the fit, q may be widened by the tokens that are nearest to the words.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cached_property
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from lexiscope.precompute.errors import BadRequest, LexiscopeError, NotFound
from lexiscope.precompute.live.by_words.nearest import CoarseVocabulary
from lexiscope.precompute.live.by_words.random_words import Ids, draw_words, frequency_bands
from lexiscope.precompute.live.by_words.through_heads import head_readings, ids_of
from lexiscope.precompute.live.first_tokens import ListEnd, first_tokens
from lexiscope.precompute.live.parameters import LoadedParameters
from lexiscope.precompute.live.proposals import error_of_products, exact_products, proposals
from lexiscope.precompute.live.vocabulary import scored
from lexiscope.precompute.live.wire.answers import HeadReading, SeedResult, SeedsAnswer, TermUsed
from lexiscope.precompute.live.wire.asks import SeedsAsk, VectorPlace
from lexiscope.precompute.live.wire.fields import Lens
from lexiscope.precompute.live.words import Vocabulary, Words
from lexiscope.precompute.project.embedding import SMALLEST_NORM, Float64
from lexiscope.precompute.shape import DIRECTION_KINDS, SIDES, Side

NEAREST_TO_SEEDS = 12  # tokens nearest to the seed words that an answer has
WIDENED_BY = 20  # tokens nearest to the seed words that widen the query of a fit
NEAR = 1000  # tokens that are near enough to the seed words to be pointed out in the list of a vector
TOKENS_OF_HEAD = 5  # tokens that an answer has of each head
LARGEST_PRODUCT = 2**26  # numbers of a product: asks that do not fit are searched in another batch
RANDOM_DRAWS, REACHED = 200, 0.95  # draws of random words, and the share of them whose best fit is below `chance`
DRAWS_AT_ONCE = 50  # of them in one product
MOST_KEPT = 500  # results of random words that are kept in memory, RANDOM_DRAWS numbers each
NO_FIT = -1e30  # stands for the fit of a vector whose scores are all equal, so that it comes last


class Likeness(NamedTuple):
    """The properties that random words share with the words they stand for; equal ones reach the same fit."""

    lens: Lens
    widen: int
    terms: tuple[tuple[int, float], ...]  # the band of frequency and the weight of each word, sorted


class Query:
    """The seed words of one ask as vectors: for W_E and for W_U, a vector for each term (a word with its weight), and
    their weighted mean q.

    q = sum of weight * (mean of the word's pieces - mean of all tokens) / sum of |weight|
    Under the lens cosine each difference in brackets is set to length one, and a vector's score is divided by the
    vector's length.
    """

    def __init__(self, words: Words, w: LoadedParameters, ask: SeedsAsk) -> None:
        self.ask, self.kinds = ask, ask.kinds
        for kind in self.kinds:
            if kind not in w.shape.kinds:
                raise NotFound(f"there are no vectors of kind {kind!r}, only {', '.join(w.shape.kinds)}")
        self.used = [
            TermUsed(word=t.word, weight=t.weight, tokens=[{"id": token} for token in words.tokens(t.word, t.spelling)])
            for t in ask.words
        ]
        if wanted := ask.rank_of:
            _check_vector(w, wanted, self.kinds)
        self.weights = np.array([term.weight for term in ask.words])
        if not np.abs(self.weights).sum() > 0:
            raise BadRequest("all seeds have the weight 0: give at least one another weight")
        self.terms: dict[Side, Float64] = {"reads": self._terms(words.reads)}  # (terms, d_model) each
        self.terms["writes"] = self.terms["reads"] if words.reads is words.writes else self._terms(words.writes)
        self.q = {side: weighted_mean(terms, self.weights) for side, terms in self.terms.items()}
        if not self.q["reads"].any():
            raise BadRequest("the seed has no direction: it stands at the mean of all tokens. Give another word.")
        self.wide = self.q  # what fits are computed with; SeedSearch widens it
        self.near: dict[Side, tuple[Ids, Float64]] = {}  # the tokens nearest to q, and their cosines with it

    def _terms(self, vocabulary: Vocabulary) -> Float64:
        words = [vocabulary.word(ids_of(term)) for term in self.used]
        if self.ask.lens == "cosine":
            return np.stack([vocabulary.direction(e, term["word"]) for e, term in zip(words, self.used, strict=True)])
        return np.stack([e - vocabulary.mean for e in words])

    def ranked_by(self, side: Side) -> Float64:
        return self.wide[side] if self.ask.rank == "fit" else self.q[side]


class SeedSearch:
    def __init__(
        self, w: LoadedParameters, words: Words, word_tokens: Callable[[], Ids], stored: Words | None = None
    ) -> None:
        """Search the vectors of `w`. `word_tokens` returns the tokens that are words, from which random ones are drawn.
        Where `words` have other vocabularies than W_E and W_U, `stored` has these: lists of vectors, and what heads do,
        are made with them."""
        self.w, self.words, self.word_tokens, self.stored = w, words, word_tokens, stored or words
        self.share, self.least = error_of_products(w.shape.d_model)
        self._norms: dict[str, Tensor] = {}
        self._inverses: dict[tuple[str, str], tuple[Tensor, Float64]] = {}
        self._reached: dict[tuple[str, Likeness], Float64] = {}
        self._random: tuple[tuple[Side, Likeness], Tensor] | None = None

    def norms(self, kind: str) -> Tensor:
        """Return the lengths of all vectors of a kind, (n_layers * count,), each plus a tiny number: errors of products
        are proportional to these. They are computed once."""
        if kind not in self._norms:
            norms = [torch.linalg.vector_norm(V, dim=1) for V in self.w.every_layer(kind)]
            self._norms[kind] = torch.cat(norms) + self.least
        return self._norms[kind]

    def inverse_lengths(self, kind: str) -> tuple[Tensor, Float64]:
        """Return 1 / |v| of all vectors of a kind, (n_layers * count,), in float32 on the device and in float64; 0 for
        a vector without a direction. They are computed once."""
        return self._inverse("length", kind, lambda vectors: np.linalg.norm(vectors, axis=1))

    def inverse_spreads(self, kind: str, lens: Lens = "dot") -> tuple[Tensor, Float64]:
        """Return 1 / sd of all vectors of a kind likewise, where sd is the standard deviation of a vector's scores over
        all tokens; 0 where all scores are equal."""
        spreads = self.vocabulary(SIDES[kind]).spreads
        return self._inverse("spread" if lens == "dot" else "cosine", kind, lambda vectors: spreads(vectors, lens))

    def _inverse(self, name: str, kind: str, of: Callable[[Float64], Float64]) -> tuple[Tensor, Float64]:
        if (name, kind) not in self._inverses:
            layers = self.w.every_layer(kind)
            numbers = np.concatenate([of(V.cpu().numpy().astype(np.float64)) for V in layers])
            exact = np.divide(1.0, numbers, out=np.zeros_like(numbers), where=numbers > SMALLEST_NORM)
            self._inverses[name, kind] = torch.from_numpy(exact).float().to(self.w.device), exact
        return self._inverses[name, kind]

    def vocabulary(self, side: Side) -> Vocabulary:
        return self.words.reads if side == "reads" else self.words.writes

    @cached_property
    def sides(self) -> tuple[Side, ...]:
        """Return the sides with a vocabulary of their own: where W_U is W_E, there is one."""
        return ("reads",) if self.words.reads is self.words.writes else ("reads", "writes")

    @cached_property
    def _pool(self) -> ThreadPoolExecutor:
        return ThreadPoolExecutor(torch.get_num_threads())

    @cached_property
    def coarse(self) -> dict[Side, CoarseVocabulary]:
        return {side: CoarseVocabulary.of(self.vocabulary(side).embedding) for side in self.sides}

    def cost_of_fit(self, ask: SeedsAsk) -> float:
        """Return how many multiplications a fit takes besides the search, if nothing of it is known yet: the spreads,
        and what random words reach."""
        s = self.w.shape
        kinds = [kind for kind in ask.kinds if kind in s.kinds]
        cost = self.cost_of_spreads(kinds)
        if ask.rank == "fit":
            widening = len(self.sides) * s.d_vocab * s.d_model if ask.widen else 0
            cost += RANDOM_DRAWS * (sum(s.n_layers * s.count(kind) * s.d_model for kind in kinds) + widening)
        return cost

    def cost_of_spreads(self, kinds: Iterable[str], lens: Lens = "dot") -> float:
        """Return how many multiplications `inverse_spreads` takes for these kinds, for what is not known yet."""
        s, (name, of_tokens) = self.w.shape, ("spread", "covariance") if lens == "dot" else ("cosine", "of_directions")
        new = [s.n_layers * s.count(kind) for kind in kinds if (name, kind) not in self._inverses]
        sides = [side for side in self.sides if of_tokens not in vars(self.vocabulary(side))]
        return s.d_model**2 * float(sum(new) + len(sides) * s.d_vocab)

    def answers(self, asks: Sequence[SeedsAsk]) -> list[SeedsAnswer | LexiscopeError]:
        queries: list[Query | LexiscopeError] = []
        for ask in asks:
            try:
                queries.append(Query(self.words, self.w, ask))
            except LexiscopeError as error:
                queries.append(error)
        good = [query for query in queries if isinstance(query, Query)]
        self._find_near(good)
        results: dict[Query, list[SeedResult]] = {query: [] for query in good}
        ranks: dict[Query, int] = {}
        for kind in dict.fromkeys(kind for query in good for kind in query.kinds):
            self._search(kind, [query for query in good if kind in query.kinds], results, ranks)
        return [
            query if isinstance(query, LexiscopeError) else self._answer(query, results[query], ranks.get(query))
            for query in queries
        ]

    def _search(
        self, kind: str, queries: Sequence[Query], results: dict[Query, list[SeedResult]], ranks: dict[Query, int]
    ) -> None:
        """Add to `results` the best vectors of one kind for each query, and to `ranks` the rank of the vector that a
        query asks for."""
        layers, count, side = self.w.every_layer(kind), self.w.shape.count(kind), SIDES[kind]
        _, spread = self.inverse_spreads(kind)
        _, length = self.inverse_lengths(kind)
        for query, scores in self._products(layers, [(query, query.ranked_by(side)) for query in queries]):
            error, by_fit, by_cosine = self.norms(kind), query.ask.rank == "fit", query.ask.lens == "cosine"
            if by_fit or by_cosine:
                inverse, exact_inverse = self.inverse_spreads(kind) if by_fit else self.inverse_lengths(kind)
                # twice the error, because rounding of the inverse and of the product with it adds less than that again
                scores, error = scores * inverse, 2 * error * inverse
            if by_fit:
                scores[inverse == 0] = NO_FIT
            target = query.ranked_by(side)
            best = proposals(scores, error, self._factor(target), query.ask.k)
            if query.ask.rank_of and query.ask.rank_of.kind == kind:
                row = query.ask.rank_of.layer * count + query.ask.rank_of.index
                off = error * self._factor(target)
                near = torch.nonzero((scores - scores[row]).abs() <= off + off[row])[:, 0]
                close = exact_products(layers, near, target[None])[:, 0]  # float64 decides among these
                if by_fit or by_cosine:
                    close *= exact_inverse[near.cpu().numpy()]
                ranks[query] = _rank(scores, row, near.cpu().numpy(), close, off)
            numbers = best.cpu().numpy()
            exact = exact_products(layers, best, np.vstack((query.wide[side], query.q[side], query.terms[side])))
            fits = exact[:, 0] * spread[numbers]
            q_length = np.linalg.norm(query.q[side])
            cosines = exact[:, 1] * length[numbers] / q_length if q_length > 0 else np.zeros(len(exact))
            if by_cosine:
                exact *= length[numbers, None]
            for row, fit, cosine, (_, score, *scores_of_terms) in zip(
                numbers.tolist(), fits.tolist(), cosines.tolist(), exact.tolist(), strict=True
            ):
                has_fit, is_zero = spread[row] > 0, length[row] == 0
                may_be_none = self.w.is_difference or kind in DIRECTION_KINDS
                if (by_fit and not has_fit) or (is_zero and may_be_none):
                    continue  # no fit; or the vector did not change, or there is no such direction
                results[query].append({
                    "kind": kind, "layer": row // count, "index": row % count, "score": score,
                    "scores": scores_of_terms, "fit": fit if has_fit else None, "cosine": None if is_zero else cosine,
                })  # fmt: skip

    def _find_near(self, queries: Sequence[Query]) -> None:
        """Find for each query the tokens whose centred embeddings have the largest cosines with its q, and widen what
        fits are computed with."""
        for side in self.sides:
            vocabulary = self.vocabulary(side)
            for query, best in self._near(queries, side):
                q = query.q[side]
                products = exact_products([vocabulary.W], best, q[None])[:, 0] - float(vocabulary.mean @ q)
                ids = best.cpu().numpy()
                cosines = products * vocabulary.exact_inverse[ids] / (np.linalg.norm(q) or 1.0)
                order = np.argsort(-cosines, kind="stable")[:NEAR]
                query.near[side] = ids[order], cosines[order]
                if query.ask.widen:
                    around = vocabulary.centred(ids[order[:WIDENED_BY]], query.ask.lens).mean(axis=0)
                    query.wide = {**query.wide, side: (_unit(q) + _unit(around)) / 2}
        if len(self.sides) == 1:
            for query in queries:
                query.near["writes"] = query.near["reads"]
                query.wide = {**query.wide, "writes": query.wide["reads"]}

    def _near(self, queries: Sequence[Query], side: Side) -> Iterator[tuple[Query, Tensor]]:
        """Yield for each query the ids, in rising order, of tokens that may be among the nearest. On a CPU they are
        found with the smaller copy of the vocabulary that CoarseVocabulary holds."""
        if self.w.device.type != "cpu":
            yield from self.near_by_product(queries, side)
            return
        coarse = self._pool.map(lambda query: self.coarse[side].cosines(query.q[side]), queries)
        for query, (cosines, off) in zip(queries, coarse, strict=True):
            yield query, proposals(cosines, off, 1.0, NEAR)

    def near_by_product(self, queries: Sequence[Query], side: Side) -> Iterator[tuple[Query, Tensor]]:
        vocabulary = self.vocabulary(side)
        norms = (vocabulary.norm + float(np.linalg.norm(vocabulary.mean)) + self.least) * vocabulary.inverse
        for query, products in self._products([vocabulary.W], [(query, query.q[side]) for query in queries]):
            scores = (products - float(vocabulary.mean @ query.q[side])) * vocabulary.inverse
            yield query, proposals(scores, norms, self._factor(query.q[side]), NEAR)

    def _products(
        self, layers: Sequence[Tensor], queries: Sequence[tuple[Query, Float64]]
    ) -> Iterator[tuple[Query, Tensor]]:
        """Yield for each query the products (N,) of its vector with the N rows of all matrices (count, d_model)."""
        size = max(1, LARGEST_PRODUCT // sum(map(len, layers)))
        for start in range(0, len(queries), size):
            batch = queries[start : start + size]
            Q = torch.from_numpy(np.stack([vector for _, vector in batch])).float().to(self.w.device)
            products = [(V @ Q[0])[None] if len(batch) == 1 else Q @ V.T for V in layers]  # (batch, count) each
            yield from zip([query for query, _ in batch], torch.cat(products, dim=1), strict=True)

    def _factor(self, q: Float64) -> float:
        return self.share * (float(np.linalg.norm(q)) + self.least)

    def chance(self, query: Query) -> float | None:
        """Return the fit below which the best vector of these kinds stays in 95 % of 200 draws of as many random words
        that are as frequent, with the same weights. The draws are the same each time, and what they reach is kept."""
        bands = frequency_bands(self.word_tokens(), [max(ids_of(term)) for term in query.used])
        terms = tuple(sorted(zip(bands, query.weights.tolist(), strict=True)))
        likeness = Likeness(query.ask.lens, query.ask.widen, terms)
        reached = np.max([self._reached_by_random(kind, likeness) for kind in query.kinds], axis=0)
        return float(np.quantile(reached, REACHED)) if np.isfinite(reached).all() else None

    def _reached_by_random(self, kind: str, likeness: Likeness) -> Float64:
        """Return the best fit of each draw of random words with vectors of a kind, (RANDOM_DRAWS,), from float32
        products; -infinity where no vector has a fit."""
        if (known := self._reached.get((kind, likeness))) is not None:
            return known
        inverse, _ = self.inverse_spreads(kind)
        best = torch.full((RANDOM_DRAWS,), -torch.inf, device=self.w.device)
        Q = self._random_queries(SIDES[kind] if SIDES[kind] in self.sides else self.sides[0], likeness)
        for V, inverses in zip(self.w.every_layer(kind), inverse.view(self.w.shape.n_layers, -1), strict=True):
            fits = (Q @ V.T) * inverses
            fits[:, inverses == 0] = -torch.inf
            best = torch.maximum(best, fits.amax(dim=1))
        if len(self._reached) >= MOST_KEPT:
            self._reached.clear()
        return self._reached.setdefault((kind, likeness), best.cpu().numpy().astype(np.float64))

    def _random_queries(self, side: Side, likeness: Likeness) -> Tensor:
        """Return what fits are computed with, (RANDOM_DRAWS, d_model), for the draws of random words, on the device.
        Nearest tokens are found in float32. The last ones are kept, because several kinds of vectors need them."""
        if self._random is None or self._random[0] != (side, likeness):
            vocabulary = self.vocabulary(side)
            bands, weights = [band for band, _ in likeness.terms], np.array([weight for _, weight in likeness.terms])
            drawn = draw_words(self.word_tokens(), bands, RANDOM_DRAWS)
            terms = (vocabulary.centred(tokens, likeness.lens) for tokens in drawn)
            queries = np.stack([weights @ rows / np.abs(weights).sum() for rows in terms])
            if likeness.widen:
                starts = range(0, RANDOM_DRAWS, DRAWS_AT_ONCE)
                parts = [queries[start : start + DRAWS_AT_ONCE] for start in starts]
                queries = np.concatenate([self._widened(vocabulary, part, likeness.lens) for part in parts])
            self._random = (side, likeness), torch.from_numpy(queries).float().to(self.w.device)
        return self._random[1]

    def _widened(self, vocabulary: Vocabulary, means: Float64, lens: Lens) -> Float64:
        shifts = torch.from_numpy(means @ vocabulary.mean).float().to(self.w.device)
        products = torch.from_numpy(means).float().to(self.w.device) @ vocabulary.W.T
        cosines = products.sub_(shifts[:, None]).mul_(vocabulary.inverse)  # times the length of each mean
        nearest = cosines.topk(min(WIDENED_BY, cosines.shape[1]), dim=1).indices.cpu().numpy()
        around = [vocabulary.centred(tokens, lens).mean(axis=0) for tokens in nearest]
        return np.stack([(_unit(mean) + _unit(near)) / 2 for mean, near in zip(means, around, strict=True)])

    def _answer(self, query: Query, best: list[SeedResult], rank: int | None) -> SeedsAnswer:
        rank_by = query.ask.rank
        best = sorted(best, key=lambda found: (-(found[rank_by] or 0), found["kind"], found["layer"], found["index"]))
        results = best[: query.ask.k]
        heads: list[HeadReading] = []
        if query.ask.heads:
            every = range(self.w.shape.n_layers), range(self.w.shape.n_heads)
            raw = query if self.stored is self.words else Query(self.stored, self.w, query.ask)
            (heads,) = head_readings(self.w, self.stored, raw.q["reads"][None], *every, query.ask.lens, TOKENS_OF_HEAD)
        ranked = (ListEnd(found["kind"], found["layer"], found["index"]) for found in results)
        ids, cosines = (array[:NEAREST_TO_SEEDS].tolist() for array in query.near["reads"])
        return {
            "terms": query.used, "nearest": scored(ids, cosines), "results": results, "heads": heads,
            "lists": first_tokens(self.w.vectors, self.stored.reads, self.stored.writes, query.ask.unbuilt, ranked),
            "rank": rank, "near": {SIDES[kind]: query.near[SIDES[kind]][0].tolist() for kind in query.kinds},
            "chance": self.chance(query) if query.ask.rank == "fit" else None,
        }  # fmt: skip


def weighted_mean(terms: Float64, weights: Float64) -> Float64:
    """Return the sum of weight * term / sum of |weight| for terms (terms, d_model) and weights (terms,); raise
    BadRequest if the terms cancel each other up to rounding."""
    q = np.asarray(weights @ terms / np.abs(weights).sum())
    if len(terms) > 1 and np.linalg.norm(q) <= 1e-9 * np.linalg.norm(terms, axis=1).max():
        raise BadRequest("the seeds cancel each other out: nothing is left to search for")
    return q


def _unit(q: Float64) -> Float64:
    length = np.linalg.norm(q)
    return q / length if length > SMALLEST_NORM else q


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
