"""Numbers as people read them: scores, ratios, sizes, and the steps of bars and heat that lexiscope.css knows.
A style may not stand in a page, so every length and colour is a step, in a data attribute."""

from collections.abc import Iterable, Sequence
from typing import Any

from markupsafe import Markup

from app.views.page_types import LayerRow, RoleList
from app.views.view_types import PairView, ScoredView

BAR_STEPS = 50
HEAT_STEPS = 8


def number(value: float) -> str:
    return f"{value:.3f}" if value >= 0 else f"−{-value:.3f}"


def formats(peak: float) -> tuple[str, str]:
    """%-formats for scores up to `peak` in size, and for the sizes of negative ones: four figures, points in line."""
    digits = 3 if peak < 10 else 2 if peak < 100 else 1 if peak < 1000 else 0
    return f"%.{digits}f", f"−%.{digits}f"


def ratio(value: float | None) -> str:
    """A number that is usually between 0 and 1, such as a coherence, in little room."""
    if value is None:
        return "–"
    text = f"{abs(value):.2f}".removeprefix("0")
    return f"−{text}" if value < 0 and text != ".00" else text


def size(n_bytes: float) -> str:
    """1234567 -> "1.23 MB"."""
    for unit in ("B", "kB", "MB", "GB"):
        if n_bytes < 999.5:
            return f"{n_bytes:.3g} {unit}"
        n_bytes /= 1000
    return f"{n_bytes:.3g} TB"


def steps_per(peak: float) -> float:
    """What turns a magnitude into steps of a bar, `peak` being the longest."""
    return BAR_STEPS / peak if peak else 0.0


def peak(*lists: Sequence[ScoredView] | Sequence[PairView]) -> float:
    """The largest magnitude; lists begin with theirs."""
    return max((abs(entries[0]["score"]) for entries in lists if entries), default=0.0)


def peak_of_roles(roles: Iterable[RoleList]) -> float:
    return max((abs(place["score"]) for role in roles for place in role.places), default=0.0)


def heat(value: float | None, hottest: float = 1.0) -> int:
    """0 to 8, for data-heat; 0 is also what has no number."""
    return 0 if value is None else round(HEAT_STEPS * min(1.0, max(0.0, value) / hottest))


def hottest(rows: Iterable[LayerRow], matrix: str) -> float:
    """The largest coherence in a map: what its darkest cells stand for."""
    cells = [cell["coherence"] for row in rows for cell in (row.vo if matrix == "vo" else row.qk)]
    return max((coherence for coherence in cells if coherence), default=1.0)


def strip(counts: Sequence[int], width: int = 80, height: int = 18) -> Markup:
    """A histogram as the path of an SVG of that size; by the square root of the counts, so that few still show."""
    most = max(counts, default=0) ** 0.5 or 1.0
    step = width / max(1, len(counts))
    tall = [max(1.0, height * count**0.5 / most) if count else 0.0 for count in counts]
    return Markup(
        "".join(f"M{i * step:.4g} {height}v{-h:.3g}h{step - 1:.3g}v{h:.3g}z" for i, h in enumerate(tall) if h)
    )


FUNCTIONS: dict[str, Any] = {
    made.__name__: made for made in (number, ratio, size, peak, peak_of_roles, heat, hottest, strip)
}
