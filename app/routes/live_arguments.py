"""Arguments of live pages that only an address has: a long text, packed."""

from typing import Annotated

from fastapi import Depends, Query
from pydantic import AfterValidator, Field

from lexiscope.app.packed_text import unpack
from lexiscope.precompute.live.wire.asks import PromptArguments
from lexiscope.precompute.live.wire.fields import empty_is


def _unpackable(packed: str | None) -> str | None:
    if packed:
        unpack(packed)
    return packed


class PromptQuery(PromptArguments):
    z: Annotated[
        str | None,
        Field(description="Instead of `text`, a long one: UTF-8, raw deflate, base64 for addresses. POST makes it"),
        AfterValidator(_unpackable),
        empty_is(None),
    ] = None


async def unpacked(query: Annotated[PromptQuery, Query()]) -> PromptArguments:
    fields = dict(query)
    z = fields.pop("z")
    return PromptArguments.model_construct(**fields | ({"text": unpack(z)} if z else {}))


AskedPrompt = Annotated[PromptArguments, Depends(unpacked)]
