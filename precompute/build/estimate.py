"""Estimate what a build will take: bytes by the layout of its files, memory, and time by the first pieces of work. Say
what would make it smaller."""

from collections.abc import Iterator
from dataclasses import dataclass, replace

from lexiscope.precompute.build.layer import Costs
from lexiscope.precompute.build.progress import duration
from lexiscope.precompute.index.layout import layout_bytes, neighbours_layout, shard_size, stats_layout
from lexiscope.precompute.index.stored import Stored
from lexiscope.precompute.plain_text import file_size
from lexiscope.precompute.project.vectors import BLOCK_SCORES

LONG, LARGE = 3600, 20e9  # seconds and bytes: beyond either, a build says what would make it smaller
BASE_MEMORY = 400 << 20  # bytes that Python, torch and the kernels take
PRODUCT_SHARE = 0.7  # share of a vector's time that the sign of a direction takes: one more product with the vocabulary
FACTORS_IN_MEMORY = 12  # how many times a search holds the factors of a head: sorted, balanced, as bytes


@dataclass(frozen=True)
class Work:
    stored: Stored
    layers: int  # layers to make
    neighbours: bool  # whether the nearest tokens are to be made, too
    workers: int  # threads that work at once
    unchanged: int = 0  # how many of these layers did not change in a difference: they take next to no time
    stats: int = 0  # layers whose moments are to be made, which takes little time beside their lists

    def n_bytes(self) -> int:
        """Return how many bytes the build takes on disk at most, without the vocabulary, which is a small part."""
        nearest = layout_bytes(neighbours_layout(self.stored.shape)) if self.neighbours else 0
        return self.layers * shard_size(self.stored)[0] + self.stats * layout_bytes(stats_layout(self.stored)) + nearest

    def memory(self) -> int:
        """Return an estimate of the memory in bytes: the vocabulary, plus what a layer needs or a second vocabulary
        while it is read, whichever is larger."""
        shape, vocabulary = self.stored.shape, 4 * self.stored.shape.d_vocab * self.stored.shape.d_model
        largest = 4 * shape.d_model * max(map(shape.count, self.stored.kinds))
        layer = 3 * largest + 2 * shard_size(self.stored)[0] + self.workers * 2 * 4 * BLOCK_SCORES
        if self.stored.pairs:
            d_head = 2 * shape.d_head if self.stored.difference else shape.d_head
            layer += self.workers * FACTORS_IN_MEMORY * 4 * shape.d_vocab * d_head
        return BASE_MEMORY + vocabulary * (1 if shape.tied else 2) + max(vocabulary // 2, layer)

    def vector_seconds(self, costs: Costs) -> float:
        """Return how many seconds all threads take for the lists of vectors and the nearest tokens, which are made in
        the same way."""
        stored = self.stored
        signs = len(stored.directions) * stored.shape.n_heads * stored.shape.d_head
        of_layer = stored.n_vectors + PRODUCT_SHARE * signs
        n_vectors = (self.layers - self.unchanged) * of_layer + (stored.shape.d_vocab if self.neighbours else 0)
        return n_vectors * costs.vector / self.workers

    def pair_seconds(self, costs: Costs) -> float:
        searches = (self.layers - self.unchanged) * self.stored.shape.n_heads * len(self.stored.matrices)
        return searches * sum(costs.searches[lens] for lens in self.stored.lenses) / self.workers if searches else 0.0

    def seconds(self, costs: Costs) -> float:
        return self.vector_seconds(costs) + self.pair_seconds(costs)


def size_text(work: Work) -> str:
    """Say how large a build will be, before any work is done."""
    return (
        f"up to {file_size(work.n_bytes())} on disk, and about {file_size(work.memory())} of memory while it is built"
    )


def time_text(work: Work, costs: Costs, where: str = "on this machine") -> str:
    """Say how long a build will take, from the costs of its first pieces of work."""
    text = f"it will take about {duration(work.seconds(costs))} {where}"
    if work.stored.pairs:
        vectors, pairs = work.vector_seconds(costs), work.pair_seconds(costs)
        text += f", {duration(vectors)} for vectors and {duration(pairs)} for pairs of heads"
    if work.seconds(costs) > LONG or work.n_bytes() > LARGE:
        saved = "; ".join(
            f"{option} saves {duration(work.seconds(costs) - less.seconds(costs))} and "
            f"{file_size(work.n_bytes() - less.n_bytes())}"
            for option, less in smaller(work)
        )
        text += f". To make it smaller, stop it and start it with other options: {saved}" if saved else ""
    return text


def smaller(work: Work) -> Iterator[tuple[str, Work]]:
    """Yield options that would make the build smaller, each with the work that would remain."""
    stored = work.stored
    if stored.pairs:
        yield "--pairs 0", replace(work, stored=replace(stored, pairs=0))
    if len(stored.lenses) > 1:
        yield f"--lenses {stored.lens}", replace(work, stored=replace(stored, lenses=(stored.lens,)))
    if stored.directions and stored.weight_kinds:
        kinds = stored.weight_kinds
        yield f"--kinds {','.join(kinds)}", replace(work, stored=replace(stored, kinds=kinds))
    neurons = tuple(kind for kind in ("ff_key", "ff_value") if kind in stored.kinds)
    if neurons and neurons != stored.kinds:
        yield f"--kinds {','.join(neurons)}", replace(work, stored=replace(stored, kinds=neurons))
