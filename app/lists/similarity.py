"""Measure how many tokens two lists of a neuron or a subhead (channel of a head) share, whether with the top or the
bottom of the second list, and how many two unrelated lists share by chance."""

from dataclasses import dataclass
from typing import Annotated, Generic, Literal, TypeVar

from pydantic import Field
from typing_extensions import TypedDict

from lexiscope.app.lists.view import Token, tokens_of
from lexiscope.precompute.index.index import Index
from lexiscope.precompute.index.layer.lists import Similarity
from lexiscope.precompute.index.layer.shard import Shard
from lexiscope.precompute.index.tensor_file import Array
from lexiscope.precompute.shape import ENDS, MATRICES

End = Literal["top", "bottom"]
T = TypeVar("T")
# Similarities from here on mean something: those of unrelated lists hardly ever reach it.
TELLING = 0.05


class Shuffled(TypedDict):
    """What chance gives in the layer: similarities of first lists with second lists of other neurons, or of other
    subheads (channels of heads)."""

    similarity: Annotated[float, Field(description="The mean, with the top of the second list")]
    similarity_bottom: Annotated[float, Field(description="The mean, with its bottom")]
    share_15: Annotated[float, Field(description="The share of those whose larger similarity is at least 0.15")]


class EndSimilarities(TypedDict):
    """The similarities of the top of a first list with the top and with the bottom of a second list."""

    top: float
    bottom: float


class OfMatrices(TypedDict, Generic[T]):
    """A value for each of a head's matrices: `vo` about the lists of v and o, `qk` about those of q and k; null if one
    of the two lists is not stored."""

    vo: T | None
    qk: T | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Agreement:
    """How similar the top of a first list is to the top and the bottom of a second list, and the tokens that they
    share."""

    top: float
    bottom: float
    end: Annotated[End | None, Field(description="The end with the larger similarity; null where both are 0")]
    shared: Annotated[list[Token], Field(description="The tokens at the first one's top and at that end of the second")]
    shuffled: Shuffled

    @property
    def is_telling(self) -> bool:
        return max(self.top, self.bottom) >= TELLING


def agreement(
    index: Index, shard: Shard, compared: str, of: Similarity, lens: str, first: Array, second: Array
) -> Agreement:
    """Make an Agreement from the stored similarity and all stored token ids (both ends of the list, entries) of two
    vectors. `compared` is ff for key and value, vo or qk."""
    end = agreeing_end(of)
    in_first = set(first[0].tolist())
    shared = [token for token in second[ENDS.index(end)].tolist() if token in in_first] if end else []
    return Agreement(
        top=of.top,
        bottom=of.bottom,
        end=end,
        shared=tokens_of(index.tokens, shared),
        shuffled=shuffled(shard, compared, lens),
    )


def agreeing_end(of: Similarity) -> End | None:
    if of.top == of.bottom == 0:
        return None
    return "top" if of.top >= of.bottom else "bottom"


def shuffled(shard: Shard, compared: str, lens: str) -> Shuffled:
    top, bottom, share = shard.shuffled(compared, lens)
    return {"similarity": top, "similarity_bottom": bottom, "share_15": share}


def both_shuffled(index: Index, shard: Shard, lens: str) -> OfMatrices[Shuffled]:
    """Return how similar the lists of different subheads (channels of heads) in a layer are, which is what chance
    gives."""
    vo, qk = (shuffled(shard, matrix, lens) if matrix in index.stored.compared else None for matrix in MATRICES)
    return {"vo": vo, "qk": qk}


def subhead_similarities(index: Index, shard: Shard, head: int, lens: str) -> list[OfMatrices[EndSimilarities]]:
    """Return for each subhead (channel) of a head how similar the lists of v and o are, and those of q and k."""

    def of(matrix: str, subhead: int) -> EndSimilarities | None:
        if matrix not in index.stored.compared:
            return None
        found = shard.subhead_similarity(matrix, head, subhead, lens)
        return {"top": found.top, "bottom": found.bottom}

    return [{"vo": of("vo", subhead), "qk": of("qk", subhead)} for subhead in range(index.shape.d_head)]
