"""The panel `patterns`: what positions of a run look for, are found by and send at a layer's heads, as words. Patterns
and messages are McCormick's names. For a position at one head, with h its state there, the panel shows

- pattern, h W_Q W_Kᵀ: what the position looks for; tokens whose keys its query would find.
- found_by, h W_K W_Qᵀ: what would find the position; tokens whose queries would find its key.
- message, h W_V W_O: what the position sends to every position that attends to it.

They are shown either for all heads of the layer at one position, each with the messages of the positions that it
attends to most (`patterns_by_head`), or for all positions of the text at one head (`patterns_by_token`).

h is what the layer's attention reads: the stream through the layer's own norm. There are three conventions for
comparing these vectors with tokens:
- final: the model's final norm is applied to the vector, then W_E (patterns, found_by) or W_U (messages).
- vocabulary: every token's embedding goes through the layer's own norm, and is multiplied with the vector.
- exact: what the model computes. Biases and positions count, and scores are scaled. A token of a pattern gets the
  attention score that the position would give to the token's bare embedding (learned positions are no part of it) if
  the token were at the position to which the head attends most from here. A token of found_by gets the attention score
  that its bare embedding would give to this position if the token were at the other position that attends to this one
  most; in a decoder, that is a later one. If there is no other, as for a decoder's last position, the token is taken to
  be at the position itself. Messages are multiplied with W_U as they are: times the attention weights, over all
  positions and heads, they sum (with w_o's bias) to what attention writes, before any norm of that.

Each convention has two lenses. With dot, scores are as above. With cosine, the vectors are the same, but the rows that
they are multiplied with (of W_E or W_U, as they are or through the layer's norm) have their mean over all tokens
subtracted and are set to length one. Under exact, everything else that depends on the token is then left out (soft
caps, and the divisors of norms of queries and keys), and also everything that is equal for all tokens.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

import torch
from torch import Tensor

from lexiscope.precompute.live.panels import head_vectors
from lexiscope.precompute.live.panels.panel import Fields, Panel, PanelRun, only_tokens
from lexiscope.precompute.live.panels.records import Record
from lexiscope.precompute.live.panels.token_rows import COSINE_ROWS, Products, TokenRows, Vocabularies
from lexiscope.precompute.live.vocabulary import PRODUCT_ROWS, Tick, best_tokens
from lexiscope.precompute.live.weights import Weights
from lexiscope.precompute.live.wire.answers import (
    OWN_LISTS,
    HeadPattern,
    Look,
    Message,
    ScoredToken,
    SheetHead,
    TokenPattern,
)
from lexiscope.precompute.live.wire.asks import Convention, PromptAsk
from lexiscope.precompute.live.wire.fields import Lens
from lexiscope.precompute.shape import Shape

MESSAGES = 3  # messages shown of a head: those from the positions it attends to most
ALL_MESSAGES = 24  # messages shown of the head that was asked about


def rows_of_products(w: Weights, ask: PromptAsk, tokens: int) -> int:
    """Return how many vectors are multiplied with the vocabulary, counting other work as the number of vectors that
    would take as long."""
    s = w.shape
    if ask.rows == "tokens":
        rows = tokens * OWN_LISTS
    else:
        sent = s.n_heads * min(MESSAGES, tokens) + (min(ALL_MESSAGES, tokens) if ask.head is not None else 0)
        rows = s.n_heads * OWN_LISTS + sent
    return rows + rows_beside(w, ask)


def rows_beside(w: Weights, ask: PromptAsk) -> int:
    """Return how many vectors' time a layer takes beside its lists."""
    if ask.lens == "cosine" and ask.convention != "final":
        return COSINE_ROWS * (2 if ask.convention == "vocabulary" and not w.shape.tied else 1)
    if ask.lens == "dot" and ask.convention == "exact":  # norms inside heads need a divisor for every token
        return sum(w.shape.count(kind) for kind in ("w_q", "w_k") if w.head_norm(kind, 0) is not None)
    return 0


@dataclass(frozen=True)
class Lists:
    """Make lists of tokens for some heads of a layer of a run, in one convention and under one lens: head after head,
    then by position."""

    w: Weights
    record: Record
    layer: int
    convention: Convention
    lens: Lens
    k: int
    heads: Sequence[int]
    vocabularies: Vocabularies
    tick: Tick
    only: Tensor | None  # flags (d_vocab,) of the tokens that may stand in lists; None: all

    @property
    def states(self) -> Tensor:
        """Return the states (T, d_model) as the layer's attention reads them."""
        return self.record.heads[self.layer].states

    @property
    def weights(self) -> Tensor:
        """Return the attention weights (heads, T, T), from query to key."""
        return self.record.heads[self.layer].weights[self.heads]

    def sought(self, kind: str, here: Tensor, there: Tensor) -> Iterator[list[ScoredToken]]:
        """Yield the first tokens that positions `here` (n,) look for (kind w_q), or that would find them (kind w_k), if
        these tokens are at positions `there` (heads, n)."""
        w, layer, x = self.w, self.layer, self.states[here]
        if self.convention != "exact":
            yield from self._compared(head_vectors.sought(w, layer, kind, x, self.heads).flatten(0, 1), reads=True)
            return
        exact, constants = head_vectors.exactly_sought(
            w, layer, kind, x, self.heads, here, there, self.record.heads[layer].rotation
        )
        vectors, constant = exact.flatten(0, 1), constants.flatten()
        other = head_vectors.OTHER_SIDE[kind]
        divisors = head_vectors.divisors(w, layer, other, self.heads) if self.lens == "dot" else None
        self.tick(0 if divisors is None else w.shape.count(other))
        head_of = torch.arange(len(vectors), device=w.device) // len(here)
        for block in torch.split(torch.arange(len(vectors), device=w.device), PRODUCT_ROWS):
            scores = self._normed_reads(vectors[block])
            if self.lens == "dot":
                scores += constant[block, None]
                if divisors is not None:
                    scores *= divisors[head_of[block]]
                scores = w.capped(scores, layer)
            self.tick(len(block))
            yield from best_tokens(scores, self.k, self.only)

    def sent(self, vectors: Tensor) -> Iterator[list[ScoredToken]]:
        """Yield the first tokens of each of these messages (n, d_model)."""
        if self.convention == "exact":
            return self._listed(vectors, self.vocabularies[1].plain(self.lens))
        return self._compared(vectors, reads=False)

    def messages(self, positions: Tensor) -> Tensor:
        """Return the messages (heads, n, d_model) of these positions (n,)."""
        x, biased = self.states[positions], self.convention == "exact"
        return head_vectors.messages(self.w, self.layer, x, self.heads, biased=biased)

    def _compared(self, vectors: Tensor, *, reads: bool) -> Iterator[list[ScoredToken]]:
        """Yield the first tokens of each vector by the convention `final` or `vocabulary`, with W_E if it `reads`, else
        with W_U."""
        if self.convention == "final":
            vocabulary = self.vocabularies[0 if reads else 1]
            return self._listed(self.w.norm(vectors, "final"), vocabulary.plain(self.lens))
        return self._listed(vectors, self._normed_reads if reads else self._normed_writes)

    @cached_property
    def _normed_reads(self) -> Products:
        return self._normed(self.vocabularies[0])

    @cached_property
    def _normed_writes(self) -> Products:
        reads, writes = self.vocabularies
        return self._normed_reads if writes is reads else self._normed(writes)

    def _normed(self, vocabulary: TokenRows) -> Products:
        products = vocabulary.normed(self.w.norm_numbers("attention", self.layer), self.lens)
        self.tick(0 if self.lens == "dot" else COSINE_ROWS)
        return products

    def _listed(self, vectors: Tensor, products: Products) -> Iterator[list[ScoredToken]]:
        for block in torch.split(vectors, PRODUCT_ROWS):
            scores = products(block)
            self.tick(len(block))
            yield from best_tokens(scores, self.k, self.only)


def lists_of(run: PanelRun, layer: int, heads: Sequence[int], tick: Tick) -> Lists:
    """Return the lists of these heads of a layer, as they were asked for."""
    ask, only = run.ask, only_tokens(run.w, run.ask)
    vocabularies, length = run.tables.vocabularies, ask.k + ask.spare
    return Lists(run.w, run.record, layer, ask.convention, ask.lens, length, heads, vocabularies, tick, only)


def patterns_by_head(run: PanelRun) -> list[HeadPattern]:
    """Describe every head of the layer at the chosen position, with more messages for the head that was asked about."""
    w, record, s, position = run.w, run.record, run.w.shape, run.record.position
    lists = lists_of(run, record.layer, range(s.n_heads), run.tick("patterns"))
    here = torch.tensor([position], device=w.device)
    weights = lists.weights  # (n_heads, T, T)
    seen = position + 1 if s.causal else len(record.tokens)
    every = lists.messages(torch.arange(seen, device=w.device))  # (n_heads, seen, d_model)
    most = [ALL_MESSAGES if head == run.ask.head else MESSAGES for head in range(s.n_heads)]
    picked = [of_head[position, :seen].topk(min(n, seen)) for of_head, n in zip(weights, most, strict=True)]
    looks_at = torch.stack([best.indices[:1] for best in picked])  # (n_heads, 1)
    found_from, found_weights = looked_at_from(s, weights, here)
    pattern = lists.sought("w_q", here, looks_at)
    found_by = lists.sought("w_k", here, found_from)
    own = lists.sent(every[:, position])
    sent = lists.sent(torch.cat([of_head[best.indices] for of_head, best in zip(every, picked, strict=True)]))
    return [
        HeadPattern(
            head=head,
            pattern=next(pattern),
            found_by=next(found_by),
            found_from=_look(found_from[head, 0], found_weights[head, 0]),
            message=next(own),
            messages=[
                Message(position=there, weight=weight, tokens=next(sent))
                for there, weight in zip(best.indices.tolist(), best.values.tolist(), strict=True)
            ],
        )
        for head, best in enumerate(picked)
    ]


def patterns_by_token(run: PanelRun) -> list[TokenPattern]:
    """Describe every position of the text at the head that was asked about, or at head 0 if none was."""
    record, heads = run.record, [run.ask.head or 0]
    here = torch.arange(len(record.tokens), device=run.w.device)
    found_from, found_weights = looked_at_from(run.w.shape, record.heads[record.layer].weights[heads], here)
    return [
        TokenPattern(
            position=at,
            pattern=row["looks_for"],
            looks_at=row["attends"],
            found_by=row["found_by"],
            found_from=_look(found_from[0, at], found_weights[0, at]),
            message=row["sends"],
        )
        for at, row in enumerate(head_rows(run, record.layer, heads, run.tick("patterns")))
    ]


def head_rows(run: PanelRun, layer: int, heads: Sequence[int], tick: Tick) -> Iterator[SheetHead]:
    """Yield what these heads of a layer do at every position: head after head, then by position."""
    w, tokens = run.w, len(run.record.tokens)
    lists = lists_of(run, layer, heads, tick)
    here = torch.arange(tokens, device=w.device)
    weights, attends = lists.weights.max(dim=2)  # (n_heads, T) each
    found_from, _ = looked_at_from(w.shape, lists.weights, here)
    messages = lists.messages(here)  # (n_heads, T, d_model)
    lengths = torch.linalg.vector_norm(messages, dim=2)
    moved = weights * lengths.gather(1, attends)
    of_tokens = (
        list(lists.sought("w_q", here, attends)),
        list(lists.sought("w_k", here, found_from)),
        list(lists.sent(messages.flatten(0, 1))),
    )
    numbers = (each.flatten().tolist() for each in (attends, weights, lengths, moved))
    for row, (looks_for, found_by, sends, at, weight, length, moves) in enumerate(
        zip(*of_tokens, *numbers, strict=True)
    ):
        head, position = divmod(row, tokens)
        yield {
            "layer": layer, "head": heads[head], "position": position, "looks_for": looks_for, "found_by": found_by,
            "attends": {"position": at, "weight": weight}, "sends": sends, "message": length, "moved": moves,
        }  # fmt: skip


def looked_at_from(shape: Shape, weights: Tensor, here: Tensor) -> tuple[Tensor, Tensor]:
    """Return for each position of `here` (n,) the other position that attends to it most, and that attention weight,
    (heads, n) each. Where no other position sees it, return the position itself, and a weight below 0."""
    queries = torch.arange(weights.shape[1], device=weights.device)
    others = queries > here[:, None] if shape.causal else queries != here[:, None]  # (n, T)
    weight, position = weights[:, :, here].transpose(1, 2).where(others, -1.0).max(dim=2)  # weights (heads, T, T)
    return position.where(weight >= 0, here), weight


def _look(position: Tensor, weight: Tensor) -> Look | None:
    return Look(position=int(position), weight=float(weight)) if weight >= 0 else None


def _answer(run: PanelRun) -> Fields:
    if run.ask.rows == "heads":
        return {"patterns": patterns_by_head(run)}
    return {"patterns_by_token": patterns_by_token(run)}


PANEL = Panel(name="patterns", keeps=frozenset({"chosen"}), answer=_answer, rows=rows_of_products)
