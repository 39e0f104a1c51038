"""Counters as Prometheus reads them."""

from prometheus_client.parser import text_string_to_metric_families
from starlette.testclient import TestClient

from lexiscope.app.metrics import BUCKETS, MEDIA_TYPE, Metrics
from tests.support.site import GPT2


def samples(text: str) -> dict[tuple[str, ...], float]:
    """By name and labels, each a word."""
    return {
        (sample.name, *sample.labels.values()): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }


def test_requests_are_counted_by_route_and_status() -> None:
    metrics = Metrics()
    for seconds in (0.0001, 0.001, 0.02, 7):
        metrics.count("neuron", 200, seconds)
    metrics.count("neuron", 404, 0.0001)
    found = samples(metrics.text().decode())
    assert found["lexiscope_requests_total", "neuron", "200"] == 4
    assert found["lexiscope_requests_total", "neuron", "404"] == 1
    assert found["lexiscope_request_seconds_count", "neuron"] == 5
    assert round(found["lexiscope_request_seconds_sum", "neuron"], 6) == 7.0212
    bounds = [*map(str, BUCKETS), "+Inf"]
    buckets = [found["lexiscope_request_seconds_bucket", bound, "neuron"] for bound in bounds]
    assert buckets == [2, 3, 3, 3, 3, 4, 4, 4, 4, 4, 5]


def test_the_page_of_metrics(client: TestClient) -> None:
    client.get(f"/{GPT2}/ff/1/5")
    client.get('/no/such/page/"\\')
    answer = client.get("/-/metrics")
    assert (answer.headers["content-type"], answer.headers["cache-control"]) == (MEDIA_TYPE, "no-store")
    found = samples(answer.text)
    routes = {labels[0] for name, *labels in found if name == "lexiscope_requests_total"}
    assert {"neuron", "none"} <= routes
    assert not any("/" in route for route in routes)  # addresses would be without end
    assert found[("process_resident_memory_bytes",)] > 0
    assert found[("process_start_time_seconds",)] > 0
