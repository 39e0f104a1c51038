"""Live computations at GPT-2 small's size with random weights: against the bare products they cannot do without,
against one at a time, and what the way through the server adds."""

import http.client
import json
import os
import re
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from statistics import median
from typing import Any, get_args

import torch
import transformers

from benchmarks.figures import Figure, seconds
from benchmarks.models import SIZES, random_gpt2
from benchmarks.random_index import gpt2_shape, write_random_index
from benchmarks.server import serving
from lexiscope.precompute.index.index import Index
from lexiscope.precompute.live.engine import Engine
from lexiscope.precompute.live.panels.coverage import rows_of_products
from lexiscope.precompute.live.panels.patterns import MESSAGES
from lexiscope.precompute.live.wire.answers import OWN_LISTS, PanelName
from lexiscope.precompute.live.wire.asks import PromptAsk, SeedsAsk
from lexiscope.precompute.live.wire.grammar import Term
from lexiscope.precompute.weights.checkpoint import Checkpoint

WORDS = ("horse", "dog", "lion", "river", "music", "green", "seven", "Paris")
TOKENS = 32
SHEET_TOKENS = 20
ROUNDS = 5
MEMORY_BESIDE = 500 * 10**6  # bytes that a worker may take beside the weights
hf: Any = transformers


def figures(scratch: Path, tokenizer: Path) -> Iterator[Figure]:
    layers = SIZES["small"][0]
    checkpoint = random_gpt2(scratch / "live-small", "small", layers, tokenizer)
    engine = Engine.load(checkpoint, "cpu")
    yield from seeds(engine)
    yield from prompts(engine, checkpoint)
    yield from round_trip(scratch, checkpoint, tokenizer)


def seeds(engine: Engine) -> Iterator[Figure]:
    ask = SeedsAsk(words=tuple(Term(word=word) for word in WORDS[:3]))
    values = torch.cat(engine.weights.every_layer("ff_value"))  # (n_layers * d_mlp, d_model)
    query = torch.randn(values.shape[1])
    engine.seeds([ask])
    bare = seconds(lambda: values @ query, 20)
    ours = seconds(lambda: engine.seeds([ask]), 20)
    yield Figure("live: seeds over all FF values, less 5 ms / bare product", (ours - 0.005) / bare, 1.5)
    many = [ask.model_copy(update={"words": (Term(word=WORDS[n % 8]), Term(word=WORDS[n // 8]))}) for n in range(32)]
    together = seconds(lambda: engine.seeds(many), 3)
    apart = seconds(lambda: [engine.seeds([one]) for one in many], 3)
    yield Figure("live: 32 seed searches, one at a time / together", apart / together, 4, at_least=True)


def prompts(engine: Engine, checkpoint: Checkpoint) -> Iterator[Figure]:
    """Measure each panel against transformers' bare run and the bare products with W_E that the panel needs."""
    text = text_of(engine, TOKENS)
    model = hf.GPT2LMHeadModel.from_pretrained(checkpoint.folder, dtype=torch.float32).eval()
    ids = torch.tensor([engine.words.prompt(text)])
    s = engine.shape
    needed: dict[PanelName, int] = {  # rows of products with the vocabulary
        "evolution": (2 * s.n_layers + 1) * TOKENS,
        "attention": 1,
        "patterns": s.n_heads * (OWN_LISTS + MESSAGES),
        "neurons": 1,
        "coverage": rows_of_products(engine.weights, TOKENS),
        "attribution": 1,
    }
    W_E = engine.weights.W_U
    with torch.inference_mode():
        for panel, rows in needed.items():
            ask = PromptAsk(text=text, panel=(panel,))
            states = torch.randn(rows, s.d_model)
            engine.prompts([ask])
            ratios = []
            for _ in range(ROUNDS):
                bare = seconds(lambda: model(ids)) + seconds(lambda states=states: states @ W_E.T)  # type: ignore[misc]
                ratios.append(seconds(lambda ask=ask: engine.prompts([ask])) / bare)  # type: ignore[misc]
            yield Figure(f"live: prompt of {TOKENS} tokens, {panel} / bare run and products", median(ratios), 1.3)
    asks = [PromptAsk(text=text_of(engine, TOKENS - n % 3), panel=("neurons",)) for n in range(16)]
    together = seconds(lambda: engine.prompts(asks), 3)
    apart = seconds(lambda: [engine.prompts([one]) for one in asks], 3)
    yield Figure("live: 16 prompts of like length, one at a time / together", apart / together, 1.2, at_least=True)


def sheet(demo: Checkpoint) -> Iterator[Figure]:
    """Measure the sheet of 20 tokens against a bare run and bare products of as many vectors, in blocks as large."""
    engine = Engine.load(demo, "cpu")
    text, s, W_U = text_of(engine, SHEET_TOKENS), engine.shape, engine.weights.W_U
    ids, ask = torch.tensor([engine.words.prompt(text)]), PromptAsk(text=text, panel=("sheet",))
    states = torch.randn(s.n_layers * OWN_LISTS, s.n_heads * SHEET_TOKENS, s.d_model)

    @torch.inference_mode()
    def bare() -> None:
        engine.weights.net(ids)
        for block in states:
            block @ W_U.T

    engine.prompts([ask])
    rounds = [(processor_seconds(bare), processor_seconds(lambda: engine.prompts([ask]))) for _ in range(ROUNDS)]
    name = f"sheet of {SHEET_TOKENS} tokens, the demo"
    ratio = median(ours / needed for needed, ours in rounds)
    yield Figure(f"{name} / bare run and products, processor's time", ratio, 1.5)
    seconds_on_two = min(ours for _, ours in rounds) / 2
    yield Figure(f"{name}, processor's time over 2 cores", seconds_on_two, 10, unit="s")


def processor_seconds(work: Callable[[], object]) -> float:
    """Return the seconds that all threads of this process computed."""
    start = time.process_time()
    work()
    return time.process_time() - start


def text_of(engine: Engine, tokens: int) -> str:
    text = " ".join(WORDS[n % len(WORDS)] for n in range(tokens))
    while len(engine.words.prompt(text)) > tokens:
        text = text.rpartition(" ")[0]
    return text


def round_trip(scratch: Path, checkpoint: Checkpoint, tokenizer: Path) -> Iterator[Figure]:
    """Ask the same seed search of the worker itself and through the server, in turn, both with the first tokens of
    vectors in layers that are not built."""
    data, name = scratch / "live-data", "live-small"
    write_random_index(data, name, gpt2_shape(*SIZES["small"]), tokenizer, layers=1, weights=checkpoint.weights_hash())
    arguments = ["worker", "--model", str(checkpoint.folder), "--data", str(data), "--port", "0"]
    command = [sys.executable, "-m", "lexiscope.app.commands.cli", *arguments]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout
            started = re.search(r"http://[^ ]+:([0-9]+)", process.stdout.readline())
            assert started
            os.environ["LEXISCOPE_WORKER_URL"] = f"{name}=http://127.0.0.1:{started[1]}"
            with serving(data) as (_, port):
                built = Index.open(data / name).layers
                unbuilt = {"layers": sorted({*range(SIZES["small"][0])} - {*built}), "lens": "dot"}
                added = []
                for n in range(60):
                    words = f"{WORDS[n % 8]},{WORDS[n // 8]}"
                    ask = {
                        "words": [{"word": word} for word in words.split(",")],
                        "kind": ["ff_value"],
                        "unbuilt": unbuilt,
                    }
                    direct = seconds(lambda ask=ask: request(int(started[1]), "POST", "/seeds", json.dumps(ask)))  # type: ignore[misc]
                    path = f"/{name}/seeds.json?words={words}&kind=ff_value"
                    added.append(seconds(lambda path=path: request(port, "GET", path)) - direct)  # type: ignore[misc]
                everything = {"text": " ".join(WORDS * 4), "panel": list(get_args(PanelName))}
                request(int(started[1]), "POST", "/prompt", json.dumps(everything))
            yield Figure("live: what the way through the server adds, median", 1000 * median(added), 5, unit="ms")
            peak = peak_memory(process.pid) - MEMORY_BESIDE
            weights = sum(path.stat().st_size for path in set(checkpoint.files.values()))
            yield Figure("live: peak memory of a worker, less 500 MB / weights in float32", peak / weights, 1.3)
        finally:
            os.environ.pop("LEXISCOPE_WORKER_URL", None)
            process.terminate()


def peak_memory(pid: int) -> int:
    """Return the bytes of memory that a process had at most."""
    status = Path(f"/proc/{pid}/status").read_text()
    return 1024 * int(status.split("VmHWM:")[1].split()[0])


def request(port: int, method: str, path: str, body: str | None = None) -> None:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    connection.request(method, path, body, {"Content-Type": "application/json"})
    answer = connection.getresponse()
    content = answer.read()
    assert answer.status == 200, content
    connection.close()
