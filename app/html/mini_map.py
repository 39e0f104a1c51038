"""Count for the small map on a parameter's page where in the model the same words are: layers from left to right, and
heads from top to bottom or one row of numbers of neurons. templates/_mini_map.html draws it."""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from typing import Any
from weakref import WeakKeyDictionary

from lexiscope.app import urls
from lexiscope.app.html.hubs import marked
from lexiscope.app.html.tokens import plain
from lexiscope.app.lists.kept_tokens import KeptTokens
from lexiscope.app.lists.view import Token, tokens_of
from lexiscope.app.lists.worth_reading import HEAD_PRESET, head_lens
from lexiscope.precompute.errors import IndexFault
from lexiscope.precompute.index.index import Index
from lexiscope.precompute.index.lookup import count_neurons
from lexiscope.precompute.shape import MATRICES

WORDS_NAMED = 6
FIRST_PAIRS = FIRST_TOKENS = 10  # how far into a list of pairs, or of tokens, its first words reach
At = tuple[int, int]  # a layer, and a head
Cell = tuple[int, str, str]  # a number, the address of what is counted there, a title

_head_words: WeakKeyDictionary[Index, Mapping[At, set[int]]] = WeakKeyDictionary()


@dataclass(frozen=True)
class MiniMap:
    corner: str
    layers: Sequence[int]
    rows: Mapping[Any, Mapping[int, Cell]]  # by their names, the cells that are not empty, by layer
    here: tuple[int, Any]  # the layer and the row of this parameter
    token: Token | None = None  # the token that neurons are counted by

    @cached_property
    def most(self) -> int:
        return max([cell[0] for row in self.rows.values() for cell in row.values()], default=1)


def head_words(index: Index) -> Mapping[At, set[int]]:
    """Read once the words in the first pairs of all heads, as people read them best; a damaged layer has none."""
    if index not in _head_words:
        words: dict[At, set[int]] = {}
        for shard in index.usable_shards() if index.stored.pairs else ():
            with suppress(IndexFault):
                for matrix in MATRICES:
                    pairs, _, counts = shard.heads.first_pairs(matrix, head_lens(index), HEAD_PRESET, FIRST_PAIRS)
                    for head, count in enumerate(counts.tolist()):
                        words.setdefault((shard.layer, head), set()).update(pairs[head, :count].ravel().tolist())
        _head_words[index] = words
    return _head_words[index]


def of_heads(index: Index, view: Any) -> MiniMap | None:
    """Return in which other heads the first words of a head, or of a part of one, stand; None if they do in none."""
    here, of_heads = (view.layer, view.head), head_words(index)
    lists = [vector.top for vector in view.vectors.values() if vector] if hasattr(view, "vectors") else []
    words = [*dict.fromkeys(entry["id"] for entries in lists for entry in entries[:FIRST_TOKENS])]
    words = words or sorted(of_heads.get(here, ()))
    rows: dict[int, dict[int, Cell]] = {head: {} for head in range(index.shape.n_heads)}
    for (layer, head), of_head in of_heads.items():
        shared = [token for token in words if token in of_head]
        if shared and (lists or (layer, head) != here):
            title = f"L{layer}H{head}: {plain(tokens_of(index.tokens, shared[:WORDS_NAMED]))}"
            rows[head][layer] = len(shared), urls.link("head", view.model, layer, head, lens=view.lens), title
    return MiniMap("head \\ layer", index.layers, rows, here) if any(rows.values()) else None


def of_neurons(index: Index, view: Any) -> MiniMap | None:
    """Return how many neurons of each layer list the first word that a neuron writes or, without its value, reads."""
    lists = [vector.top for vector in (view.value, view.key, view.up) if vector and vector.top]
    if not lists:
        return None
    tokens = lists[0]
    no_words, hubs = KeptTokens(words=True).outside(index), marked(view.lens)
    token = next((each for each in tokens if each["id"] not in no_words and each["id"] not in hubs), tokens[0])
    address, mark, query = urls.link("layer", view.model, 0, lens=view.lens, token=token["id"]).partition("?")
    before = address.removesuffix("0")
    counts = count_neurons(index, token["id"], view.lens).tolist()
    row = {at: (n, f"{before}{at}{mark}{query}", f"layer {at}: {n} neurons") for at, n in enumerate(counts) if n}
    return MiniMap("layer", index.layers, {"neurons": row}, (view.layer, "neurons"), token)
