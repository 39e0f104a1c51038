"""Reads what a person types or pastes to name a parameter: L10, L10N2361, 8.11, 29/432, L8H11.5, L8H11.svd5, or the
URL of a page; and writes such a name."""

import re
from collections.abc import Mapping
from typing import Any
from urllib.parse import parse_qsl, unquote, urlsplit

from lexiscope.app import addresses
from lexiscope.app.views.labels import page_of
from lexiscope.precompute.index.label_address import KINDS, parse_label_address
from lexiscope.precompute.index.model_names import MODEL_NAME
from lexiscope.precompute.shape import GROUPED_KINDS, Shape

_LAYER = re.compile(r"(?:L|layer\s*)(\d{1,9})", re.ASCII | re.IGNORECASE)
_NEURON = re.compile(r"L(\d{1,9})N(\d{1,9})", re.ASCII | re.IGNORECASE)
_HEAD = re.compile(r"L(\d{1,9})H(\d{1,9})(?:[–-]\d{1,9})?(?:\.(\d{1,9}))?", re.ASCII | re.IGNORECASE)
_DIRECTION = re.compile(
    r"(?:L(\d{1,9})H(\d{1,9})|(\d{1,9})[./](\d{1,9}))[./ ]?svd[./ ]?(\d{1,9})", re.ASCII | re.IGNORECASE
)
_DOTTED = re.compile(r"(\d{1,9})[./](\d{1,9})(?:[./](\d{1,9}))?", re.ASCII)
_NUMBER = re.compile(r"\d{1,9}", re.ASCII)


def vector_name(vector: Mapping[str, Any], shape: Shape | None = None) -> str:
    """L10N2361, L8H11.5 or, of a direction, L8H11.svd5. With a shape, a vector that grouped heads share names them all,
    L8H0–2.5; without, the first."""
    layer, head = vector["layer"], vector["head"]
    if head is None:
        return f"L{layer}N{vector['index']}"
    if vector["direction"] is not None:
        return f"L{layer}H{head}.svd{vector['direction']}"
    group = shape.n_heads // shape.n_kv_heads if shape and vector["kind"] in GROUPED_KINDS else 1
    heads = f"{head}–{head + group - 1}" if group > 1 else f"{head}"
    return f"L{layer}H{heads}.{vector['subhead']}"


def matched_name(vector: Mapping[str, Any], kind: str) -> str:
    """The same of a vector that a comparison matches; where its model has no index here, nobody knows which head
    it is of, and it is called by its kind and number."""
    if vector["head"] is None and not kind.startswith("ff_"):
        return f"L{vector['layer']} {kind} {vector['index']}"
    return vector_name(vector)


def parse_address(model: str, shape: Shape, text: str, lens: str = "dot") -> str | None:
    """The address of the page that a text names, a name under this lens; None if it names none of this model."""
    text = text.strip()
    return _typed(model, shape, text, {"lens": lens}) or _pasted(model, shape, text)


def possible_pages(model: str, shape: Shape, text: str, lens: str = "dot") -> list[tuple[str, str]]:
    """The pages that a text may mean, best first, and what each is: two numbers are a head, but may be a neuron."""
    paths = [parse_address(model, shape, text, lens)]
    if match := _DOTTED.fullmatch(text.strip()):
        layer, second, third = match.groups()
        paths.append(None if third else _existing(shape, "neuron", model, {"lens": lens}, layer, second))
    return [(path, _title(path)) for path in dict.fromkeys(paths) if path]


def pasted_model(text: str) -> str | None:
    """The model that a pasted address of a page is of, whether it is here or not."""
    try:
        name, *words = _path(text)
    except ValueError:
        return None
    path = "/".join(words)
    is_page = any(_reads(page, path) is not None for page in addresses.DECLARED.values()) if words else "://" in text
    is_page = is_page or bool(words and words[0] in KINDS and len(words) > 1)
    return name if is_page and MODEL_NAME.fullmatch(name) else None


def out_of_range(model: str, shape: Shape, text: str) -> str | None:
    """What there is, for a text that names a parameter which is not there."""
    text = text.strip()
    names = (_LAYER, _NEURON, _HEAD, _DIRECTION, _DOTTED)
    if not any(name.fullmatch(text) for name in names) or parse_address(model, shape, text):
        return None
    counts = {"layers": shape.n_layers, "neurons": shape.d_mlp, "heads": shape.n_heads}
    counts |= {"subheads": shape.d_head, "directions": shape.d_head}
    return f"{model} has " + ", ".join(f"{what} 0 to {count - 1}" for what, count in counts.items())


def examples(shape: Shape) -> dict[str, str]:
    """Names of parameters that a model of this shape has."""
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


def _title(path: str) -> str:
    """The title of the page at one of our own addresses."""
    words = unquote(path.partition("?")[0]).split("/", 2)[2:]
    for page in addresses.DECLARED.values():
        if (read := _reads(page, *words)) is not None:
            return page.title.format(**read | {name.upper(): value.upper() for name, value in read.items()})
    return addresses.DECLARED["model"].title


def _reads(page: addresses.Declared, path: str = "") -> dict[str, str] | None:
    """What stands in a path, if it is this page's and a pasted address of it is followed."""
    return page.read(path) if page.title and path else None


def _path(text: str) -> list[str]:
    """The words of an address, whatever its host and ending."""
    path = unquote(urlsplit(text.strip()).path)
    for format in addresses.FIGURE_FORMATS:
        path = path.removesuffix(f".{format}")
    return path.strip("/").split("/")


def _typed(model: str, shape: Shape, text: str, query: dict[str, Any]) -> str | None:
    if match := _LAYER.fullmatch(text):
        return _existing(shape, "layer", model, query, match[1])
    if match := _NEURON.fullmatch(text):
        return _existing(shape, "neuron", model, query, *match.groups())
    if match := _DIRECTION.fullmatch(text):
        return _existing(shape, "direction", model, query, *(number for number in match.groups() if number))
    if match := _HEAD.fullmatch(text) or _DOTTED.fullmatch(text):
        layer, second, *third = (number for number in match.groups() if number)
        if third:
            return _existing(shape, "subhead", model, query, layer, second, *third)
        if int(second) >= shape.n_heads and match.re is _DOTTED:
            return _existing(shape, "neuron", model, query, layer, second)
        return _existing(shape, "head", model, query, layer, second)
    return None


def _pasted(model: str, shape: Shape, text: str) -> str | None:
    """The page of a pasted URL of any host: only the path and the arguments that the page takes are taken over."""
    try:
        parts = urlsplit(text)
        name, *words = _path(text)
    except ValueError:
        return None
    if name != model or "/" not in text:
        return None
    query: dict[str, Any] = {
        name: int(value) if _NUMBER.fullmatch(value) and name != "q" else value
        for name, value in parse_qsl(parts.query)
    }
    path = "/".join(words)
    if not path:
        return _existing(shape, "model", model, query)
    for page, declared in addresses.DECLARED.items():
        if (read := _reads(declared, path)) is not None:
            if not MODEL_NAME.fullmatch(read.get("other", model)):
                return None
            return _existing(shape, page, model, query, *read.values())
    return _labelled(shape, "/".join((name, *words)))


def _labelled(shape: Shape, text: str) -> str | None:
    """The page of the parameter that the address of a label names, such as gpt2/vo/8/11."""
    try:
        place = parse_label_address(text)
    except ValueError:
        return None
    return None if place.what_is_wrong(shape) else page_of(place)


def _existing(shape: Shape, page: str, model: str, query: Mapping[str, Any], *values: str) -> str | None:
    """The address, if there is such a parameter."""
    counts = {
        "layer": shape.n_layers,
        "neuron": shape.d_mlp,
        "head": shape.n_heads,
        "subhead": shape.d_head,
        "direction": shape.d_head,
        "token": shape.d_vocab,
    }
    declared = addresses.DECLARED[page]
    if any(int(value) >= counts[name] for name, value in zip(declared.names, values, strict=True) if name in counts):
        return None
    numbers = [int(value) if value.isdecimal() else value for value in values]
    known = {name: value for name, value in query.items() if name in (*declared.left_out, "hubs")}
    return addresses.link(page, model, *numbers, **known)
