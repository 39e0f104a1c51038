"""The token page over all layers of an index of GPT-2 large's size: its time, and against scanning the lists."""

import random
from collections.abc import Iterator
from pathlib import Path
from statistics import median

import numpy as np

from app.library import Library
from app.views.token import token_page
from benchmarks.figures import Figure, seconds
from benchmarks.random_index import gpt2_shape, write_random_index
from precompute.index import Index
from precompute.shape import MATRICES

LAYERS = 36
TOKENS = 30


def figures(scratch: Path, tokenizer: Path) -> Iterator[Figure]:
    folder = write_random_index(scratch, "random-large", gpt2_shape(LAYERS, 1280, 20), tokenizer)
    index = Library(scratch).index(folder.name)
    tokens = random.Random(0).sample(range(40_000), TOKENS)
    token_page(index, tokens[0])
    ours = median(seconds(lambda token=token: token_page(index, token)) for token in tokens[1:])  # type: ignore[misc]
    scanned = seconds(lambda: scan(Index.open(folder), tokens[0]))
    yield Figure(f"token page, {LAYERS} layers of GPT-2 large's size, median", 1000 * ours, 30, unit="ms")
    yield Figure("token page: scanning the lists / ours", scanned / ours, 100, at_least=True)


def scan(index: Index, token: int) -> int:
    """Every place of a token under one lens and preset, found by looking at every list."""
    found = 0
    for layer in index.layers:
        shard = index.shard(layer)
        for kind in index.shape.kinds:
            found += len(np.argwhere(shard.array(f"{kind}.ids")[:, 0] == token))
        for matrix in MATRICES:
            found += len(np.argwhere(shard.array(f"{matrix}.ids")[:, 0, 0] == token))
    return found
