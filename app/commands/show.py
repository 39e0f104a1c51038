"""`lexiscope show`: the lists of a neuron, a head or a subhead, from the index alone.
Finding out which are worth showing is for others."""

import argparse
from typing import TYPE_CHECKING

from app.commands import options
from precompute.shape import LENSES, MATRICES, PRESETS

if TYPE_CHECKING:
    from app.commands.options import Subparsers

# What follows the kind on the command line.
ADDRESSES = {
    "ff": ("LAYER", "NEURON"),
    "vo": ("LAYER", "HEAD"),
    "qk": ("LAYER", "HEAD"),
    "sub": ("LAYER", "HEAD", "SUBHEAD"),
}
ROWS = 20  # in the terminal, unless --k says otherwise

_EXAMPLES = """\
examples:
  lexiscope show gpt2 ff 10 2361
  lexiscope show gpt2 vo 8 11 --lens cosine --preset words
  lexiscope show gpt2 sub 8 11 5 --json
"""


def add_parser(subparsers: "Subparsers") -> None:
    addresses = "; ".join(f"{kind} {' '.join(numbers)}" for kind, numbers in ADDRESSES.items())
    parser = subparsers.add_parser(
        "show",
        help="a parameter's lists in the terminal",
        description="Show a parameter's lists, from the index alone.",
        epilog=_EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("model", metavar="MODEL", help="a model that is built (`lexiscope models` lists them), or demo")
    parser.add_argument("kind", choices=tuple(ADDRESSES), help="a neuron, a head's interaction matrix, or a subhead")
    parser.add_argument("numbers", metavar="N", nargs="+", type=int, help=f"which one, from 0: {addresses}")
    parser.add_argument("--lens", choices=LENSES, default="dot", help="how a score is read (default: dot)")
    parser.add_argument("--preset", choices=PRESETS, help="which pairs of vo and qk (default: all)")
    parser.add_argument(
        "--k", metavar="N", type=options.positive, help=f"entries per list (default: {ROWS}, with --json all)"
    )
    parser.add_argument("--json", action="store_true", help="print JSON instead of tables")
    options.add_data(parser)
    parser.set_defaults(run=run, usage_error=parser.error)


def run(args: argparse.Namespace) -> int:
    expected = ADDRESSES[args.kind]
    if len(args.numbers) != len(expected):
        args.usage_error(f"{args.kind} takes {len(expected)} numbers: {' '.join(expected)}")
    if args.preset and args.kind not in MATRICES:
        args.usage_error(f"--preset is for vo and qk, not for {args.kind}")

    from app.views.neuron import NeuronView, neuron_view
    from app.views.pairs import PairsView, pairs_view
    from app.views.subhead import SubheadView, subhead_view
    from precompute.index.data_folder import open_model

    index = open_model(args.data, args.model)
    k = args.k or (None if args.json else ROWS)
    layer, number, *rest = args.numbers
    view: NeuronView | PairsView | SubheadView
    match args.kind:
        case "ff":
            view = neuron_view(index, layer, number, args.lens, k)
        case "sub":
            view = subhead_view(index, layer, number, rest[0], args.lens, k)
        case matrix:
            view = pairs_view(index, matrix, layer, number, args.lens, args.preset or "all", k)
    if args.json:
        from app.formats.json_format import ascii_json

        print(ascii_json(view))
        return 0

    from rich.console import Console

    from app.formats.terminal import print_view

    print_view(Console(highlight=False), view)
    stored = index.manifest.pairs if args.kind in MATRICES else index.manifest.k
    if k is not None and k < stored:
        print(f"At most {k} entries of each list are shown, up to {stored} are stored: see --k.")
    return 0
