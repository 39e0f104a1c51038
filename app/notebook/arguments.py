"""Check the arguments of methods before anything is computed or requested. BadRequest names the wrong argument, in the
same words whether an index or a server would answer."""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from operator import index as as_int  # accepts integers of numpy, too, such as those in frames
from types import NoneType, UnionType
from typing import Any, Literal, SupportsFloat, TypeAlias, TypeVar, Union, get_args, get_origin

from pydantic import BaseModel
from pydantic.fields import FieldInfo

from lexiscope.precompute.errors import BadRequest
from lexiscope.precompute.live.wire.fields import Lens
from lexiscope.precompute.live.wire.grammar import parse_terms
from lexiscope.precompute.shape import SIDES

T = TypeVar("T")
# None stands for the first lens that is stored: `dot`, unless the index was built without it
AskedLens: TypeAlias = Lens | None

LARGEST_NUMBER = 10**9 - 1  # larger than any number of a model, and the largest that an address of the site can hold
_ADDED_UP = re.compile(r'(?:^|\s)[+\-−]|[*×·,"]')  # signs of a sum, of weights, or of quotes


def checked_fields(taker: type[BaseModel], values: Mapping[str, Any]) -> dict[str, Any]:
    """Return the arguments that are not None, each checked by the type of its field. The field alone would also accept
    what an address may hold: True or "5" for a number."""
    fields = taker.model_fields
    return {name: _checked(name, value, fields[name]) for name, value in values.items() if value is not None}


def _checked(name: str, value: Any, field: FieldInfo) -> Any:
    holds: Any = field.annotation
    if get_origin(holds) in (Union, UnionType):
        holds = next(each for each in get_args(holds) if each is not NoneType)
    if get_origin(holds) is Literal:
        return one_of(name, value, get_args(holds))
    if get_origin(holds) is tuple:
        return texts(name, value)
    if holds is int:
        return _whole(name, value, next(limit.ge for limit in field.metadata if hasattr(limit, "ge")))
    if holds is float:
        return _amount(name, value)
    # A text; or a token, by its text or its id.
    return text(name, value) if holds is str or isinstance(value, str) else str(at(name, value))


def _amount(name: str, value: Any) -> float:
    if isinstance(value, bool | str) or not isinstance(value, SupportsFloat):
        raise BadRequest(f"{name} = {value!r:.100}: give a number")
    return float(value)


def at(name: str, value: Any) -> int:
    """Check a number that counts from 0, such as that of a layer, a neuron or a token."""
    return _whole(name, value, 0)


def count(name: str, value: Any) -> int:
    """Check how many entries were asked for, and return the number; an error says what is wrong with it."""
    return _whole(name, value, 1)


def layers(value: Any) -> tuple[int, ...] | None:
    """Return numbers of layers as a tuple: from one number, from several, or None for all layers."""
    if value is None:
        return None
    if isinstance(value, str | slice):
        raise BadRequest(f"layers = {value!r:.100}: give a layer, a list of them, or a range such as range(8, 11)")
    return tuple(at("layers", each) for each in (value if isinstance(value, Iterable) else [value]))


def one_of(name: str, value: T, known: Sequence[Any]) -> T:
    """Return the value, if it is one of the known names or None; otherwise raise an error."""
    if value is not None and value not in known:
        raise BadRequest(f"{name} = {value!r:.100}: there are {', '.join(known)}")
    return value


def text(name: str, value: Any) -> str:
    if not isinstance(value, str):
        raise BadRequest(f"{name} = {value!r:.100}: give a text")
    try:
        value.encode()
    except UnicodeEncodeError:
        raise BadRequest(f"{name} = {value[:100]!a}: this is not valid Unicode") from None
    return value


def texts(name: str, value: Any) -> tuple[str, ...]:
    """Return one text, or several, as a tuple."""
    if not isinstance(value, str) and not isinstance(value, Iterable):
        raise BadRequest(f"{name} = {value!r:.100}: give a text, or a list of texts")
    return tuple(text(name, each) for each in ([value] if isinstance(value, str) else value))


def search_words(values: Sequence[Any]) -> str:
    """Return a search as people type it: one text stays as it is; of several texts, those with a space or a comma are
    quoted, so that they stay together."""
    return _one_text(values, " ", lambda word: any(c.isspace() or c == "," for c in word))


def seed_words(values: Sequence[Any]) -> str:
    """Return the seed words as one text: an argument with a space becomes one quoted word, unless it is a sum such as
    `king - man`."""
    terms = _one_text(values, " ", lambda word: " " in word.strip() and not _ADDED_UP.search(word))
    if not parse_terms(terms):
        raise _no_words()
    return terms


def word_groups(values: Sequence[Any]) -> str:
    """Return words for heads as one text: of several texts, those with a space are quoted, unless they are a mean such
    as `horse + lion`."""
    return _one_text(values, ",", lambda word: " " in word.strip() and not set(word) & set('+,"'))


def _one_text(values: Sequence[Any], between: str, is_quoted: Callable[[str], bool]) -> str:
    several = words(values)
    if len(several) == 1:
        return several[0]
    return between.join(f'"{word}"' if is_quoted(word) else word for word in several)


def seed_kinds(value: str | Iterable[str]) -> tuple[str, ...]:
    named = {*(value.split(",") if isinstance(value, str) else texts("kind", value))}
    if not named:
        raise BadRequest(f"kind is empty: there are {', '.join(SIDES)}")
    for kind in named:
        one_of("kind", kind, tuple(SIDES))
    return tuple(kind for kind in SIDES if kind in named)


def words(values: Sequence[Any]) -> tuple[str, ...]:
    """Return the words of a call, which were given as several arguments or as one list."""
    several = values[0] if len(values) == 1 else values
    if given := tuple(word for word in texts("words", several) if word):
        return given
    raise _no_words()


def _no_words() -> BadRequest:
    return BadRequest("there are no words: give some such as horse, dog, lion")


def _whole(name: str, value: Any, first: int) -> int:
    wanted = f"give a whole number from {first} on"
    try:
        number = as_int(value)
    except TypeError:
        raise BadRequest(f"{name} = {value!r:.100}: {wanted}") from None
    if isinstance(value, bool) or number < first:
        raise BadRequest(f"{name} = {value if number > -LARGEST_NUMBER else 'a large negative number'}: {wanted}")
    if number > LARGEST_NUMBER:
        raise BadRequest(f"{name} is too large: {wanted}, up to {LARGEST_NUMBER}")
    return number
