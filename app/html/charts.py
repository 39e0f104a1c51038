"""The geometry of the plots: paths, points and labels as numbers and text; the SVG around them is in templates/."""

from collections.abc import Sequence

from app.html.numbers import HEAT_STEPS
from app.views.prompt import Coverage
from app.views.token_text import visible
from app.views.tokens import Token

WINDOW = 24  # positions of a text that stand beside each other
LABEL = 11  # characters of a label


def histogram_path(counts: Sequence[int], width: int, height: int) -> str:
    """Bars by the square root of the counts, so that few still show."""
    most = max(counts, default=0) ** 0.5 or 1.0
    step = width / max(1, len(counts))
    heights = [max(1.0, height * count**0.5 / most) if count else 0.0 for count in counts]
    return "".join(
        f"M{i * step:.4g} {height}v{-bar:.3g}h{step - 1:.3g}v{bar:.3g}z" for i, bar in enumerate(heights) if bar
    )


def attention_squares(weights: Sequence[Sequence[float]]) -> list[tuple[int, str]]:
    """A head's weights as unit squares: one path for each step of heat, by the square root of the weight."""
    paths: dict[int, list[str]] = {}
    for y, row in enumerate(weights):
        for x, weight in enumerate(row):
            if step := round(HEAT_STEPS * weight**0.5):
                paths.setdefault(min(step, HEAT_STEPS), []).append(f"M{x} {y}h1v1h-1z")
    return [(step, "".join(squares)) for step, squares in sorted(paths.items())]


def axis_labels(tokens: Sequence[Token]) -> list[tuple[int, str]]:
    """Positions and their tokens, cut; where they are too many, every few positions and their numbers."""
    step = -(-len(tokens) // WINDOW)
    texts = [(at, visible(tokens[at]["token"]) if step == 1 else str(at)) for at in range(0, len(tokens), step)]
    return [(at, text if len(text) <= LABEL else text[: LABEL - 1] + "…") for at, text in texts]


def coverage_points(rows: Sequence[Coverage], share: str, width: int, height: int) -> str:
    """A line through the layers; `share` is the field to draw: covered or shuffled."""
    step = width / max(1, len(rows) - 1)
    return " ".join(f"{i * step:.1f},{height * (1 - row[share]):.1f}" for i, row in enumerate(rows))  # type: ignore[literal-required]


def shown_positions(n_tokens: int, chosen: int | None) -> range:
    """The positions that a table has room for: all, or those around the chosen one."""
    if n_tokens <= WINDOW:
        return range(n_tokens)
    start = min(max(0, (chosen or 0) - WINDOW // 2), n_tokens - WINDOW)
    return range(start, start + WINDOW)


def most_attended(weights: Sequence[float], n: int) -> list[tuple[int, float]]:
    """The positions to which one attends most, and how much."""
    return sorted(enumerate(weights), key=lambda entry: (-entry[1], entry[0]))[:n]
