"""Read the first tokens of the lists of vectors that a search or a run found: from the index or, in layers that are not
built, from the answer of a worker, which has the weights."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from lexiscope.app.lists.kept_tokens import first_kept, first_tokens
from lexiscope.app.lists.view import Token, tokens_of
from lexiscope.precompute.errors import IndexFault, NotFound
from lexiscope.precompute.index.index import Index
from lexiscope.precompute.live.wire.answers import FirstTokens
from lexiscope.precompute.live.wire.fields import Lens, Unbuilt
from lexiscope.precompute.shape import ENDS

ListEnd = tuple[str, int, int, str]  # kind, layer, index, end


@dataclass(frozen=True, slots=True)
class FirstLists:
    index: Index
    lens: str  # the lens of the stored lists
    computed: Mapping[ListEnd, list[int]]
    hubs: frozenset[int] = frozenset()  # hubs to skip

    @classmethod
    def of(
        cls,
        index: Index,
        lens: str | None = None,
        computed: Iterable[FirstTokens] = (),
        hubs: frozenset[int] = frozenset(),
    ) -> "FirstLists":
        """Make the source of lists from an index and from `computed`, the answers of a worker. If the index has no
        lists of this lens (dot or cosine), its first lens is taken."""
        lists: dict[ListEnd, list[int]] = {
            (each["kind"], each["layer"], each["index"], each["end"]): each["tokens"] for each in computed
        }
        return cls(index, stored_lens(index, lens), lists, hubs)

    def tokens(self, kind: str, layer: int, row: int, n: int, end: str = "top") -> list[Token] | None:
        """Return the beginning of a list, without hubs that are to be skipped. It is empty if there is no list, and
        None if the index does not store this kind of vectors."""
        ids = self.ids(kind, layer, row, end)
        return None if ids is None else tokens_of(self.index.tokens, first_kept([ids], self.hubs, n)[0])

    def ids(self, kind: str, layer: int, row: int, end: str = "top") -> Sequence[int] | None:
        """Return a whole list. It is empty if the layer is not built or its file is damaged, and no worker computed the
        list; it is None if the index does not store this kind of vectors."""
        if kind not in self.index.stored.kinds:
            return None
        if (tokens := self.computed.get((kind, layer, row, end))) is not None:
            return tokens
        try:
            ids: list[list[int]] = self.index.shard(layer).vector(kind, row, self.lens).ids.tolist()
        except (IndexFault, NotFound):
            return []
        return ids[ENDS.index(end)]

    def first_ids(
        self, kind: str, layer: int, rows: Sequence[int], n: int, end: str = "top"
    ) -> Iterator[tuple[int, list[int] | None]]:
        """Yield vectors of a layer, each with the beginning of its list as `tokens` returns it. They are read together,
        which takes a thirtieth of the time."""
        if kind not in self.index.stored.kinds:
            yield from ((row, None) for row in rows)
            return
        try:
            lists = first_tokens(self.index.shard(layer), kind, np.array(rows), self.lens, n, self.hubs, end)
        except (IndexFault, NotFound):
            lists = first_kept([self.computed.get((kind, layer, row, end), []) for row in rows], self.hubs, n)
        yield from zip(rows, lists, strict=True)

    def is_computed(self, kind: str, layer: int, row: int, end: str = "top") -> bool:
        """Return True if the worker has computed this list."""
        return (kind, layer, row, end) in self.computed


def stored_lens(index: Index, lens: str | None = None) -> Lens:
    """Return the given lens (dot or cosine) if the index has lists of it, else the first lens that the index has."""
    return "cosine" if (lens if lens in index.stored.lenses else index.stored.lens) == "cosine" else "dot"


def unbuilt(index: Index, lens: str | None = None, only: bytes | None = None) -> Unbuilt | None:
    """Return the layers without readable lists as a request for a worker to compute them, of all tokens or of `only`
    some; None if there are none."""
    layers = frozenset(range(index.shape.n_layers)) - frozenset(index.layers)
    return Unbuilt(layers=layers, lens=stored_lens(index, lens), only=only) if layers else None
