"""Counts requests and their time, and writes them as Prometheus reads them.
Which requests are counted is for guard.py."""

import os
import time
from bisect import bisect_left
from collections import Counter, defaultdict
from itertools import accumulate

BUCKETS = (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 1.0)  # seconds
MEDIA_TYPE = "text/plain; version=0.0.4; charset=utf-8"


class Metrics:
    def __init__(self) -> None:
        self._started = time.time()
        self._requests: Counter[tuple[str, int]] = Counter()
        self._buckets: defaultdict[str, list[int]] = defaultdict(lambda: [0] * (len(BUCKETS) + 1))
        self._seconds: defaultdict[str, float] = defaultdict(float)

    def count(self, route: str, status: int, seconds: float) -> None:
        self._requests[route, status] += 1
        self._buckets[route][bisect_left(BUCKETS, seconds)] += 1
        self._seconds[route] += seconds

    def text(self) -> str:
        lines = _head("lexiscope_requests_total", "counter", "Requests answered, by route and status.")
        for (route, status), number in sorted(self._requests.items()):
            lines.append(f'lexiscope_requests_total{{route="{route}",status="{status}"}} {number}')
        lines += _head("lexiscope_request_seconds", "histogram", "Time to answer, by route.")
        for route, buckets in sorted(self._buckets.items()):
            for bound, number in zip((*BUCKETS, "+Inf"), accumulate(buckets), strict=True):
                lines.append(f'lexiscope_request_seconds_bucket{{route="{route}",le="{bound}"}} {number}')
            lines.append(f'lexiscope_request_seconds_sum{{route="{route}"}} {self._seconds[route]:.6f}')
            lines.append(f'lexiscope_request_seconds_count{{route="{route}"}} {sum(buckets)}')
        lines += _head("process_resident_memory_bytes", "gauge", "Resident memory.")
        lines.append(f"process_resident_memory_bytes {resident_bytes()}")
        lines += _head("process_start_time_seconds", "gauge", "When the server started, in Unix time.")
        lines.append(f"process_start_time_seconds {self._started:.3f}")
        return "\n".join(lines) + "\n"


def resident_bytes() -> int:
    """0 where the system does not say."""
    try:
        with open("/proc/self/statm") as file:
            return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except OSError:
        return 0


def _head(name: str, kind: str, meaning: str) -> list[str]:
    return [f"# HELP {name} {meaning}", f"# TYPE {name} {kind}"]
