"""Count requests and measure their time, for Prometheus. Each app has its own registry, so that two apps in one process
do not mix."""

from prometheus_client import (
    CONTENT_TYPE_PLAIN_0_0_4,
    CollectorRegistry,
    Counter,
    Histogram,
    ProcessCollector,
    disable_created_metrics,
    generate_latest,
)

BUCKETS = (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 1.0)  # upper bounds of times, in seconds
MEDIA_TYPE = CONTENT_TYPE_PLAIN_0_0_4

disable_created_metrics()  # type: ignore[no-untyped-call]  # they would be a line more for each series, which nobody reads


class Metrics:
    def __init__(self) -> None:
        self._registry = CollectorRegistry()
        self._requests = Counter(
            "lexiscope_requests",
            "Requests answered, by route and status.",
            ("route", "status"),
            registry=self._registry,
        )
        self._seconds = Histogram(
            "lexiscope_request_seconds",
            "Time to answer, by route.",
            ("route",),
            buckets=BUCKETS,
            registry=self._registry,
        )
        ProcessCollector(registry=self._registry)  # adds process_resident_memory_bytes and others

    def count(self, route: str, status: int, seconds: float) -> None:
        self._requests.labels(route, str(status)).inc()
        self._seconds.labels(route).observe(seconds)

    def text(self) -> bytes:
        return generate_latest(self._registry)
