"""Reads what a person types or pastes to name a parameter: L10, L10N2361, 8.11, 29/432, L8H11.5, L8H11.svd5, or the
URL of a page; and writes such a name."""

import re
from collections.abc import Callable, Mapping
from typing import Any
from urllib.parse import parse_qsl, unquote, urlsplit

from app import addresses
from app.views.labels import page_of
from precompute.index.label_address import KINDS, parse_label_address
from precompute.index.model_names import MODEL_NAME
from precompute.shape import GROUPED_KINDS, HEAD_KINDS, MATRICES, Shape

_LAYER = re.compile(r"(?:L|layer\s*)(\d{1,9})", re.ASCII | re.IGNORECASE)
_NEURON = re.compile(r"L(\d{1,9})N(\d{1,9})", re.ASCII | re.IGNORECASE)
_HEAD = re.compile(r"L(\d{1,9})H(\d{1,9})(?:[–-]\d{1,9})?(?:\.(\d{1,9}))?", re.ASCII | re.IGNORECASE)
_DIRECTION = re.compile(
    r"(?:L(\d{1,9})H(\d{1,9})|(\d{1,9})[./](\d{1,9}))[./ ]?svd[./ ]?(\d{1,9})", re.ASCII | re.IGNORECASE
)
_DOTTED = re.compile(r"(\d{1,9})[./](\d{1,9})(?:[./](\d{1,9}))?", re.ASCII)
_NUMBER = re.compile(r"\d{1,9}", re.ASCII)
_ARGUMENTS: dict[Callable[..., str], tuple[str, ...]] = {  # what each page takes: whatever else is pasted is dropped
    addresses.model: ("lens", "preset", "map", "hubs"),
    addresses.search: ("q", "lens", "kind", "page", "hubs"),
    addresses.layer: ("lens", "sort", "token", "page", "hubs"),
    addresses.token: ("lens", "preset", "kind", "page", "hubs"),
    addresses.ff: ("lens", "k", "reading", "hubs"),
    addresses.head: ("lens", "preset", "hubs"),
    addresses.pairs: ("lens", "preset", "k", "group", "reading", "hubs"),
    addresses.subhead: ("lens", "k", "reading", "hubs"),
    addresses.direction: ("lens", "k", "reading", "hubs"),
    addresses.comparison: ("kind", "text", "layer", "hubs"),
    addresses.classifier: ("lens", "k", "hubs"),
    addresses.lab: ("figure", "hubs"),
    addresses.labels: ("page", "hubs"),
    addresses.paper: ("lens", "as", "list", "ranks", "hubs"),
}
_PAGES = ("layer", "ff", "head", "token", "search", "vs", "classifier", "lab", "labels", "paper", *KINDS)


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
        paths.append(
            None if third else _existing(shape, addresses.ff, model, {"lens": lens}, layer=layer, neuron=second)
        )
    return [(path, _title(path)) for path in dict.fromkeys(paths) if path]


def pasted_model(text: str) -> str | None:
    """The model that a pasted address of a page is of, whether it is here or not."""
    try:
        name, *words = _path(text)
    except ValueError:
        return None
    is_page = (
        words[0] in _PAGES and len(words) > (words[0] not in ("search", "lab", "labels", "paper"))
        if words
        else "://" in text
    )
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
    """What the page at one of our own addresses is."""
    match path.partition("?")[0].split("/")[2:]:
        case ["layer", layer]:
            return f"Layer {layer}"
        case ["token", token]:
            return f"Token #{token}"
        case ["ff", layer, neuron]:
            return f"Neuron {neuron} of layer {layer}"
        case ["head", layer, head]:
            return f"Head {head} of layer {layer}"
        case ["head", layer, head, matrix]:
            return f"{matrix.upper()} of head {head} of layer {layer}"
        case ["head", layer, head, "svd", direction]:
            return f"Direction {direction} of head {head} of layer {layer}"
        case ["head", layer, head, _, subhead]:
            return f"Subhead {subhead} of head {head} of layer {layer}"
        case ["classifier", *_]:
            return "Classification head"
        case ["lab"]:
            return "Lab"
        case ["labels"]:
            return "Labels"
        case ["paper"]:
            return "The paper beside it"
        case ["search"]:
            return "Search"
        case ["vs", other]:
            return f"Compared with {other}"
    return "Layers and heads"


def _path(text: str) -> list[str]:
    """The words of an address, whatever its host and ending."""
    path = unquote(urlsplit(text.strip()).path)
    for format in addresses.FIGURE_FORMATS:
        path = path.removesuffix(f".{format}")
    return path.strip("/").split("/")


def _typed(model: str, shape: Shape, text: str, query: dict[str, Any]) -> str | None:
    numbers: list[int]
    if match := _LAYER.fullmatch(text):
        return _existing(shape, addresses.layer, model, query, layer=match[1])
    if match := _NEURON.fullmatch(text):
        layer, neuron = map(int, match.groups())
        return _existing(shape, addresses.ff, model, query, layer=layer, neuron=neuron)
    if match := _DIRECTION.fullmatch(text):
        layer, head, direction = (int(number) for number in match.groups() if number)
        return _existing(shape, addresses.direction, model, query, layer=layer, head=head, direction=direction)
    if match := _HEAD.fullmatch(text) or _DOTTED.fullmatch(text):
        layer, second, *third = numbers = [int(number) for number in match.groups() if number]
        if third:
            return _existing(shape, addresses.subhead, model, query, layer=layer, head=second, subhead=third[0])
        if second >= shape.n_heads and match.re is _DOTTED:
            return _existing(shape, addresses.ff, model, query, layer=layer, neuron=second)
        return _existing(shape, addresses.head, model, query, layer=numbers[0], head=second)
    return None


def _pasted(model: str, shape: Shape, text: str) -> str | None:
    """The page of a pasted URL of any host: only the path and the arguments we know are taken over."""
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
    match words:
        case []:
            return _existing(shape, addresses.model, model, query)
        case ["search"]:
            return _existing(shape, addresses.search, model, query)
        case ["layer", layer]:
            return _existing(shape, addresses.layer, model, query, layer=layer)
        case ["token", token]:
            return _existing(shape, addresses.token, model, query, token=token)
        case ["ff", layer, neuron]:
            return _existing(shape, addresses.ff, model, query, layer=layer, neuron=neuron)
        case ["head", layer, head]:
            return _existing(shape, addresses.head, model, query, layer=layer, head=head)
        case ["head", layer, head, matrix] if matrix in MATRICES:
            return _existing(shape, addresses.pairs, model, query, layer=layer, head=head, matrix=matrix)
        case ["head", layer, head, "sub", subhead]:
            return _existing(shape, addresses.subhead, model, query, layer=layer, head=head, subhead=subhead)
        case ["head", layer, head, "svd", direction]:
            return _existing(shape, addresses.direction, model, query, layer=layer, head=head, direction=direction)
        case ["classifier"]:
            return _existing(shape, addresses.classifier, model, query)
        case ["classifier", kind, index] if kind in HEAD_KINDS and _NUMBER.fullmatch(index):
            return _existing(shape, addresses.classifier, model, query, kind=kind, index=index)
        case ["lab"]:
            return _existing(shape, addresses.lab, model, query)
        case ["labels"]:
            return _existing(shape, addresses.labels, model, query)
        case ["paper"]:
            return _existing(shape, addresses.paper, model, query)
        case ["vs", other] if MODEL_NAME.fullmatch(other):
            return _existing(shape, addresses.comparison, model, query, other=other)
    return _labelled(shape, "/".join((name, *words)))


def _labelled(shape: Shape, text: str) -> str | None:
    """The page of the parameter that the address of a label names, such as gpt2/vo/8/11."""
    try:
        place = parse_label_address(text)
    except ValueError:
        return None
    return None if place.what_is_wrong(shape) else page_of(place)


def _existing(
    shape: Shape, address: Callable[..., str], model: str, query: dict[str, Any] | None = None, **numbers: int | str
) -> str | None:
    """The address, if all numbers are numbers and such a parameter exists."""
    counts = {
        "layer": shape.n_layers,
        "neuron": shape.d_mlp,
        "head": shape.n_heads,
        "subhead": shape.d_head,
        "direction": shape.d_head,
        "token": shape.d_vocab,
    }
    for name, number in numbers.items():
        if name not in counts:
            continue
        if not _NUMBER.fullmatch(str(number)) or int(number) >= counts[name]:
            return None
        numbers[name] = int(number)
    known = {name: value for name, value in (query or {}).items() if name in _ARGUMENTS[address]}
    return address(model, *numbers.values(), **known)
