"""`lexiscope show`: print the lists of a neuron, a head, a subhead (channel of a head), a singular direction, a layer
or a token, read from the index alone. Parameters are named as people write them."""

import argparse
from typing import TYPE_CHECKING, Any

from lexiscope.app.commands.command import JSON, command, option, positive, print_answer
from lexiscope.precompute.shape import LENSES, MATRICES, PRESETS

if TYPE_CHECKING:
    from lexiscope.app.lists.view import View
    from lexiscope.precompute.index.index import Index

# The arguments that follow each kind of parameter on the command line.
ADDRESSES = {
    "ff": ("LAYER", "NEURON"),
    "head": ("LAYER", "HEAD"),
    "vo": ("LAYER", "HEAD"),
    "qk": ("LAYER", "HEAD"),
    "sub": ("LAYER", "HEAD", "SUBHEAD"),
    "svd": ("LAYER", "HEAD", "DIRECTION"),
    "layer": ("LAYER",),
    "token": ("WORD",),
}
PAGE_OF_KIND = {
    "ff": "neuron", "head": "head", "vo": "pairs", "qk": "pairs", "sub": "subhead", "svd": "direction",
    "layer": "layer", "token": "token",
}  # fmt: skip
KINDS_TEXT = "; ".join(f"{kind} {' '.join(names)}" for kind, names in ADDRESSES.items())
WITH_PRESET = (*MATRICES, "head", "token")
ROWS_SHOWN = 20  # how many rows of a table the terminal shows, unless --k is given

EXAMPLES = """\
examples:
  lexiscope show gpt2 ff 10 2361
  lexiscope show gpt2 vo 8 11 --lens cosine --preset words
  lexiscope show gpt2 sub 8 11 5 --json
  lexiscope show gpt2 svd 8 11 0
  lexiscope show gpt2 L10N2361
  lexiscope show gpt2 8.11
  lexiscope show gpt2 'http://127.0.0.1:8000/gpt2/head/8/11/vo?lens=cosine'
  lexiscope show gpt2 token dog
  lexiscope show gpt2 layer 10
"""


@command(
    "show",
    "the lists of a parameter, a layer or a token in the terminal",
    "Show the lists of a parameter, a layer or a token, from the index alone.",
    option("model", "a model that is built (`lexiscope models` lists them), or demo", metavar="MODEL"),
    option(
        "what",
        f"{KINDS_TEXT}; or an address as in a search: L10N2361, 8.11, L8H11.5, L8H11.svd0, the link of a page",
        metavar="WHAT",
        nargs="+",
    ),
    option("--lens", "how a score is read (default: as the link says, else dot)", choices=LENSES),
    option("--preset", "which pairs (default: as the link says, else all)", choices=PRESETS),
    option("--k", f"entries per list, rows per table (default: {ROWS_SHOWN}, with --json all)", positive),
    JSON,
    examples=EXAMPLES,
)
def run(args: argparse.Namespace) -> None:
    from lexiscope.precompute.index.data_folder import open_model

    if args.what[0] in ADDRESSES:
        _check_numbers(args, *args.what)
    index = open_model(args.data, args.model)
    kind, path, query = _named(args, index)
    if args.preset and kind not in WITH_PRESET:
        args.usage_error(f"--preset is for {', '.join(WITH_PRESET)}, not for {kind}")
    k = args.k or (int(query["k"]) if "k" in query else None if args.json else ROWS_SHOWN)
    query |= {"lens": args.lens or query.get("lens", "dot"), "preset": args.preset or query.get("preset")}
    view = _view(index, kind, path, query, k)
    print_answer(view, args.json, rows=k if kind == "head" else None)
    if args.json:
        return
    if kind == "head" and k is not None and k < index.shape.d_head:
        print(f"At most {k} rows of each table are shown, a head has {index.shape.d_head} subheads: see --k.")
    stored = index.manifest.pairs if kind in MATRICES else index.shape.d_mlp if kind == "layer" else index.manifest.k
    if k is not None and k < stored and kind not in ("head", "token"):
        what = "neurons are shown, of" if kind == "layer" else "entries of each list are shown, up to"
        print(f"At most {k} {what} {stored}{'' if kind == 'layer' else ' are stored'}: see --k.")


def _check_numbers(args: argparse.Namespace, kind: str, *words: str) -> None:
    """End the program with a message if the command line has wrong numbers, before any file is opened."""
    expected = ADDRESSES[kind]
    if kind == "token" and words:
        return
    if len(words) != len(expected):
        count = "a word" if kind == "token" else f"{len(expected)} number{'s' * (len(expected) > 1)}"
        args.usage_error(f"{kind} takes {count}: {' '.join(expected)}")
    for word in words:
        if not word.removeprefix("-").isdecimal():
            args.usage_error(f"invalid int value: {word!r}")


def _named(args: argparse.Namespace, index: "Index") -> tuple[str, dict[str, Any], dict[str, Any]]:
    """Return which kind of page is asked for, the values in the path of its address, and the arguments of its query."""
    from urllib.parse import parse_qsl

    from lexiscope.app.lists.find_tokens import token_named
    from lexiscope.app.pages.find import page_at, page_of_text, pasted_model
    from lexiscope.app.pages.page import find_pages
    from lexiscope.precompute.index.parameter_names import example_names, out_of_range

    first, *words = args.what
    if first in ADDRESSES:
        numbers = [token_named(index, " ".join(words))] if first == "token" else [int(word) for word in words]
        return first, dict(zip(find_pages()[PAGE_OF_KIND[first]].at.model_fields, [*numbers, first], strict=False)), {}
    model, text = index.manifest.model, " ".join(args.what)
    address = page_of_text(model, index.shape, text) or ""
    page, path = page_at(address)
    if page in PAGE_OF_KIND.values():
        kind = path.get("matrix") or next(kind for kind, of_kind in PAGE_OF_KIND.items() if of_kind == page)
        return kind, path, dict(parse_qsl(address.partition("?")[2]))
    linked = pasted_model(text)
    if linked and linked != model:
        args.usage_error(f"this link is of {linked}, not of {model}: lexiscope show {linked} ...")
    known = out_of_range(model, index.shape, text)
    like = ", ".join(example_names(index.shape).values())
    args.usage_error(f"{text[:100]!r} is nothing to show: " + (known or f"write {', '.join(ADDRESSES)} or {like}"))
    raise AssertionError  # usage_error ends the program


def _view(index: "Index", kind: str, path: dict[str, Any], query: dict[str, Any], k: int | None) -> "View":
    from lexiscope.app.library.library import Library
    from lexiscope.app.pages.page import ModelSite, find_pages

    page = find_pages()[PAGE_OF_KIND[kind]]
    asked = {name: value for name, value in query.items() if name not in ("k", "page")}
    if "k" in page.arguments.left_out():  # here `k` is the length of a list, on other pages the rows of a table
        stored = index.manifest.pairs if kind in MATRICES else index.manifest.k
        asked["k"] = min(k or stored, stored) or None
    site = ModelSite(index=index, library=Library(index.folder.parent), rows=k or "all")
    view: View = page.view_of(site, page.at.model_validate(path), asked)
    return view
