"""Write the data of a page as JSON: its fields as they are declared, except those that only the HTML shows."""

import json
from functools import cache
from typing import Annotated, Any, get_args, get_origin, get_type_hints

import orjson
from pydantic import BaseModel
from pydantic.fields import FieldInfo


def json_bytes(view: Any) -> bytes:
    """Return the JSON, as bytes, of a frozen dataclass of plain data, such as a View."""
    return orjson.dumps(view, default=_json_fields, option=orjson.OPT_PASSTHROUGH_DATACLASS)


def ascii_json(view: Any) -> str:
    """Return JSON in ASCII alone, so that no encoding of a terminal or a pipe can change it."""
    return json.dumps(orjson.loads(json_bytes(view)))


def _json_fields(value: Any) -> dict[str, Any]:
    if isinstance(value, BaseModel):  # a record of pydantic, as it is stored in a file
        return value.model_dump(mode="json")
    dataclass: Any = type(value)
    always, unless_none = _declared(dataclass)
    fields = {written: getattr(value, name) for name, written in always.items()}
    for name in unless_none:
        if fields[name] is None:
            del fields[name]
    return fields


@cache
def _declared(dataclass: Any) -> tuple[dict[str, str], tuple[str, ...]]:
    """Return the dataclass's fields that JSON has, in order, with their names there, and the names of those that JSON
    leaves out if they are None."""
    if not hasattr(dataclass, "__dataclass_fields__"):
        raise TypeError(f"{dataclass.__name__} is no part of a view")
    hints = get_type_hints(dataclass, include_extras=True)
    markers = {name: _marker(hints[name]) for name in dataclass.__dataclass_fields__}
    shown = {name: marker.alias or name for name, marker in markers.items() if not marker.exclude}
    return shown, tuple(written for name, written in shown.items() if markers[name].exclude_if)


def _marker(hint: Any) -> FieldInfo:
    """Return the pydantic Field that a type is annotated with, such as PAGE_ONLY or OMIT_NONE."""
    described = get_args(hint)[1:] if get_origin(hint) is Annotated else ()
    return next((extra for extra in described if isinstance(extra, FieldInfo)), FieldInfo())
