"""Read and write the names of parameters as people type them: L10, L10N2361, 8.11, 29/432, L8H11.5, L8H11.svd5. Search,
`show` and pages use this module; the addresses of labels, such as gpt2/vo/8/11, are for label_address.py."""

import re
from collections.abc import Mapping
from typing import Any

from lexiscope.precompute.errors import BadRequest, NotFound
from lexiscope.precompute.index.label_address import LabelAddress
from lexiscope.precompute.shape import GROUPED_KINDS, Shape

_N = r"(\d{1,9})"
# What a name may look like, and the kinds of parameters that it may mean, the likeliest first.
_NAMES = tuple(
    (re.compile(pattern, re.ASCII | re.IGNORECASE), kinds)
    for pattern, kinds in (
        (rf"(?:L|layer\s*){_N}", ("layer",)),
        (rf"L{_N}N{_N}", ("ff",)),
        (rf"(?:L{_N}H{_N}|{_N}[./]{_N})[./ ]?svd[./ ]?{_N}", ("svd",)),
        (rf"L{_N}H{_N}(?:[–-]\d{{1,9}})?", ("head",)),
        (rf"L{_N}H{_N}(?:[–-]\d{{1,9}})?\.{_N}", ("sub",)),
        (rf"{_N}[./]{_N}", ("head", "ff")),
        (rf"{_N}[./]{_N}[./]{_N}", ("sub",)),
    )
)


def named_parameters(model: str, shape: Shape, text: str) -> list[LabelAddress]:
    """Return the layers or parameters of a model that a text may name, likeliest first: two numbers mean a head, but
    may also mean a neuron."""
    return [place for place in _read(model, text) if not place.what_is_wrong(shape)]


def out_of_range(model: str, shape: Shape, text: str) -> str | None:
    """Say which parameters exist, if a text names one that the model does not have."""
    if not _read(model, text) or named_parameters(model, shape, text):
        return None
    counts = {"layers": shape.n_layers, "neurons": shape.d_mlp, "heads": shape.n_heads}
    counts |= {"subheads": shape.d_head, "directions": shape.d_head}
    return f"{model} has " + ", ".join(f"{what} 0 to {count - 1}" for what, count in counts.items())


def parameter_named(model: str, shape: Shape, text: str) -> LabelAddress:
    """Return the parameter that a text most likely names; raise NotFound if the model has no such parameter, and
    BadRequest if the text is no such name."""
    for place in named_parameters(model, shape, text):
        if place.kind != "layer":
            return place
    if outside := out_of_range(model, shape, text):
        raise NotFound(f"{text}: {outside}")
    names = example_names(shape)
    examples = ", ".join(names[kind] for kind in ("neuron", "head", "subhead", "direction"))
    raise BadRequest(f"{text[:100]!r} names no parameter of {model}: write such as {examples}")


def _read(model: str, text: str) -> list[LabelAddress]:
    for pattern, kinds in _NAMES:
        if match := pattern.fullmatch(text.strip()):
            numbers = [int(number) for number in match.groups() if number]
            return [LabelAddress(model, kind, *numbers) for kind in kinds]
    return []


def example_names(shape: Shape) -> dict[str, str]:
    """Return names of parameters that a model of this shape has."""
    layer, neuron, head = shape.n_layers * 5 // 6, max(shape.n_heads, shape.d_mlp * 3 // 4), shape.n_heads - 1
    neuron = min(neuron, shape.d_mlp - 1)
    return {
        "neuron": f"L{layer}N{neuron}",
        "neuron_dotted": f"{layer}.{neuron}",
        "head": f"L{layer}H{head}",
        "head_dotted": f"{layer}.{head}",
        "subhead": f"{layer}.{head}.{min(5, shape.d_head - 1)}",
        "direction": f"L{layer}H{head}.svd0",
    }


def vector_name(vector: Mapping[str, Any], shape: Shape | None = None) -> str:
    """Write the name of a vector: L10N2361, L8H11.5 or, of a direction, L8H11.svd5. With a shape, a vector that grouped
    heads share names them all, L8H0–2.5; without, only the first."""
    layer, head = vector["layer"], vector["head"]
    if head is None:
        return f"L{layer}N{vector['index']}"
    if vector["direction"] is not None:
        return f"L{layer}H{head}.svd{vector['direction']}"
    group = shape.n_heads // shape.n_kv_heads if shape and vector["kind"] in GROUPED_KINDS else 1
    heads = f"{head}–{head + group - 1}" if group > 1 else f"{head}"
    return f"L{layer}H{heads}.{vector['subhead']}"


def matched_name(vector: Mapping[str, Any], kind: str) -> str:
    """Write the name of a vector that a comparison matches. If its model has no index here, its head is not known, and
    the name consists of its kind and number."""
    if vector["head"] is None and not kind.startswith("ff_"):
        return f"L{vector['layer']} {kind} {vector['index']}"
    return vector_name(vector)
