"""Find which heads hold the first words of a parameter, and how many neurons of each layer list its first token, for
the small map on the parameter's page."""

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from weakref import WeakKeyDictionary

from lexiscope.app.lists.worth_reading import HEAD_PRESET, head_lens
from lexiscope.precompute.errors import IndexFault
from lexiscope.precompute.index.index import Index
from lexiscope.precompute.index.lookup import count_neurons
from lexiscope.precompute.shape import MATRICES

FIRST_PAIRS = FIRST_TOKENS = 10  # how far into a list of pairs, or of tokens, its first words reach
MOST_KNOWN = 1000  # tokens whose neurons are kept counted for an index
At = tuple[int, int]  # a layer, and a head


@dataclass(frozen=True)
class HeadWords:
    """The words in the first pairs of every head, as people read them best, and the heads that hold each word."""

    of_head: dict[At, set[int]] = field(default_factory=lambda: defaultdict(set))
    heads: dict[int, list[At]] = field(default_factory=lambda: defaultdict(list))


_words: WeakKeyDictionary[Index, HeadWords] = WeakKeyDictionary()
_counts: WeakKeyDictionary[Index, dict[tuple[int, str], Mapping[int, int]]] = WeakKeyDictionary()


def head_words(index: Index) -> HeadWords:
    """Read the words of all heads once; a damaged layer has none."""
    if index not in _words:
        words, lens = HeadWords(), head_lens(index)
        for shard in index.usable_shards() if index.stored.pairs else ():
            with suppress(IndexFault):
                for matrix in MATRICES:
                    pairs, _, counts = shard.heads.first_pairs(matrix, lens, HEAD_PRESET, FIRST_PAIRS)
                    for head, count in enumerate(counts.tolist()):
                        words.of_head[shard.layer, head].update(pairs[head, :count].ravel().tolist())
        for at, tokens in words.of_head.items():
            for token in tokens:
                words.heads[token].append(at)
        _words[index] = words
    return _words[index]


def heads_that_share(index: Index, tokens: Collection[int]) -> Mapping[At, list[int]]:
    """Return the heads whose first pairs hold some of these tokens, each with those that it holds."""
    shared: dict[At, list[int]] = defaultdict(list)
    for token in tokens:
        for at in head_words(index).heads.get(token, ()):
            shared[at].append(token)
    return shared


def words_of_lists(lists: Iterable[Sequence[Mapping[str, int]]]) -> list[int]:
    """Return the first tokens of some lists, each once."""
    return [*dict.fromkeys(entry["id"] for entries in lists for entry in entries[:FIRST_TOKENS])]


def neurons_by_layer(index: Index, token: int, lens: str) -> Mapping[int, int]:
    """Return of each layer with such neurons how many have the token in a list of their key or value."""
    known = _counts.setdefault(index, {})
    if (token, lens) not in known:
        if len(known) >= MOST_KNOWN:
            known.clear()
        known[token, lens] = {at: n for at, n in enumerate(count_neurons(index, token, lens).tolist()) if n}
    return known[token, lens]
