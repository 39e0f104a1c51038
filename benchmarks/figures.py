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

    def line(self) -> str:
        if self.bound is None:
            return f"{self.name:<66} {self.measured:>9.2f} {self.unit:<3} {'':>12} reported"
        kept = self.measured >= self.bound if self.at_least else self.measured <= self.bound
        sign = ">=" if self.at_least else "<="
        bound = f"{sign} {self.bound:g} {self.unit}"
        return f"{self.name:<66} {self.measured:>9.2f} {self.unit:<3} {bound:>12} {'ok' if kept else 'short'}"


def seconds(work: Callable[[], object], repeats: int = 1) -> float:
    """Return the seconds of the shortest of some runs."""
    best = float("inf")
    for _ in range(repeats):
        start = time.perf_counter()
        work()
        best = min(best, time.perf_counter() - start)
    return best
