"""Counters as Prometheus reads them."""

import re

from starlette.testclient import TestClient

from app.metrics import BUCKETS, MEDIA_TYPE, Metrics
from tests.support.site import GPT2

LINE = re.compile(r'[a-z_]+(\{[a-z_]+="[^"\\\n]*"(,[a-z_]+="[^"\\\n]*")*\})? [0-9.e+-]+')


def test_a_histogram_adds_up() -> None:
    metrics = Metrics()
    for seconds in (0.0001, 0.001, 0.02, 7):
        metrics.count("neuron", 200, seconds)
    metrics.count("neuron", 404, 0.0001)
    text = metrics.text()
    assert 'lexiscope_requests_total{route="neuron",status="200"} 4\n' in text
    assert 'lexiscope_requests_total{route="neuron",status="404"} 1\n' in text
    found = re.findall(r'seconds_bucket\{route="neuron",le="(.*?)"\} (\d+)', text)
    assert [bound for bound, _ in found] == [*map(str, BUCKETS), "+Inf"]
    assert [int(number) for _, number in found] == [2, 3, 3, 3, 3, 4, 4, 4, 4, 4, 5]
    assert 'seconds_count{route="neuron"} 5\n' in text
    assert 'seconds_sum{route="neuron"} 7.021200\n' in text


def test_every_line_can_be_read(client: TestClient) -> None:
    client.get(f"/{GPT2}/ff/1/5")
    client.get('/no/such/page/"\\')
    answer = client.get("/-/metrics")
    assert answer.headers["content-type"] == MEDIA_TYPE
    assert answer.headers["cache-control"] == "no-store"
    lines = answer.text.splitlines()
    assert all(line.startswith(("# HELP ", "# TYPE ")) or LINE.fullmatch(line) for line in lines)
    routes = set(re.findall(r'route="(.*?)"', answer.text))
    assert {"neuron", "none"} <= routes
    assert not any("/" in route for route in routes)  # addresses would be without end
