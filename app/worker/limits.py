"""Limit what one request may ask of a worker. Each check raises TooLarge, which names the limit."""

from bisect import bisect_right
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from lexiscope.app.settings import Settings
from lexiscope.precompute.live.wire import asks
from lexiscope.precompute.live.wire.errors import TooLarge
from lexiscope.precompute.live.wire.fields import Ask

# a function that returns the estimated seconds of a request, given the number of its prompt's tokens
Estimate = Callable[[Ask[Any], int], float]

ATTENTION_NUMBERS = 4_000_000  # most attention weights in one answer: about 40 MB of JSON
CELL_TOKENS = 200_000  # most tokens in the cells of one answer: about 10 MB of JSON
SHEET_LIST_TOKENS = 15  # tokens in the lists of a usual row of a sheet; rows with more count for more of them


@dataclass(frozen=True)
class Limits:
    settings: Settings

    def check_lists(self, ask: Ask[Any]) -> None:
        match ask:
            case asks.SeedsAsk():
                self._check("a seed search", len(ask.words), "words")
            case asks.RelationAsk() | asks.TransitionAsk():
                self._check("a relation", len(ask.pairs), "pairs")
            case asks.ThroughHeadsAsk():
                self._check("a table of heads", sum(map(len, ask.words)), "words")
            case asks.PromptAsk():
                self._check("a run", len(ask.changes), "changes")
                self._check("a run", len(ask.neurons), "neurons")

    def check_heads(self, ask: asks.ThroughHeadsAsk, n_heads: int) -> None:
        """Refuse a request for too many heads times words: each takes two products with the vocabulary."""
        words, heads = len(ask.words), len(ask.layers) * (n_heads if ask.head is None else 1)
        if words * heads > (limit := self.settings.heads_limit):
            raise TooLarge(
                f"{words} words through {heads} heads are {words * heads}: up to {limit} are computed at once "
                "(the setting heads_limit). Ask for fewer words or layers, or for one head"
            )

    def check_text(self, text: str, longest_token: int) -> None:
        """Refuse a text that surely has too many tokens, before it is split into them."""
        if len(text) > self.settings.prompt_tokens * longest_token:
            raise TooLarge(
                f"this prompt has {len(text)} characters, too many for {self.settings.prompt_tokens} tokens, which are "
                "the most that are read (the setting prompt_tokens)"
            )

    def check_tokens(self, tokens: int, n_positions: int) -> None:
        """Refuse a prompt of too many tokens. A model may have fewer positions than the setting allows."""
        if tokens > min(self.settings.prompt_tokens, n_positions):
            of = "the setting prompt_tokens" if self.settings.prompt_tokens <= n_positions else "the model's positions"
            limit = min(self.settings.prompt_tokens, n_positions)
            raise TooLarge(f"this prompt has {tokens} tokens: up to {limit} are read ({of})")

    def check_cells(self, panel: str, cells: int, k: int) -> None:
        """Refuse an answer with too many tokens: the panel `evolution` has k at every position after every step,
        `patterns` has k in every list of every position."""
        if cells * k > CELL_TOKENS:
            raise TooLarge(
                f"{panel} in {cells} cells with {k} tokens each is too much for one answer: up to "
                f"{CELL_TOKENS} are given. Ask for fewer (k), for a shorter text, or leave this panel out"
            )

    def check_attention(self, tokens: int, heads: int) -> None:
        """Refuse an answer with too many attention weights: their number grows with the square of the prompt's
        length."""
        if heads * tokens * (tokens + 1) // 2 > ATTENTION_NUMBERS:
            most = max(n for n in range(tokens) if heads * n * (n + 1) // 2 <= ATTENTION_NUMBERS)
            raise TooLarge(
                f"attention of {heads} heads over {tokens} tokens is too much for one answer: give up to {most} "
                "tokens, or leave this panel out"
            )

    def check_sheet(self, tokens: int, heads: int, listed: int) -> None:
        """Refuse a sheet with too many rows: it has one for each token at each of the `heads` of all layers, with
        `listed` tokens in lists."""
        rows = self.settings.sheet_rows
        limit = min(rows, rows * SHEET_LIST_TOKENS // listed)
        if heads * tokens > limit:
            of = " (the setting sheet_rows)" if limit == rows else f" of {listed} tokens each (fewer with k)"
            raise TooLarge(
                f"the sheet of this text would have {heads * tokens:,} rows, {heads:,} for each of its {tokens:,} "
                f"tokens: up to {limit:,}{of} are computed, those of {limit // heads:,} tokens"
            )

    def check_seconds(self, ask: Ask[Any], tokens: int, estimate: Estimate) -> None:
        """Refuse a request whose estimated time is too long, and name what would take less."""
        seconds = estimate(ask, tokens)
        if seconds > self.settings.ask_seconds:
            raise TooLarge(
                f"{_described(ask, tokens)} would take about {_seconds(seconds)} on this machine: up to "
                f"{self.settings.ask_seconds:g} s are computed for one request (the setting ask_seconds)"
                + "".join(f"; {way}" for way in _cheaper(ask, tokens, estimate, self.settings.ask_seconds))
            )

    def _check(self, what: str, number: int, unit: str) -> None:
        if number > (limit := self.settings.seeds_limit):
            raise TooLarge(f"{what} with {number} {unit}: up to {limit} are taken (the setting seeds_limit)")


def _described(ask: Ask[Any], tokens: int) -> str:
    match ask:
        case asks.PromptAsk():
            number = f"{len(ask.panel)} panel{'s' * (len(ask.panel) > 1)}"
            panels = f"{number} ({', '.join(sorted(ask.panel))})" if ask.panel else "no panels"
            twice = ", once changed and once not," if ask.changes else ""
            second = " and one of a second text" if ask.from_ else ""
            return f"a run of {tokens} tokens{twice}{second} with {panels}"
        case asks.StatesAsk():
            return f"a run of {tokens} tokens"
        case asks.StatesReadingAsk():
            return f"{tokens} states as tokens"
        case asks.RelationAsk() | asks.TransitionAsk():
            return f"a relation of {len(ask.pairs)} pairs"
        case asks.SeedsAsk(heads=1):
            return "a seed search with all heads"
        case asks.SeedsAsk():
            return "a seed search"
        case _:
            return "this"


def _cheaper(ask: Ask[Any], tokens: int, estimate: Estimate, limit: float) -> Iterator[str]:
    """Yield texts that name what a visitor could ask for instead, which takes less time."""
    match ask:
        case asks.PromptAsk():
            if fewer := bisect_right(range(1, tokens), limit, key=lambda n: estimate(ask, n)):
                yield f"up to {fewer} tokens would do"
            if "sweep" in ask.panel and ask.over == "neurons" and ask.cut is not None:
                usual = estimate(ask.model_copy(update={"cut": None}), tokens)
                yield f"without cut, the strongest {asks.STRONGEST_NEURONS} neurons take about {_seconds(usual)}"
            without = {
                panel: estimate(ask.model_copy(update={"panel": tuple({*ask.panel} - {panel})}), tokens)
                for panel in ask.panel
            }
            if without:
                panel = min(without, key=without.__getitem__)
                yield f"without {panel} it takes about {_seconds(without[panel])}"
        case asks.StatesAsk() | asks.StatesReadingAsk():
            if fewer := bisect_right(range(1, tokens), limit, key=lambda n: estimate(ask, n)):
                yield f"up to {fewer} tokens would do"
        case asks.RelationAsk():
            yield f"up to {int(limit * len(ask.pairs) / estimate(ask, 0))} pairs would do"
        case asks.TransitionAsk():
            yield "ask for fewer neurons (k) or fewer pairs"
        case asks.SeedsAsk(heads=1):
            plain = estimate(ask.model_copy(update={"heads": 0}), 0)
            yield f"without heads it takes about {_seconds(plain)}"
        case asks.SeedsAsk(rank="fit"):
            by_score = estimate(ask.model_copy(update={"rank": "score"}), 0)
            yield f"by the paper's score (rank=score) it takes about {_seconds(by_score)}"


def _seconds(seconds: float) -> str:
    return f"{seconds:.1f} s" if seconds < 10 else f"{seconds:.0f} s"
