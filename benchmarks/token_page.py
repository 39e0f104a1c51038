"""The token page over all layers of an index of GPT-2 large's size: its time, and against scanning the lists."""

import random
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from statistics import median

import numpy as np

from benchmarks.figures import Figure, seconds
from benchmarks.random_index import D_VOCAB, gpt2_shape, write_random_index
from lexiscope.app.library.library import Library
from lexiscope.app.pages.page import ModelSite
from lexiscope.app.pages.token import LISTINGS_OF_KIND, PAIRS_OF_MATRIX, TOKEN, TokenAt, TokenView
from lexiscope.precompute.index.index import Index
from lexiscope.precompute.index.tensor_file import Array
from lexiscope.precompute.shape import ENDS, MATRICES

HUB = D_VOCAB - 1  # in very many lists
LAYERS = 36
ROUNDS = 5
PAGES = 20  # in each round
REPEATS = 3  # of each page and each scan; the shortest counts, because the machine may be busy

Row = tuple[float, ...]
Found = dict[tuple[str, ...], tuple[int, list[Row]]]  # of a kind and end, and of a matrix: how many, and the best


def token_view(site: ModelSite, token: int) -> TokenView:
    return TOKEN.view_of(site, TokenAt(token=token), {"lens": "dot"})


def figures(scratch: Path, tokenizer: Path) -> Iterator[Figure]:
    """Measure pages of ever new tokens. A scan of all lists must find what is on the page, and nothing else."""
    folder = write_random_index(scratch, "random-large", gpt2_shape(LAYERS, 1280, 20), tokenizer)
    library = Library(scratch, every=3600)
    site = ModelSite(library=library, index=(index := library.index(folder.name)))
    tokens = iter(random.Random(0).sample(range(HUB), ROUNDS * PAGES + 1))
    for token in (next(tokens), HUB):
        page = on_the_page(token_view(site, token))
        if any(scan(index, token, where) != page for where in (anywhere, anywhere_flat)):
            raise AssertionError(f"scanning finds something else for token {token}")
    ours, hub, scanned, flat = [], [], [], []
    for _ in range(ROUNDS):
        batch = [next(tokens) for _ in range(PAGES)]
        scanned.append(seconds(partial(scan, index, batch[0], anywhere), REPEATS))
        flat.append(seconds(partial(scan, index, batch[0], anywhere_flat), REPEATS))
        ours += [seconds(partial(token_view, site, token), REPEATS) for token in batch]
        hub.append(seconds(partial(token_view, site, HUB), PAGES))
    opening = seconds(lambda: Index.open(folder), REPEATS)
    yield Figure(f"Index.open, {LAYERS} layers of GPT-2 large's size", 1000 * opening, 50, unit="ms")
    yield Figure(f"token page, {LAYERS} layers of GPT-2 large's size, median", 1000 * median(ours), 30, unit="ms")
    yield Figure("token page: scanning the lists / ours", median(scanned) / median(ours), 100, at_least=True)
    yield Figure("token page: the same, each array as one row of numbers", median(flat) / median(ours))
    yield Figure("token page of a hub, in a tenth of all lists, median", 1000 * median(hub), 40, unit="ms")


def anywhere(array: Array, token: int) -> Sequence[Array]:
    """Return where a token stands in an array, in the plain way of numpy."""
    return tuple(np.argwhere(array == token).T)


def anywhere_flat(array: Array, token: int) -> Sequence[Array]:
    """Return the same by searching one axis, which is several times faster in numpy."""
    return np.unravel_index(np.flatnonzero(array == token), array.shape)


def scan(index: Index, token: int, where: Callable[[Array, int], Sequence[Array]]) -> Found:
    """Return every place of a token under the first lens and preset, by looking at every entry of every list."""
    rows: dict[tuple[str, ...], list[Row]] = {(kind, end): [] for kind in index.shape.kinds for end in ENDS}
    rows |= {(matrix,): [] for matrix in MATRICES}
    for layer in index.layers:
        shard = index.shard(layer)
        for kind in index.shape.kinds:
            number, end, rank = where(shard.array(f"{kind}.ids")[:, 0], token)
            scores = shard.array(f"{kind}.scores")[number, 0, end, rank]
            for n, e, r, score in zip(*map(np.ndarray.tolist, (number, end, rank, scores)), strict=True):
                rows[kind, ENDS[e]].append((r, -abs(score), layer, n))
        for matrix in MATRICES:
            pairs = shard.array(f"{matrix}.ids")[:, 0, 0]  # (n_heads, E, pairs, 2)
            head, end, rank, side = where(pairs, token)
            scores = shard.array(f"{matrix}.scores")[head, 0, 0, end, rank]
            other = pairs[head, end, rank, 1 - side]
            once = np.flatnonzero((side == 0) | (other != token))
            columns = (head, side, end, rank, scores, other)
            for h, s, e, r, score, o in zip(*(column[once].tolist() for column in columns), strict=True):
                rows[matrix,].append((r, -abs(score), layer, h, s, e, o))
    return {key: (len(of_key), sorted(of_key)[: _shown(key)]) for key, of_key in rows.items()}


def on_the_page(view: TokenView) -> Found:
    found: Found = {}
    for role in view.roles:
        places: list[Row] = [(p["rank"] - 1, -abs(p["score"]), p["layer"], p["index"]) for p in role.places]
        found[role.kind, role.end] = role.total, places
    for matrix in MATRICES:
        found[matrix,] = view.totals[matrix], [
            (
                p["rank"] - 1, -abs(p["score"]), p["layer"], p["head"],
                int(p["side"] == "to"), ENDS.index(p["end"]), p["other"]["id"],
            )
            for p in view.pairs or ()
            if p["matrix"] == matrix
        ]  # fmt: skip
    return found


def _shown(key: tuple[str, ...]) -> int:
    return PAIRS_OF_MATRIX if key[0] in MATRICES else LISTINGS_OF_KIND
