"""Large models: peak memory of a build at Llama-3-8B's sizes (one layer, vectors only, random weights in bfloat16), and
the pages of an index with as many tokens against those of one of GPT-2's size.

`python -m benchmarks.large CHECKPOINT DATA VECTORS` is what is measured: a build in which only so many vectors of each
kind are multiplied and stand for all, since products are made block by block; every array has its full size. 0: all.
"""

import json
import math
import resource
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Executor
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import median

import numpy as np
import torch

from benchmarks.figures import Figure, seconds
from benchmarks.random_index import gpt2_shape, write_random_index
from lexiscope.precompute.project import vectors
from lexiscope.precompute.project.vectors import Lists, PendingLists, Projector

GB = 1e9
D_VOCAB, D_MODEL, D_MLP, N_HEADS, N_KV_HEADS = 128_256, 4096, 14_336, 32, 8
SHARE = 512  # vectors of each kind
AT_ONCE = 1 << 24  # random numbers
ASKED = 200  # pages


def figures(scratch: Path, tokenizer: Path) -> Iterator[Figure]:
    folder = random_llama(scratch / "random-llama-3-8b", tokenizer)
    command = [sys.executable, "-m", "benchmarks.large", str(folder), str(scratch / "large-data"), str(SHARE)]
    run = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)
    peak, vector_seconds = map(float, run.stdout.split())
    yield Figure("peak memory, a layer of Llama-3-8B's shape, vectors only", peak / GB, 8.0, unit="GB")
    yield Figure("its time per vector, on one core of all at work", 1000 * vector_seconds, unit="ms")
    yield from page_figures(scratch / "large-pages", tokenizer)


def page_figures(data: Path, tokenizer: Path) -> Iterator[Figure]:
    """Measure pages of two indexes in turn, which have the same layers and heads and another vocabulary."""
    from starlette.testclient import TestClient

    from lexiscope.app.settings import Settings
    from lexiscope.app.site.server import create_app

    usual = gpt2_shape(2, 768, 12)
    write_random_index(data, "usual", usual, tokenizer)
    write_random_index(data, "large", replace(usual, d_vocab=D_VOCAB), tokenizer)
    numbers = [(at % 2, 7 * at) for at in range(ASKED)]
    pages = {
        "page of a neuron": [f"ff/{layer}/{neuron}" for layer, neuron in numbers],
        "JSON of a neuron": [f"ff/{layer}/{neuron}.json" for layer, neuron in numbers],
        "page of a head": [f"head/{layer}/{head}" for layer in range(2) for head in range(12)],
        "page of a token": [f"token/{97 * at}" for at in range(ASKED)],
        "page of a search": [f"search?q={word}" for word in ("dog", "the", "Paris", "because") * 5],
    }
    with TestClient(create_app(Settings(data=data, worker="off"))) as visitor:

        def ask(index: str, paths: list[str]) -> float:
            return seconds(lambda: [visitor.get(f"/{index}/{path}").raise_for_status() for path in paths])

        for what, paths in pages.items():
            for index in ("usual", "large"):
                ask(index, paths[:8])  # reads what is kept, as the texts of tokens
            rounds = [(ask("usual", paths), ask("large", paths)) for _ in range(5)]
            yield Figure(f"{what} of 128,256 tokens against 50,257", median(b / a for a, b in rounds), 1.3)


def random_llama(folder: Path, tokenizer: Path, layers: int = 1) -> Path:
    """Write a checkpoint with normal weights, in pieces, so that it need not fit in memory. Tokens that the tokenizer
    lacks are empty."""
    kv_size = D_MODEL // N_HEADS * N_KV_HEADS
    shapes = {"model.embed_tokens.weight": (D_VOCAB, D_MODEL), "lm_head.weight": (D_VOCAB, D_MODEL)}
    for layer in range(layers):
        block = f"model.layers.{layer}"
        shapes |= {f"{block}.self_attn.{name}_proj.weight": (D_MODEL, D_MODEL) for name in ("q", "o")}
        shapes |= {f"{block}.self_attn.{name}_proj.weight": (kv_size, D_MODEL) for name in ("k", "v")}
        shapes |= {f"{block}.mlp.{name}_proj.weight": (D_MLP, D_MODEL) for name in ("gate", "up")}
        shapes[f"{block}.mlp.down_proj.weight"] = (D_MODEL, D_MLP)
    folder.mkdir(parents=True)
    header, start = {}, 0
    for name, shape in shapes.items():
        stop = start + 2 * math.prod(shape)
        header[name] = {"dtype": "BF16", "shape": shape, "data_offsets": (start, stop)}
        start = stop
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    generator = torch.Generator().manual_seed(0)
    with (folder / "model.safetensors").open("wb") as file:
        file.write(len(text).to_bytes(8, "little") + text)
        for first in range(0, start // 2, AT_ONCE):
            size = min(AT_ONCE, start // 2 - first)
            numbers = torch.empty(size, dtype=torch.bfloat16).normal_(0, 0.02, generator=generator)
            file.write(numbers.view(torch.int16).numpy().tobytes())
    config = {
        "model_type": "llama", "architectures": ["LlamaForCausalLM"], "num_hidden_layers": layers,
        "num_attention_heads": N_HEADS, "num_key_value_heads": N_KV_HEADS, "hidden_size": D_MODEL,
        "intermediate_size": D_MLP, "vocab_size": D_VOCAB, "tie_word_embeddings": False,
    }  # fmt: skip
    (folder / "config.json").write_text(json.dumps(config))
    (folder / "tokenizer.json").write_bytes(tokenizer.read_bytes())
    return folder


@dataclass(frozen=True)
class Repeated(PendingLists):
    """The lists of a few vectors, as if they were those of all."""

    n: int

    def result(self) -> Lists:
        few = super().result()
        which = np.arange(self.n) % len(few.ids)
        return Lists(few.ids[which], few.scores[which])


def build(checkpoint: Path, data: Path, share: int) -> None:
    """Build, and print the peak memory of this process in bytes and the seconds per vector."""
    from lexiscope.app.commands.cli import main

    start = Projector.start
    measured: list[float] = []

    def start_few(
        self: Projector,
        n: int,
        read: Callable[[slice], torch.Tensor],
        pool: Executor,
        see: vectors.See | None = None,
    ) -> PendingLists:
        if share == 0 and n != D_VOCAB:  # of the nearest tokens always a few: they are the work of two layers
            return start(self, n, read, pool, see)
        few = start(self, min(n, share or SHARE), read, pool, see)
        measured.extend(block.result() for block in few.blocks)
        return Repeated(few.lists, few.blocks, n)

    vectors.Projector.start = start_few  # type: ignore[method-assign]
    begin = time.perf_counter()
    code = main(["precompute", str(checkpoint), "--data", str(data), "--pairs", "0"])
    print(f"{time.perf_counter() - begin:.0f} s in all", file=sys.stderr)
    print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024, np.median(measured))
    sys.exit(code)


if __name__ == "__main__":
    build(Path(sys.argv[1]), Path(sys.argv[2]), int(sys.argv[3]))
