"""Declare asks once for addresses and JSON, in which a value is text as people type it, and for Python."""

from collections.abc import Callable
from functools import cache
from typing import Annotated, Any, ClassVar, Generic, Literal, TypeVar

import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, PlainSerializer, TypeAdapter, model_validator

from lexiscope.precompute.errors import BadRequest

A = TypeVar("A")

Lens = Literal["dot", "cosine"]
End = Literal["top", "bottom"]
Matrix = Literal["vo", "qk"]


class Wire(BaseModel):
    model_config = ConfigDict(
        frozen=True, extra="forbid", allow_inf_nan=False, ser_json_bytes="base64", val_json_bytes="base64",
        validate_by_name=True, validate_by_alias=True, serialize_by_alias=True,  # `from` is no name in Python
    )  # fmt: skip


adapter: Callable[[Any], TypeAdapter[Any]] = cache(TypeAdapter)  # reads a type from JSON and writes it; made once


class Ask(Wire, Generic[A]):
    """A question that a worker answers; A is the type of the answer. Equal questions are computed once."""

    path: ClassVar[str]  # the worker's path for this ask
    answer: ClassVar[Any]  # the type A of the answer, with which it is read from JSON

    def query(self) -> dict[str, Any]:
        """Return the arguments that differ from their defaults, as an address writes them."""
        return _as_text(self.model_dump(mode="json", exclude_defaults=True))

    @classmethod
    def left_out(cls) -> dict[str, Any]:
        """Return the default of each argument, as an address would write it."""
        return _as_text(cls().model_dump(mode="json"))


class AskArguments(Ask[A], Generic[A], extra="ignore"):  # FastAPI hands over the whole query
    """The arguments of an ask that an address can give. An empty argument, as forms send it, counts as not given."""

    @model_validator(mode="before")
    @classmethod
    def _without_empty(cls, values: Any) -> Any:
        if not isinstance(values, dict):
            return values
        return {name: value for name, value in values.items() if value not in ("", [""])}


# The tokens that may stand in lists, a bit for each of the vocabulary; None: all. Lists are as long as if there were no
# other tokens.
OnlyTokens = Annotated[bytes | None, Field(description="Which tokens may stand in lists, as packed bits")]


def pack_tokens(kept: NDArray[np.bool_]) -> bytes:
    """Write flags (d_vocab,) of the tokens that may stand in lists as a field of an ask."""
    return np.packbits(kept).tobytes()


def unpack_tokens(only: bytes | None, d_vocab: int) -> NDArray[np.bool_] | None:
    """Return the flags (d_vocab,) of a field of an ask, or None if it names all tokens; raise BadRequest if they are
    those of another vocabulary."""
    if only is None:
        return None
    if len(only) != -(-d_vocab // 8):
        raise BadRequest(f"only has {len(only)} bytes: the vocabulary has {d_vocab} tokens, a bit each")
    return np.unpackbits(np.frombuffer(only, np.uint8), count=d_vocab).astype(bool)


class Unbuilt(Wire):
    """Layers that the index of the asking server does not have, and the lens under which it would list them."""

    layers: frozenset[int] = Field(min_length=1)
    lens: Lens = "dot"
    only: OnlyTokens = None


def typed(
    parse: Callable[[str], Any], write: Callable[[Any], Any], *, several: bool = False
) -> tuple[BeforeValidator, PlainSerializer]:
    """Declare an argument that is text outside of Python: text is parsed, any other value is taken as it is.

    An argument may be repeated, as forms do, or hold several values between commas; `several` says so in the docs.
    """

    def read(value: Any) -> Any:
        if isinstance(value, list | tuple) and value and all(isinstance(part, str) for part in value):
            value = ",".join(value)
        return parse(value) if isinstance(value, str) else value

    shape: Any = tuple[str, ...] if several else str
    return BeforeValidator(read, json_schema_input_type=shape), PlainSerializer(write)


def split(text: str) -> list[str]:
    return [part.strip() for part in text.split(",") if part.strip()]


def _as_text(fields: dict[str, Any]) -> dict[str, Any]:
    return {name: ",".join(value) if isinstance(value, list) else value for name, value in fields.items()}
