"""The explorer against an empty FastAPI endpoint, by visitors on this machine.

Both run under the same uvicorn, with the same options (app/asgi/http_server.py); rounds alternate between them, and
figures are ratios of requests per second. The index is GPT-2 small's size with random lists, and thousands of different
neurons and heads are asked for in random order.
"""

import contextlib
import random
import re
import subprocess
import sys
import time
from collections.abc import Iterator
from itertools import cycle
from pathlib import Path
from statistics import median

from benchmarks.figures import Figure
from benchmarks.random_index import gpt2_shape, write_random_index
from benchmarks.visitors import Visit, until, visit

MIB = 2**20
N = 10_000
ROUNDS = 3
CROWD_SECONDS = 60
NAME = "random-small"


def figures(scratch: Path, tokenizer: Path) -> Iterator[Figure]:
    data = scratch / "served"
    shape = gpt2_shape(12, 768, 12)
    write_random_index(data, NAME, shape, tokenizer)
    generator = random.Random(0)
    every_neuron = [(layer, neuron) for layer in range(shape.n_layers) for neuron in range(shape.d_mlp)]
    neurons = [f"/{NAME}/ff/{layer}/{neuron}" for layer, neuron in generator.sample(every_neuron, N)]
    heads = [
        f"/{NAME}/head/{layer}/{head}?lens={lens}"
        for layer in range(shape.n_layers)
        for head in range(shape.n_heads)
        for lens in ("dot", "cosine")
    ]
    pairs = [
        f"/{NAME}/head/{layer}/{head}/{matrix}{{format}}?lens={lens}&preset={preset}"
        for layer in range(shape.n_layers)
        for head in range(shape.n_heads)
        for matrix in ("vo", "qk")
        for lens in ("dot", "cosine")
        for preset in ("all", "distinct", "words")
    ]
    generator.shuffle(heads)
    generator.shuffle(pairs)
    start = time.perf_counter()
    with serving(data) as (ours, port), contextlib.ExitStack() as later:
        yield Figure("explorer: start of the process to the first answer", first_answer(port, start), 1, unit="s")
        _, empty = later.enter_context(serving(None))
        compared = {
            "JSON of a neuron": ([f"{path}.json" for path in neurons], 0.3, False),
            "JSON of a head's pairs": ([path.format(format=".json") for path in pairs], None, False),
            "page of a neuron": (neurons, 0.06, False),
            "page of a head": (heads, 0.03, False),
            "page of a head's pairs": ([path.format(format="") for path in pairs], 0.03, False),
            "repeated visit of a neuron with its ETag": (neurons[:2000], None, True),
        }
        for name, (paths, bound, again) in compared.items():
            yield Figure(f"explorer: {name} / empty endpoint", against(port, empty, paths, again), bound, at_least=True)
        yield Figure("explorer: resident after that", resident(ours) / MIB, 200, unit="MiB")
        yield from crowd(port, ours, neurons)


def against(port: int, empty: int, paths: list[str], again: bool) -> float:
    """Return requests per second of our server as a share of the empty endpoint's, the median of some rounds."""
    etags = check(visit(port, iter(paths), 8)).etags if again else None
    ratios = []
    for _ in range(ROUNDS):
        theirs = check(visit(empty, iter(["/"] * len(paths)), 8)).rate
        ratios.append(check(visit(port, iter(paths), 8, etags), 304 if again else 200).rate / theirs)
    return median(ratios)


def crowd(port: int, ours: subprocess.Popen[str], paths: list[str]) -> Iterator[Figure]:
    few = check(visit(port, until(cycle(paths), CROWD_SECONDS / 3), 8)).rate
    before = resident(ours)
    many = check(visit(port, until(cycle(paths), CROWD_SECONDS), 200)).rate  # an error ends the benchmark
    growth = (resident(ours) - before) / MIB
    yield Figure(
        f"explorer: 200 visitors for {CROWD_SECONDS} s, no error, / 8 visitors", many / few, 0.8, at_least=True
    )
    yield Figure("explorer: growth of memory during that", growth, unit="MiB")


def check(met: Visit, status: int = 200) -> Visit:
    assert not met.broken, f"{met.broken} connections were broken"
    assert met.answers.keys() == {status}, met.answers
    return met


@contextlib.contextmanager
def serving(data: Path | None) -> Iterator[tuple[subprocess.Popen[str], int]]:
    """Start a server in another process and yield the process and its port; without data, the empty endpoint."""
    command = (
        ["-m", "benchmarks.empty_app"]
        if data is None
        else ["-m", "lexiscope.app.commands.cli", "serve", "--data", str(data)]
    )
    process = subprocess.Popen([sys.executable, *command, "--port", "0"], stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout
        said = re.search(r"http://[^ ]+:([0-9]+)", process.stdout.readline())
        assert said, "the server did not say where it is"
        yield process, int(said[1])
    finally:
        process.terminate()
        process.wait()


def first_answer(port: int, start: float) -> float:
    check(visit(port, iter(["/-/health"]), 1))
    return time.perf_counter() - start


def resident(process: subprocess.Popen[str]) -> int:
    """Return the bytes of memory that are the process's own, or mapped and present."""
    status = Path(f"/proc/{process.pid}/status").read_text()
    return int(re.findall(r"VmRSS:\s+([0-9]+) kB", status)[0]) * 1024
