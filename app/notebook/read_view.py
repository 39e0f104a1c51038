"""Views from the JSON of their pages: the way back from app/formats/json_format.py. What is for people's eyes only is
not in JSON, and has its default here."""

from collections.abc import Hashable
from dataclasses import replace
from functools import cache
from typing import Any, TypeVar, cast

from pydantic import TypeAdapter, ValidationError

from lexiscope.app.notebook.errors import Unreachable
from lexiscope.app.pages.head import HeadPairs, HeadView, shown_pairs
from lexiscope.precompute.plain_text import plain

T = TypeVar("T")


def read_view(view: type[T], content: bytes, address: str) -> T:
    """Unreachable where this is no such page: another program, or a version that says something else."""
    try:
        made: Any = _adapter(cast(Hashable, view)).validate_json(content)
    except ValidationError as error:
        first = error.errors()[0]
        where = plain(".".join(map(str, first["loc"]))[:200])
        raise Unreachable(
            f"{address} answers with something else than this version of Lexiscope expects ({where or 'it'}: "
            f"{plain(first['msg'])}). Is the server of the same version?"
        ) from None
    if isinstance(made, HeadView):
        made = replace(made, shown=shown_pairs(made.readable, made.paper or _asked_for(made)))
    read: T = made
    return read


@cache
def _adapter(view: Hashable) -> TypeAdapter[Any]:
    shape: Any = view
    return TypeAdapter(shape)


def _asked_for(view: HeadView) -> HeadPairs | None:
    """The pairs of the page's own lens and preset, unless they are the readable ones."""
    readable = view.readable
    if not (view.vo and view.qk) or (readable and (readable.lens, readable.preset) == (view.lens, view.preset)):
        return None
    return HeadPairs(lens=view.lens, preset=view.preset, vo=view.vo, qk=view.qk)
