"""Find the neurons whose stored lists read one word and write another: the key lists the first at the top, the value
lists the second at either end."""

from collections.abc import Sequence
from typing import Any

from pydantic import Field
from typing_extensions import TypedDict

from lexiscope.app.lists.find_tokens import token_search
from lexiscope.app.lists.first_tokens import stored_lens
from lexiscope.app.lists.view import Token, tokens_of
from lexiscope.precompute.index.index import Index
from lexiscope.precompute.index.lookup import look_up_token
from lexiscope.precompute.live.wire.grammar import WordPair

MOST_LISTED = 10  # neurons that are shown
LISTED_TRANSITIONS: Any = Field(
    description="Of one pair: the neurons whose stored key lists the first word and whose value the second, best first"
)


class ListedTransition(TypedDict):
    layer: int
    neuron: int
    end: str  # of the value's list
    ranks: list[int]  # of the first word in the key's list, and of the second in the value's
    tokens: list[Token]  # those that have these ranks: a word may be several tokens, with and without a space


def listed_transitions(
    index: Index, pairs: Sequence[WordPair], lens: str
) -> tuple[list[ListedTransition] | None, int | None]:
    """Return the neurons with the best ranks, and how many there are; None unless there is one pair, and keys and
    values are stored."""
    if len(pairs) != 1 or not {"ff_key", "ff_value"} <= {*index.stored.kinds}:
        return None, None

    def listings(word: str, kind: str) -> dict[tuple[int, int, str], tuple[int, int]]:
        """Return by layer, neuron and end the best rank of a token that the word stands for, and this token."""
        best: dict[tuple[int, int, str], tuple[int, int]] = {}
        for token in token_search(index.tokens).tokens(word):
            found = look_up_token(index, token, stored_lens(index, lens), "all", (kind,), ())
            for (_, end), lists in found.vectors.items():
                columns = (column.tolist() for column in (lists.layer, lists.index, lists.rank))
                for layer, neuron, rank in zip(*columns, strict=True):
                    best[layer, neuron, end] = min(best.get((layer, neuron, end), (rank, token)), (rank, token))
        return best

    keys, values = listings(pairs[0].source, "ff_key"), listings(pairs[0].target, "ff_value")
    both = [
        (keys[layer, neuron, "top"], value, layer, neuron, end)
        for (layer, neuron, end), value in values.items()
        if (layer, neuron, "top") in keys
    ]
    both.sort(key=lambda found: (found[0][0] + found[1][0], *found[2:]))
    return [
        ListedTransition(
            layer=layer, neuron=neuron, end=end, ranks=[key[0] + 1, value[0] + 1],
            tokens=tokens_of(index.tokens, (key[1], value[1])),
        )
        for key, value, layer, neuron, end in both[:MOST_LISTED]
    ], len(both)  # fmt: skip
