"""What the way through Ray Serve adds to a seed search: a plain worker and one replica are asked the same in turn, over
connections that stay open, as the server's do. GPT-2 small's size, random weights; both have one thread."""

import http.client
import json
import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from statistics import median
from urllib.parse import urlsplit

from benchmarks.figures import Figure, seconds
from benchmarks.live import WORDS
from benchmarks.models import SIZES, random_gpt2

ROUNDS = 200
WARM_UP_ASKS = 20  # that are not counted


def figures(scratch: Path, tokenizer: Path) -> Iterator[Figure]:
    folder = scratch / "serve-small"
    random_gpt2(folder, "small", SIZES["small"][0], tokenizer)
    with _worker(folder, scratch) as plain, _worker(folder, scratch, "--ray") as through_serve:
        took: dict[str, list[float]] = {plain: [], through_serve: []}
        connections = {url: http.client.HTTPConnection(urlsplit(url).netloc, timeout=60) for url in took}
        for number in range(WARM_UP_ASKS + ROUNDS):
            words = WORDS[number % 8], WORDS[number // 8 % 8]
            ask = json.dumps({"words": [{"word": word} for word in words], "kind": ["ff_value"]})
            for url, connection in connections.items():
                took[url].append(seconds(lambda url=url, to=connection: _post(to, url, ask)))  # type: ignore[misc]  # noqa: B023
        for connection in connections.values():
            connection.close()
    alone, served = (sorted(took[url][WARM_UP_ASKS:]) for url in (plain, through_serve))
    added = median(b - a for a, b in zip(took[plain][WARM_UP_ASKS:], took[through_serve][WARM_UP_ASKS:], strict=True))
    yield Figure("serve: a seed search at a plain worker, median", 1000 * median(alone), unit="ms")
    yield Figure("serve: what the way through Ray Serve adds, median", 1000 * added, unit="ms")
    yield Figure("serve: through Ray Serve / plain, medians", median(served) / median(alone))
    tenth = ROUNDS * 9 // 10
    yield Figure("serve: through Ray Serve / plain, slowest tenth", served[tenth] / alone[tenth])


@contextmanager
def _worker(folder: Path, data: Path, *options: str) -> Iterator[str]:
    """Start a worker and yield its address, once it is ready."""
    words = ["worker", "--model", str(folder), "--data", str(data), "--port", "0", "--threads", "1", *options]
    with subprocess.Popen(
        [sys.executable, "-m", "lexiscope.app.commands.cli", *words], stdout=subprocess.PIPE, text=True
    ) as process:
        try:
            assert process.stdout
            while not (found := re.search(r" is at (http://[^ ]+)", process.stdout.readline())):
                assert process.poll() is None, "it has ended"
            yield found[1]
        finally:
            process.terminate()


def _post(connection: http.client.HTTPConnection, url: str, ask: str) -> None:
    connection.request("POST", f"{urlsplit(url).path}/seeds", ask, {"Content-Type": "application/json"})
    with closing(connection.getresponse()) as answer:
        content = answer.read()
        assert answer.status == 200, content
