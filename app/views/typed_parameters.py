"""Layers, neurons and heads as visitors type them into live pages, read and written back in one way: which to show, and
what a run changes about them."""

import re
from collections.abc import Iterable

from app.views.typed_numbers import NUMBER, checked_size, write_number
from precompute.errors import BadRequest
from precompute.index.index import ranges
from precompute.live.wire.prompt import HeadOff, Intervention, NeuronPlace, NeuronSet

MOST_LAYERS = 1000  # far above what any model has
ALL_LAYERS = "all"

_LAYERS = re.compile(r"[Ll]?([0-9]{1,9})(?:[-–][Ll]?([0-9]{1,9}))?")
_NEURON = re.compile(r"[Ll]?([0-9]{1,9})(?:\.|[Nn])([0-9]{1,9})")
_HEAD = re.compile(r"[Ll]?([0-9]{1,9})(?:\.[Hh]|[Hh])([0-9]{1,9})")
_DIGITS = re.compile(r"[0-9]{1,9}")
_SET = re.compile(rf"([^:=]+)[:=]([+\-−]?(?:{NUMBER}))")


def parse_layers(text: str) -> tuple[int, ...] | None:
    """`0-3`, `0,2,5`, `L8`: layers, rising; None: `all` of them."""
    if text.strip().lower() == ALL_LAYERS:
        return None
    layers: set[int] = set()
    for part in re.split(r"[\s,]+", re.sub(r"\s*[-–]\s*", "-", text.strip())):
        if not part:
            continue
        match = _LAYERS.fullmatch(part)
        first, last = (int(match[1]), int(match[2] or match[1])) if match else (0, -1)
        if not first <= last < MOST_LAYERS:
            raise BadRequest(f"layers = {part[:100]!r}: write layers such as 0-3 or 0,2,5, or {ALL_LAYERS}")
        layers |= set(range(first, last + 1))
    if not layers:
        raise BadRequest(f"layers = {text[:100]!r}: write layers such as 0-3 or 0,2,5, or {ALL_LAYERS}")
    return tuple(sorted(layers))


def write_layers(layers: tuple[int, ...] | None) -> str:
    return ALL_LAYERS if layers is None else ranges(layers).replace(" ", "")


def parse_neurons(text: str) -> tuple[NeuronPlace, ...]:
    """`29.1240, L25N382`: neurons, each once."""
    parts = [_neuron(part, "neurons") for part in re.split(r"[\s,]+", text.strip()) if part]
    return tuple(NeuronPlace(layer=layer, neuron=neuron) for layer, neuron in dict.fromkeys(parts))


def write_neurons(neurons: Iterable[NeuronPlace]) -> str:
    return ",".join(f"{neuron.layer}.{neuron.neuron}" for neuron in neurons)


def parse_off(text: str) -> tuple[Intervention, ...]:
    """`10.2361, 8.h11`, `8.h11@3`: neurons and heads that are switched off, at all positions or at one."""
    changes: list[Intervention] = []
    for part in re.split(r"[\s,]+", text.strip()):
        name, position = _position(part, "off")
        if found := _HEAD.fullmatch(name):
            changes.append(HeadOff(layer=int(found[1]), head=int(found[2]), position=position))
        elif part:
            layer, neuron = _neuron(name, "off")
            changes.append(NeuronSet(layer=layer, neuron=neuron, position=position))
    return tuple(dict.fromkeys(changes))


def write_off(changes: Iterable[Intervention]) -> str:
    return ",".join(map(off_name, changes))


def parse_set(text: str) -> tuple[Intervention, ...]:
    """`10.5:2.5`, `10.5:2.5@3`: neurons whose coefficient is set, at all positions or at one; of one that is set
    twice there, the last."""
    changes: dict[tuple[int, int, int | None], NeuronSet] = {}
    for part in re.split(r"[\s,]+", text.strip()):
        if not part:
            continue
        setting, position = _position(part, "set")
        match = _SET.fullmatch(setting)
        if not match:
            raise BadRequest(f"set = {part[:100]!r}: write layer.neuron:coefficient, such as 10.2361:2.5")
        layer, neuron = _neuron(match[1], "set")
        value = checked_size(float(match[2].replace("−", "-")))
        changes[layer, neuron, position] = NeuronSet(layer=layer, neuron=neuron, value=value, position=position)
    return tuple(changes.values())


def write_set(changes: Iterable[Intervention]) -> str:
    return ",".join(
        f"{change.layer}.{change.neuron}:{write_number(change.value)}{_at(change.position)}"
        for change in changes
        if isinstance(change, NeuronSet)
    )


def off_name(change: Intervention) -> str:
    """The name of a neuron or head as the argument `off` writes it."""
    number = f"h{change.head}" if isinstance(change, HeadOff) else str(change.neuron)
    return f"{change.layer}.{number}{_at(change.position)}"


def without_change(changes: str | None, name: str) -> str | None:
    """What `off` or `set` asks for, less one neuron or head by its name; None if nothing is left."""
    return ",".join(part for part in (changes or "").split(",") if _name_of(part) != name) or None


def moved_change(changes: str | None, name: str, position: int | None) -> str | None:
    """What `off` or `set` asks for, but one neuron or head, by its name, at this position alone; None: at all."""
    parts = [part.partition("@")[0] + _at(position) if _name_of(part) == name else part
             for part in (changes or "").split(",")]  # fmt: skip
    return ",".join(dict.fromkeys(parts)) or None


def _neuron(part: str, argument: str) -> tuple[int, int]:
    match = _NEURON.fullmatch(part)
    if not match:
        raise BadRequest(f"{argument} = {part[:100]!r}: a neuron is layer.neuron such as 10.2361, a head 8.h11")
    return int(match[1]), int(match[2])


def _position(part: str, argument: str) -> tuple[str, int | None]:
    """What is changed, and where: `8.h11@3` -> `8.h11` and 3."""
    name, mark, position = part.partition("@")
    if mark and not _DIGITS.fullmatch(position):
        raise BadRequest(f"{argument} = {part[:100]!r}: after @ stands a token's position, from 0, as in {name[:50]}@3")
    return name, int(position) if mark else None


def _name_of(part: str) -> str:
    """`10.5:2.5@3` -> `10.5@3`."""
    setting, mark, position = part.partition("@")
    return setting.partition(":")[0] + mark + position


def _at(position: int | None) -> str:
    return "" if position is None else f"@{position}"
