"""The numbers that one live request may not exceed, each named when it is."""

import re
from typing import Any

import pytest

from lexiscope.app.settings import Settings
from lexiscope.app.worker.limits import Limits
from lexiscope.precompute.live.wire.asks import PromptAsk, RelationAsk, SeedsAsk, ThroughHeadsAsk, TransitionAsk
from lexiscope.precompute.live.wire.errors import TooLarge
from lexiscope.precompute.live.wire.grammar import HeadOff, Term, Word, WordPair

LIMITS = Limits(Settings(prompt_tokens=100, seeds_limit=3, heads_limit=24))
PAIR, TERM, OFF = WordPair(source="a", target="b"), Term(word="a"), HeadOff(layer=0, head=0)
WORD = Word(word="a")


@pytest.mark.parametrize(("ask", "said"), [
    (SeedsAsk(words=(TERM,) * 3, kind=("ff_key",), k=5), None),
    (SeedsAsk(words=(TERM,) * 4, kind=("ff_key",), k=5), "4 words: up to 3 are taken (the setting seeds_limit)"),
    (RelationAsk(pairs=(PAIR,) * 3), None),
    (RelationAsk(pairs=(PAIR,) * 4), "4 pairs: up to 3"),
    (TransitionAsk(pairs=(PAIR,) * 4), "4 pairs: up to 3"),
    (ThroughHeadsAsk(words=((WORD,) * 2, (WORD,)), layers=(0,)), None),
    (ThroughHeadsAsk(words=((WORD,) * 2, (WORD,) * 2), layers=(0,)), "4 words: up to 3"),
    (PromptAsk(text="a", k=5, off=(OFF,) * 4), "4 changes: up to 3"),
])  # fmt: skip
def test_numbers_of_things(ask: Any, said: str | None) -> None:
    if said is None:
        LIMITS.check_lists(ask)
        return
    with pytest.raises(TooLarge, match=re.escape(said)):
        LIMITS.check_lists(ask)


@pytest.mark.parametrize(("layers", "head", "said"), [
    (4, None, None), (5, None, "2 words through 15 heads are 30: up to 24 are computed at once"), (12, 2, None),
    (13, 2, "2 words through 13 heads"),
])  # fmt: skip
def test_words_times_heads(layers: int, head: int | None, said: str | None) -> None:
    ask = ThroughHeadsAsk(words=((WORD,), (WORD, WORD)), layers=tuple(range(layers)), head=head)
    if said is None:
        LIMITS.check_heads(ask, n_heads=3)
        return
    with pytest.raises(TooLarge, match=said):
        LIMITS.check_heads(ask, n_heads=3)


def test_a_text_that_is_too_long_for_any_tokens_is_not_split() -> None:
    LIMITS.check_text("a" * 700, longest_token=7)
    with pytest.raises(TooLarge, match=r"701 characters, too many for 100 tokens.*the setting prompt_tokens"):
        LIMITS.check_text("a" * 701, longest_token=7)


@pytest.mark.parametrize(("tokens", "n_positions", "said"), [
    (100, 1024, None),
    (101, 1024, "101 tokens: up to 100 are read (the setting prompt_tokens)"),
    (65, 64, "65 tokens: up to 64 are read (the model's positions)"),
])  # fmt: skip
def test_tokens_of_a_prompt(tokens: int, n_positions: int, said: str | None) -> None:
    if said is None:
        LIMITS.check_tokens(tokens, n_positions)
        return
    with pytest.raises(TooLarge, match=re.escape(said)):
        LIMITS.check_tokens(tokens, n_positions)


def test_evolution_that_fits_no_page() -> None:
    LIMITS.check_cells("evolution", 2 * 61 * 256, 5)
    with pytest.raises(TooLarge, match=r"31232 cells with 50 tokens each .*up to 200000"):
        LIMITS.check_cells("evolution", 2 * 61 * 256, 50)


@pytest.mark.parametrize(("tokens", "listed", "said"), [
    (74, 15, None),
    (75, 15, "would have 20,250 rows, 270 for each of its 75 tokens: up to 20,000 (the setting sheet_rows) are "
     "computed, those of 74 tokens"),
    (74, 3, None),
    (75, 3, "up to 20,000 (the setting sheet_rows)"),
    (8, 135, None),
    (9, 135, "up to 2,222 of 135 tokens each (fewer with k) are computed, those of 8 tokens"),
])  # fmt: skip
def test_rows_of_a_sheet(tokens: int, listed: int, said: str | None) -> None:
    if said is None:
        LIMITS.check_sheet(tokens, 270, listed)
        return
    with pytest.raises(TooLarge, match=re.escape(said)):
        LIMITS.check_sheet(tokens, 270, listed)


def test_attention_that_fits_no_page() -> None:
    LIMITS.check_attention(100, 270)
    with pytest.raises(TooLarge, match=r"attention of 720 heads over 256 tokens .* up to 104 tokens"):
        LIMITS.check_attention(256, 720)
    LIMITS.check_attention(104, 720)


def test_what_is_too_dear_is_told_its_numbers_and_what_is_cheaper() -> None:
    """A token takes a second, in each panel and without; a pair of a relation, and heads, take five."""

    def estimate(ask: Any, tokens: int) -> float:
        match ask:
            case PromptAsk():
                return tokens * (1 + len(ask.panel))
            case RelationAsk():
                return 5 * len(ask.pairs)
            case TransitionAsk():
                return 20
            case _:
                return 20 if getattr(ask, "heads", False) else 0.5

    limits = Limits(Settings(ask_seconds=15))
    panels = frozenset({"evolution", "coverage"})
    for ask, tokens, said in (
        (PromptAsk(text="a", panel=panels), 5, None),
        (PromptAsk(text="a", panel=panels), 6, "a run of 6 tokens with 2 panels (coverage, evolution) would take "
         "about 18 s on this machine: up to 15 s are computed for one request (the setting ask_seconds); up to 5 "
         "tokens would do; without "),
        (PromptAsk(text="a", panel=("sweep",), over="neurons", cut=1.0), 9,
         "; without cut, the strongest 200 neurons take about 18 s; without sweep it takes about 9.0 s"),
        (PromptAsk(text="a", panel=()), 16, "a run of 16 tokens with no panels would take about 16 s"),
        (PromptAsk(text="a", panel=("neurons",), off=(OFF,)), 9,
         "9 tokens, once changed and once not, with 1 panel (neurons)"),
        (RelationAsk(pairs=(PAIR,) * 3), 0, None),
        (RelationAsk(pairs=(PAIR,) * 4), 0, "a relation of 4 pairs would take about 20 s"),
        (RelationAsk(pairs=(PAIR,) * 4), 0, "; up to 3 pairs would do"),
        (TransitionAsk(pairs=(PAIR,)), 0, "; ask for fewer neurons (k) or fewer pairs"),
        (SeedsAsk(words=(TERM,), kind=("ff_key",), heads=True), 0, "; without heads it takes about 0.5 s"),
    ):  # fmt: skip
        if said is None:
            limits.check_seconds(ask, tokens, estimate)
            continue
        with pytest.raises(TooLarge, match=re.escape(said)):
            limits.check_seconds(ask, tokens, estimate)
