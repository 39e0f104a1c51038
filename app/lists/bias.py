"""Tell which lists are of high bias: mostly tokens that any vector may list, whatever it is about. Such tokens are
frequent, have not been learned, are special or unused, or are hubs (in very many lists)."""

from collections.abc import Sequence
from weakref import WeakKeyDictionary

import numpy as np

from lexiscope.app.lists.kept_tokens import hubs_of
from lexiscope.app.lists.readable import readable
from lexiscope.precompute.index.index import Index
from lexiscope.precompute.index.tokens import is_special

# So many tokens of several characters are frequent, but at most one in a hundred of a small vocabulary: the first by
# id, because vocabularies begin with frequent tokens.
FREQUENT = 300
TOKENS_LOOKED_AT = 10  # tokens of a list by which it is judged

_flags: WeakKeyDictionary[Index, dict[str, bytes]] = WeakKeyDictionary()


def biased_tokens(index: Index, lens: str) -> bytes:
    """Return a byte for each token, 1 if any list may hold it. They are found once for an index and a lens."""
    known = _flags.setdefault(index, {})
    if lens not in known:
        words = readable(index)
        mask = ~words.learned
        texts = [text.strip() for text in index.tokens.texts]
        single = np.array([len(text) < 2 for text in texts])
        mask |= single & np.array([text.isascii() for text in texts])
        mask |= np.array([is_special(text) for text in texts])
        mask[np.flatnonzero(words.learned & ~single)[: min(FREQUENT, len(texts) // 100)]] = True
        mask[[*hubs_of(index, lens)]] = True
        known[lens] = mask.tobytes()
    return known[lens]


def is_high_bias(biased: bytes, ids: Sequence[int]) -> bool:
    """Return True if more than half of the first tokens of a list are `biased`, as any list may hold them."""
    first = ids[:TOKENS_LOOKED_AT]
    return bool(biased) and 2 * sum([biased[token] for token in first]) > len(first)
