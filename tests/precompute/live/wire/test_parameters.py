"""Layers, neurons and heads that visitors type: read as meant, written back in one way, refused with a reason."""

from typing import Literal

import pytest

from lexiscope.precompute.errors import BadRequest
from lexiscope.precompute.live.wire.grammar import (
    HeadOff,
    NeuronSet,
    Replaced,
    moved_change,
    parse_layers,
    parse_neurons,
    parse_off,
    parse_replaced,
    parse_set,
    without_change,
    write_layers,
    write_neurons,
    write_off,
    write_set,
)


@pytest.mark.parametrize(("typed", "layers", "written"), [
    ("0-3", (0, 1, 2, 3), "0-3"), ("5,0,2", (0, 2, 5), "0,2,5"), (" L8 ", (8,), "8"),
    ("0 - 1, 1-2 7", (0, 1, 2, 7), "0-2,7"),
    ("2–3", (2, 3), "2-3"), ("ALL", None, "all"),
])  # fmt: skip
def test_layers(typed: str, layers: tuple[int, ...] | None, written: str) -> None:
    assert parse_layers(typed) == layers
    assert write_layers(layers) == written


@pytest.mark.parametrize("typed", ["3-0", "x", "0-", "0-999999999", "1.5", ",", "-1"])
def test_layers_that_are_none(typed: str) -> None:
    with pytest.raises(BadRequest, match="write layers such as 0-3 or 0,2,5, or all"):
        parse_layers(typed)


def test_neurons() -> None:
    neurons = parse_neurons("29.1240, L25N382 29.1240")
    assert [(neuron.layer, neuron.neuron) for neuron in neurons] == [(29, 1240), (25, 382)]
    assert write_neurons(neurons) == "29.1240,25.382"
    with pytest.raises(BadRequest, match="a neuron is layer"):
        parse_neurons("8.h11")


def test_changes() -> None:
    off = parse_off("10.2361, 8.h11 L3H2 l4n5 10.2361")
    assert off == (
        NeuronSet(layer=10, neuron=2361), HeadOff(layer=8, head=11), HeadOff(layer=3, head=2),
        NeuronSet(layer=4, neuron=5),
    )  # fmt: skip
    assert write_off(off) == "10.2361,8.h11,3.h2,4.5"
    changed = parse_set("10.5:2.5,L3N4=-1 10.5:3")
    assert changed == (NeuronSet(layer=10, neuron=5, value=3.0), NeuronSet(layer=3, neuron=4, value=-1.0))
    assert write_set(changed) == "10.5:3,3.4:-1"
    at = parse_off("8.h11@3, L4N5@0 8.h11")
    assert at == (
        HeadOff(layer=8, head=11, position=3), NeuronSet(layer=4, neuron=5, position=0), HeadOff(layer=8, head=11),
    )  # fmt: skip
    assert write_off(at) == "8.h11@3,4.5@0,8.h11"
    placed = parse_set("10.2361=0@3,10.2361:2@3,10.2361:1")
    assert write_set(placed) == "10.2361:2@3,10.2361:1"
    for wrong in ("10", "x.3", "8.h", "1.2:3", "8.h11@", "8.h11@x", "@3", "8.h1@3@4"):
        with pytest.raises(BadRequest):
            parse_off(wrong)
    for wrong in ("10.5", "10.5:", "10.5:x", "8.h1:3", "1.1:1e9", "10.5@3", "10.5:2@-1"):
        with pytest.raises(BadRequest):
            parse_set(wrong)


@pytest.mark.parametrize("kind", ["mean", "patch"])
def test_what_is_replaced_is_named_as_what_is_off(kind: Literal["mean", "patch"]) -> None:
    found = parse_replaced(kind, "10.2361, L8H11@3 8.h11@3")
    assert found == (Replaced(kind=kind, layer=10, neuron=2361), Replaced(kind=kind, layer=8, head=11, position=3))
    assert write_off(found) == "10.2361,8.h11@3"
    for wrong in ("10", "8.h", "1.2:3", "8.h11@x"):
        with pytest.raises(BadRequest, match=f"{kind} = "):
            parse_replaced(kind, wrong)


@pytest.mark.parametrize(("changes", "name", "position", "moved"), [
    ("8.h11,4.5", "8.h11", 3, "8.h11@3,4.5"), ("8.h11@3,4.5", "8.h11@3", None, "8.h11,4.5"),
    ("10.5:2.5", "10.5", 0, "10.5:2.5@0"), ("8.h11@3,8.h11", "8.h11@3", None, "8.h11"), (None, "8.h11", 1, None),
])  # fmt: skip
def test_a_change_goes_elsewhere(changes: str | None, name: str, position: int | None, moved: str | None) -> None:
    assert moved_change(changes, name, position) == moved
    assert without_change(changes, name) in (None, "4.5", "8.h11")
