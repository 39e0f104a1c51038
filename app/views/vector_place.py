"""Where a vector stands in its layer: one of a head's has its head and the number of its subhead or direction."""

from typing import Annotated

from pydantic import Field
from typing_extensions import TypedDict

from lexiscope.precompute.shape import DIRECTION_KINDS, Shape


class InHead(TypedDict):
    """All null of a neuron's vector."""

    head: Annotated[int | None, Field(description="Of kinds that heads share, the first head that has it")]
    subhead: int | None
    direction: Annotated[
        int | None, Field(description="Of `vo_in`, `vo_out`, `qk_query` and `qk_key`: which singular direction, from 0")
    ]


IN_NO_HEAD: InHead = {"head": None, "subhead": None, "direction": None}


def in_head(shape: Shape, kind: str, row: int) -> InHead:
    if kind.startswith("ff_"):
        return IN_NO_HEAD
    head, number = shape.head_and_subhead(kind, row)
    if kind in DIRECTION_KINDS:
        return {"head": head, "subhead": None, "direction": number}
    return {"head": head, "subhead": number, "direction": None}
