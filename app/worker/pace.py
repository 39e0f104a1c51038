"""How long a cost takes on this machine: first by the speed measured when the model was loaded, then by experience."""

LEARNED_SHARE = 0.3  # of what a batch of a second or more says; of shorter ones less
MOST_TIMES = 4.0  # that experience may differ from the start: one odd batch must not have everything refused


class Pace:
    """`speed`: multiplications a second."""

    def __init__(self, speed: float) -> None:
        self._first = self._seconds = 1 / speed  # of one multiplication

    def seconds(self, cost: float) -> float:
        return cost * self._seconds

    def seconds_at_best(self, cost: float) -> float:
        """On a machine that does nothing else: what is refused should not depend on what others do just now."""
        return cost * min(self._seconds, self._first)

    def learn(self, cost: float, seconds: float) -> None:
        """A cost has taken so long."""
        if cost:
            seen = min(max(seconds / cost, self._first / MOST_TIMES), self._first * MOST_TIMES)
            self._seconds += LEARNED_SHARE * min(1.0, seconds) * (seen - self._seconds)
