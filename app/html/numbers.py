"""Numbers as people read them, and the steps of bars and heat that lexiscope.css knows.
The content security policy allows no style in a page: every length and colour is a step, in a data attribute."""

from collections.abc import Iterable, Sequence
from math import log

from app.views.model import LayerRow
from app.views.tokens import ScoredToken, TokenPair

BAR_STEPS = 50
HEAT_STEPS = 8


def number(value: float) -> str:
    return f"{value:.3f}" if value >= 0 else f"−{-value:.3f}"


def score(value: float, peak: float) -> str:
    """A score of a list whose largest is `peak`: four figures of that, so that the points of a column stand in line."""
    digits = 3 if peak < 10 else 2 if peak < 100 else 1 if peak < 1000 else 0
    return f"{value:.{digits}f}" if value >= 0 else f"−{-value:.{digits}f}"


def ratio(value: float | None) -> str:
    """A number that is usually between 0 and 1, such as a coherence, in little room."""
    if value is None:
        return "–"
    text = f"{abs(value):.2f}".removeprefix("0")
    return f"−{text}" if value < 0 and text != ".00" else text


def percent(p: float) -> str:
    """A probability in little room."""
    if p >= 0.9995:
        return "100%"
    if p >= 0.0995:
        return f"{p:.0%}"
    return f"{p:.1%}" if p >= 0.0005 else "<0.1%"


def predicted(value: float, predicts: str) -> str:
    """What a prediction holds, in little room: a probability, or a cosine where the model predicts no tokens."""
    return ratio(value) if predicts == "nearest" else percent(value)


def thousands(value: int) -> str:
    """1234567 -> "1,234,567"."""
    return f"{value:,}"


def short_rank(rank: float) -> str:
    """A mean rank in little room: 7.5, 43, 1.2k, 23k."""
    if rank < 9.95:
        return f"{rank:.1f}".removesuffix(".0")
    if rank < 999.5:
        return f"{rank:.0f}"
    return f"{rank / 1000:.1f}k" if rank < 9950 else f"{rank / 1000:.0f}k"


def peak(*lists: Sequence[ScoredToken] | Sequence[TokenPair]) -> float:
    """The largest score in size; lists begin with theirs."""
    return max((abs(entries[0]["score"]) for entries in lists if entries), default=0.0)


def largest(values: Iterable[float]) -> float:
    """The largest value in size; 0 if there is none."""
    return max(map(abs, values), default=0.0)


def bar(value: float, peak: float) -> int:
    """The length of a bar (data-bar), `peak` being the longest."""
    return round(abs(value) * (BAR_STEPS / peak)) if peak else 0


def heat(value: float | None, hottest: float = 1.0) -> int:
    """The strength of a colour (data-heat); 0 is also what has no number."""
    return 0 if value is None else round(HEAT_STEPS * min(1.0, max(0.0, value) / hottest))


def hottest(rows: Iterable[LayerRow], matrix: str) -> float:
    """The largest coherence in a map: what its darkest cells stand for."""
    cells = [cell["coherence"] for row in rows for cell in (row.vo if matrix == "vo" else row.qk)]
    return max((coherence for coherence in cells if coherence), default=1.0)


def rank_heat(rank: float, d_vocab: int) -> int:
    """The strength of a colour (data-heat) by the magnitude of a rank: rank 1 is the hottest, a twentieth of the
    vocabulary has no colour."""
    return round(HEAT_STEPS * max(0.0, 1 - log(max(rank, 1.0)) / log(max(d_vocab / 20, 2.0))))


def clear_rank(d_vocab: int) -> int:
    """Up to which mean rank a head is said to carry or to suppress a relation: 1 % of the tokens."""
    return max(1, d_vocab // 100)
