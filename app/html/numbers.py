"""Write numbers as people read them, and return the steps of lengths and colours that lexiscope.css defines. The
content security policy allows no style attribute in a page: every length and colour is one of a few steps, in a data
attribute."""

from collections.abc import Iterable, Mapping, Sequence
from math import floor, log, log10
from typing import Any, Literal

from lexiscope.app.lists.similarity import TELLING
from lexiscope.app.lists.view import ScoredToken, TokenPair

BAR_STEPS = 50
HEAT_STEPS = 8
MOST_SIMILAR = 5  # how many most similar subheads a head's page names above its table


def number(value: float) -> str:
    return f"{value:.3f}" if value >= 0 else f"−{-value:.3f}"


def score(value: float, peak: float) -> str:
    """Write a score of a list whose largest score is `peak`, with as many decimals as give `peak` four digits, so that
    the decimal points of a column are aligned. Scores far below 1, which differences of two models have, get up to
    three digits and no 0 before the point."""
    digits = 3 if peak < 10 else 2 if peak < 100 else 1 if peak < 1000 else 0
    if 0 < peak < 0.1:
        digits = min(5, 2 - floor(log10(peak)))
    text = f"{abs(value):.{digits}f}"
    if digits > 3:
        text = text.removeprefix("0")
    return text if value >= 0 else f"−{text}"


def ratio(value: float | None) -> str:
    """Write a number that is usually between 0 and 1, such as a share or a cosine, with few characters."""
    if value is None:
        return "–"
    text = f"{abs(value):.2f}".removeprefix("0")
    return f"−{text}" if value < 0 and text != ".00" else text


def percent(p: float) -> str:
    """Write a probability as a percentage with few characters."""
    if p >= 0.9995:
        return "100%"
    if p >= 0.0995:
        return f"{p:.0%}"
    return f"{p:.1%}" if p >= 0.0005 else "<0.1%"


def predicted(value: float, predicts: str) -> str:
    """Write the number of a prediction with few characters: a probability or, if the model predicts no tokens, a
    cosine."""
    return ratio(value) if predicts == "nearest" else percent(value)


def z_text(z: float) -> str:
    return f"{z:.1f}".replace("-", "−")


def thousands(value: int) -> str:
    """Write a number with commas: 1234567 becomes "1,234,567"."""
    return f"{value:,}"


def short_rank(rank: float) -> str:
    """Write a mean rank with few characters: 7.5, 43, 1.2k, 23k."""
    if rank < 9.95:
        return f"{rank:.1f}".removesuffix(".0")
    if rank < 999.5:
        return f"{rank:.0f}"
    return f"{rank / 1000:.1f}k" if rank < 9950 else f"{rank / 1000:.0f}k"


def peak(*lists: Sequence[ScoredToken] | Sequence[TokenPair]) -> float:
    """Return the largest absolute score in some lists; the first entry of each list has its largest."""
    return max((abs(entries[0]["score"]) for entries in lists if entries), default=0.0)


def most_similar(rows: Iterable[Mapping[str, Any]], matrix: Literal["vo", "qk"]) -> list[Mapping[str, Any]]:
    """Return the subheads (channels of a head) whose two lists are most similar, the top of one with the top or the
    bottom of the other. Similarities that are too small to mean anything are left out."""

    def larger(row: Mapping[str, Any]) -> float:
        of = row["similarity"][matrix]
        return max(of["top"], of["bottom"]) if of else 0.0

    return sorted((row for row in rows if larger(row) >= TELLING), key=lambda row: -larger(row))[:MOST_SIMILAR]


def largest(values: Iterable[float]) -> float:
    """Return the largest absolute value; 0 if there is none."""
    return max(map(abs, values), default=0.0)


def bar(value: float, peak: float) -> int:
    """Return the length of a bar as a step of lexiscope.css (data-bar); a bar of `peak` is the longest."""
    return round(abs(value) * (BAR_STEPS / peak)) if peak else 0


def heat(value: float | None, hottest: float = 1.0) -> int:
    """Return the strength of a colour as a step of lexiscope.css (data-heat). Without a number it is 0."""
    return 0 if value is None else round(HEAT_STEPS * min(1.0, max(0.0, value) / hottest))


def heat_steps(hottest: float) -> list[tuple[int, float]]:
    """Return every second strength of colour and the value that it stands for, as a legend."""
    return [(step, hottest * step / HEAT_STEPS) for step in range(0, HEAT_STEPS + 1, 2)]


def rank_heat(rank: float, d_vocab: int) -> int:
    """Return the strength of a colour (data-heat) for a rank, on a logarithmic scale: rank 1 has the strongest colour,
    and ranks from a twentieth of the vocabulary on have none."""
    return round(HEAT_STEPS * max(0.0, 1 - log(max(rank, 1.0)) / log(max(d_vocab / 20, 2.0))))


def expected(count: float) -> str:
    """Write with few characters how many heads would by chance do as well: 12, 2.7, 0.03, <0.001."""
    if count >= 9.95:
        return f"{count:.0f}"
    if count >= 0.095:
        return f"{count:.1f}"
    return f"{count:.1g}" if count >= 0.001 else "<0.001"
