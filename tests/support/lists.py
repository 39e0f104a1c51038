"""Make small indexes that tests of pages share, and write out every list of one: what a page must find, the slow way.
This reads the arrays that were written, by the tables of docs/format.md, and uses none of the code under test."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from lexiscope.precompute.index.index import Index
from lexiscope.precompute.index.tokens import TokenTable
from lexiscope.precompute.shape import ENDS, LENSES, MATRICES, PRESETS, Shape
from tests.support.synthetic import GPT2, LLAMA, make_manifest, raw_tokens, rewrite_shard, shard_arrays, write_index

SHAPES = {"gpt2-like": GPT2, "llama-like": LLAMA}
READY = {"gpt2-like": (0, 1, 3), "llama-like": (0, 2)}  # layers that are built
TEXTS = [TokenTable.of(raw_tokens()).text(token) for token in range(len(raw_tokens()))]


class Listing(NamedTuple):
    """One entry of one list."""

    kind: str
    layer: int
    number: int  # number of the vector within its kind
    lens: str
    end: str
    rank: int  # from 1
    token: int
    score: float


class PairListing(NamedTuple):
    matrix: str
    layer: int
    head: int
    lens: str
    preset: str
    end: str
    rank: int
    pair: tuple[int, int]
    score: float


def all_listings(shape: Shape, layers: tuple[int, ...]) -> Iterator[Listing]:
    for layer in layers:
        arrays = shard_arrays(shape, seed=layer)
        for kind in shape.kinds:
            ids, scores = arrays[f"{kind}.ids"].tolist(), arrays[f"{kind}.scores"].tolist()
            for index in range(shape.count(kind)):
                for at, lens in enumerate(LENSES):
                    for e, end in enumerate(ENDS):
                        for rank, token in enumerate(ids[index][at][e]):
                            score = scores[index][at][e][rank]
                            yield Listing(kind, layer, index, lens, end, rank + 1, token, score)


def all_pairs(shape: Shape, layers: tuple[int, ...]) -> Iterator[PairListing]:
    for layer in layers:
        arrays = shard_arrays(shape, seed=layer)
        for matrix in MATRICES:
            ids, scores, counts = (arrays[f"{matrix}.{part}"].tolist() for part in ("ids", "scores", "count"))
            for head in range(shape.n_heads):
                for at, lens in enumerate(LENSES):
                    for p, preset in enumerate(PRESETS):
                        for e, end in enumerate(ENDS):
                            for rank in range(counts[head][at][p][e]):
                                first, second = ids[head][at][p][e][rank]
                                score, pair = scores[head][at][p][e][rank], (first, second)
                                yield PairListing(matrix, layer, head, lens, preset, end, rank + 1, pair, score)


def first_tokens(shape: Shape, layers: tuple[int, ...], n: int) -> dict[tuple[str, int, int, str, str], list[Any]]:
    """Return the first tokens of every list, by kind, layer, number, lens and end."""
    lists: dict[tuple[str, int, int, str, str], list[Any]] = {}
    for e in all_listings(shape, layers):
        if e.rank <= n:
            lists.setdefault((e.kind, e.layer, e.number, e.lens, e.end), []).append(token(e.token))
    return lists


def first_readable(pairs: list[PairListing], matrix: str, layer: int, head: int) -> dict[str, Any] | None:
    """Return a head's first pair under cosine and words: these vocabularies have hardly a word that could come before
    it."""
    for p in pairs:
        where = (p.matrix, p.layer, p.head, p.lens, p.preset, p.end, p.rank)
        if where == (matrix, layer, head, "cosine", "words", "top", 1):
            return {"from": token(p.pair[0]), "to": token(p.pair[1]), "score": p.score}
    return None


def owner(shape: Shape, kind: str, index: int) -> dict[str, int | None]:
    """Return head and subhead, or direction, of a vector: the first query head that uses it."""
    if kind.startswith("ff_"):
        return {"head": None, "subhead": None, "direction": None}
    for head in range(shape.n_heads):
        for subhead in range(shape.d_head):
            if shape.row(kind, head, subhead) == index:
                number: dict[str, int | None] = {"subhead": subhead, "direction": None}
                if not kind.startswith("w_"):
                    number = {"subhead": None, "direction": subhead}
                return {"head": head, **number}
    raise AssertionError(f"nobody has {kind} {index}")


def token(number: int) -> dict[str, Any]:
    return {"id": number, "token": TEXTS[number]}


def stored_arrays(shape: Shape, layer: int) -> dict[str, Any]:
    """Return the arrays that `open_indexes` writes: layer 0 has numbers that are undefined, equal, or beyond the steps
    of a map."""
    arrays = {name: array.copy() for name, array in shard_arrays(shape, seed=layer).items()}
    if layer == 0:
        arrays["ff_value.coherence"][1:4] = np.array([np.nan, -0.2, 1])[:, None, None]
        arrays["ff_value.norm"][2:4] = 0.5
        arrays["vo.coherence"][0] = np.nan
    return arrays


def open_indexes(data: Path) -> dict[str, Index]:
    """Open one index of each shape, with the layers that are ready, as the server does."""
    opened: dict[str, Index] = {}
    for name, shape in SHAPES.items():
        manifest = write_index(data / name, make_manifest(shape, name), READY[name])
        rewrite_shard(data / name, manifest, 0, stored_arrays(shape, 0))
        opened[name] = Index.open(data / name)
    return opened
