"""What people give as arguments, checked before a source is asked: BadRequest names the argument, whether an index or
a server would answer."""

import re
from collections.abc import Iterable, Mapping, Sequence
from operator import index as as_int  # of numpy, too, as frames have them
from typing import Any, Literal, TypeAlias, TypeVar, get_args, get_origin

from lexiscope.app.notebook.source import AskedLens
from lexiscope.precompute.errors import BadRequest
from lexiscope.precompute.live.wire.asks import PromptArguments
from lexiscope.precompute.live.wire.fields import Lens
from lexiscope.precompute.live.wire.grammar import parse_terms
from lexiscope.precompute.shape import LENSES, MATRICES, PRESETS, SIDES, Preset

T = TypeVar("T")
ListLens: TypeAlias = Lens | Literal["both"] | None

LARGEST = 10**9 - 1  # far above what any model has, and what an address of the site can say
_ADDED_UP = re.compile(r'(?:^|\s)[+\-−]|[*×·,"]')  # signs between words, weights, or quotes


def at(name: str, value: Any) -> int:
    """A number that counts from 0: of a layer, a neuron, a token, a position."""
    return _whole(name, value, 0)


def at_or_none(name: str, value: Any) -> int | None:
    return None if value is None else at(name, value)


def count(name: str, value: Any) -> int:
    """How many entries, or which page."""
    return _whole(name, value, 1)


def count_or_none(name: str, value: Any) -> int | None:
    return None if value is None else count(name, value)


def layers(value: Any) -> tuple[int, ...] | None:
    """One, several, or None for all."""
    if value is None:
        return None
    if isinstance(value, str | slice):
        raise BadRequest(f"layers = {value!r:.100}: give a layer, a list of them, or a range such as range(8, 11)")
    return tuple(at("layers", each) for each in (value if isinstance(value, Iterable) else [value]))


def one_of(name: str, value: T, known: Sequence[Any]) -> T:
    """One of the known names, or None."""
    if value is not None and value not in known:
        raise BadRequest(f"{name} = {value!r:.100}: there are {', '.join(known)}")
    return value


def lens(value: AskedLens) -> AskedLens:
    return one_of("lens", value, LENSES)


def list_lens(value: ListLens) -> ListLens:
    return one_of("lens", value, (*LENSES, "both"))


def preset(value: Preset | None) -> Preset | None:
    return one_of("preset", value, PRESETS)


def kind_of_place(value: str | None) -> str | None:
    return one_of("kind", value, (*SIDES, *MATRICES))


def text(name: str, value: Any) -> str:
    if not isinstance(value, str):
        raise BadRequest(f"{name} = {value!r:.100}: give a text")
    try:
        value.encode()
    except UnicodeEncodeError:
        raise BadRequest(f"{name} = {value[:100]!a}: this is not valid Unicode") from None
    return value


def texts(name: str, value: Any) -> tuple[str, ...]:
    """One text, or several."""
    if not isinstance(value, str) and not isinstance(value, Iterable):
        raise BadRequest(f"{name} = {value!r:.100}: give a text, or a list of texts")
    return tuple(text(name, each) for each in ([value] if isinstance(value, str) else value))


def search_words(values: Sequence[Any]) -> str:
    """One as people type it; of several, each stays together."""
    words = _words(values)
    if len(words) == 1:
        return words[0]
    return " ".join(f'"{word}"' if any(c.isspace() or c == "," for c in word) else word for word in words)


def seed_words(values: Sequence[Any]) -> str:
    """The same, but words that are added up, as in `king - man`, do not stay together."""
    words = _words(values)
    if len(words) > 1:
        words = tuple(f'"{word}"' if " " in word.strip() and not _ADDED_UP.search(word) else word for word in words)
    terms = " ".join(words)
    if not parse_terms(terms):
        raise _no_words()
    return terms


def seed_kinds(value: str | Iterable[str]) -> tuple[str, ...]:
    named = {*(value.split(",") if isinstance(value, str) else texts("kind", value))}
    if not named:
        raise BadRequest(f"kind is empty: there are {', '.join(SIDES)}")
    for kind in named:
        one_of("kind", kind, tuple(SIDES))
    return tuple(kind for kind in SIDES if kind in named)


def token_or_none(name: str, value: Any) -> str | None:
    """A word, or a token by its id, as a run takes it."""
    return value if value is None else text(name, value) if isinstance(value, str) else str(at(name, value))


def of_run(values: Mapping[str, Any]) -> dict[str, Any]:
    """The arguments of a run that were given, each checked by what its field holds."""
    fields = PromptArguments.model_fields
    for name in values:
        if name not in fields or name in ("text", "panel"):
            raise TypeError(f"run() got an unexpected keyword argument {name!r}")
    checked = {name: _of_field(name, value, fields[name].annotation) for name, value in values.items()}
    return {name: value for name, value in checked.items() if value is not None}


def _of_field(name: str, value: Any, holds: Any) -> Any:
    if get_origin(holds) is Literal:
        return one_of(name, value, get_args(holds))
    if get_origin(holds) is tuple:
        return texts(name, value)
    if holds is int:
        return count(name, value)
    return at_or_none(name, value) if holds == int | None else token_or_none(name, value)


def _words(values: Sequence[Any]) -> tuple[str, ...]:
    """Of a call with several, or with one list of them."""
    several = values[0] if len(values) == 1 else values
    if words := tuple(word for word in texts("words", several) if word):
        return words
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
        raise BadRequest(f"{name} = {value if number > -LARGEST else 'a large negative number'}: {wanted}")
    if number > LARGEST:
        raise BadRequest(f"{name} is too large: {wanted}, up to {LARGEST}")
    return number
