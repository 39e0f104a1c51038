"""Tokens that the paper printed, in a model's vocabulary; and why a printed list cannot be compared with ours."""

from typing_extensions import TypedDict

from app.library.fault_text import for_visitors
from precompute.errors import LexiscopeError, NotBuilt
from precompute.index.index import Index
from precompute.index.not_stored import is_stored
from precompute.index.tokens import TokenTable


class PrintedToken(TypedDict):
    id: int | None  # None: the model's vocabulary has no such token
    token: str


def printed_token(tokens: TokenTable, text: str) -> PrintedToken:
    return {"id": tokens.numbers.get(text), "token": text}


def is_ascii(tokens: TokenTable, *ids: int) -> bool:
    """The paper prints no other tokens."""
    return all(tokens.raw(token).isascii() for token in ids)


def section_title(section: str) -> str:
    """ "C.1.3 Geography" -> "Geography"."""
    return section.partition(" ")[2] or section


def why_not_compared(
    index: Index, layer: int, what: str, number: int, count: int, kinds: tuple[str, ...]
) -> str | None:
    """Why the index has no list of a head or neuron that the paper has, in a few words; None if it has."""
    if layer >= index.shape.n_layers:
        return f"there is no layer {layer}, only 0 to {index.shape.n_layers - 1}"
    if number >= count:
        return f"there is no {what} {number} in a layer, only 0 to {count - 1}"
    if any(not is_stored(index, kind) for kind in kinds):
        return f"{' and '.join(kinds)} are not stored in this index"
    try:
        index.shard(layer)
    except NotBuilt:
        return f"layer {layer} is not built"
    except LexiscopeError as error:
        return for_visitors(error, index.folder.parent)
    return None
