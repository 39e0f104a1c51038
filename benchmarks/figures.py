"""A figure: what was measured, its bound, and whether it is kept. Timing helpers that all benchmarks share."""

import time
from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True)
class Figure:
    name: str
    measured: float
    bound: float | None = None  # None: reported only
    at_least: bool = False  # the bound is a lower one
    unit: str = "x"

    def standing(self) -> str:
        if self.bound is None:
            return "reported"
        kept = self.measured >= self.bound if self.at_least else self.measured <= self.bound
        return "ok" if kept else "short"

    def line(self) -> str:
        bound = f"{'>=' if self.at_least else '<='} {self.bound:g} {self.unit}" if self.bound is not None else ""
        return f"{self.name:<66} {self.measured:>9.2f} {self.unit:<3} {bound:>12} {self.standing()}"

    def row(self, part: str) -> str:
        """Return the figure as a row of the table in docs/speed.md."""
        unit = f" {self.unit.replace('x', '×')}".rstrip()
        bound = f"{'≥' if self.at_least else '≤'} {self.bound:g}{unit}" if self.bound is not None else ""
        standing = self.standing().replace("short", "**short**")
        return f"| {part} | {self.name} | {self.measured:.2f}{unit} | {bound} | {standing} |"


def with_rows(page: str, part: str, rows: list[str]) -> str:
    """Return the text of docs/speed.md with these rows instead of those that the table had of this part."""
    old = [line for line in page.splitlines(keepends=True) if line.startswith(f"| {part} |")]
    new = "".join(f"{row}\n" for row in rows)
    if not old:
        return page.replace("\n\n<!-- end -->", f"\n{new}\n<!-- end -->", 1)
    return page.replace("".join(old), new, 1)


def seconds(work: Callable[[], object], repeats: int = 1) -> float:
    """Return the seconds of the shortest of some runs."""
    best = float("inf")
    for _ in range(repeats):
        start = time.perf_counter()
        work()
        best = min(best, time.perf_counter() - start)
    return best
