"""`lexiscope seeds`: the vectors that write (or read) words like the ones given, over all layers.
Needs the weights, which it finds as precompute does, and the index for the words each vector lists."""

import argparse
from typing import TYPE_CHECKING

from app.addresses import SEED_KIND
from app.commands import options
from precompute.shape import LENSES, SIDES

if TYPE_CHECKING:
    from tokenizers import Tokenizer

    from app.commands.options import Subparsers
    from precompute.index.index import Index
    from precompute.live.seed_ranking import Ranked
    from precompute.live.wire.shared import FirstTokens
    from precompute.weights.difference import Parameters


def add_parser(subparsers: "Subparsers") -> None:
    parser = subparsers.add_parser(
        "seeds",
        help="find the vectors that are about a few words (needs the weights)",
        description="Find the vectors that are about a few words, over all layers. This needs the weights, "
        "which are fetched again if they are gone; the other lists come from the index alone.",
    )
    parser.add_argument("model", metavar="MODEL", help="a model that is built, or demo")
    parser.add_argument(
        "words",
        metavar="WORD",
        nargs="+",
        help='words, as on the page of seeds: horse dog lion, "king - man + woman", "2*dog"',
    )
    parser.add_argument(
        "--kind", action="append", choices=tuple(SIDES), help=f"which vectors ({SEED_KIND}); may be repeated"
    )
    parser.add_argument(
        "--lens", choices=LENSES, default="dot", help="dot, as in the paper (the default), or cosine: directions only"
    )
    parser.add_argument("--k", metavar="N", type=options.positive, default=20, help="how many to show (default: 20)")
    parser.add_argument("--json", action="store_true", help="print JSON instead of a table")
    options.add_data(parser)
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    from app.views.seeds import seed_ranking_view
    from app.views.typed_words import parse_terms
    from app.weights import weights_of_index
    from precompute.errors import BadRequest
    from precompute.index.data_folder import open_model
    from precompute.live.seed_ranking import find_seed, rank_by_seeds

    index = open_model(args.data, args.model)
    kinds = list(dict.fromkeys(args.kind or [SEED_KIND]))
    tokenizer = tokenizer_of(index)
    seeds = [find_seed(tokenizer, term.word, term.weight) for term in parse_terms(" ".join(args.words))]
    if not seeds:
        raise BadRequest("there are no words: give some such as horse dog lion")
    model = weights_of_index(index)
    ranked = rank_by_seeds(model, seeds, kinds, args.k, args.lens)
    view = seed_ranking_view(index, kinds, seeds, ranked, args.lens, _first_tokens(index, model, ranked, args.lens))
    if args.json:
        from app.formats.json_format import ascii_json

        print(ascii_json(view))
        return 0

    from rich.console import Console

    from app.formats.terminal import print_seeds

    print_seeds(Console(highlight=False), view, index.shape)
    return 0


def _first_tokens(index: "Index", model: "Parameters", ranked: "list[Ranked]", lens: str) -> "tuple[FirstTokens, ...]":
    """Of results in layers that are not built: the weights are here."""
    from app.views.first_tokens import unbuilt
    from precompute.live.first_tokens import ListEnd, first_tokens
    from precompute.live.words import Vocabulary

    missing = unbuilt(index, lens)
    shown = [ListEnd(result.kind, result.layer, result.index) for result in ranked]
    if not missing or not missing.layers.intersection(each.layer for each in shown):
        return ()
    reads = Vocabulary.of(model.W_E)
    writes = reads if model.shape.tied else Vocabulary.of(model.W_U)
    return first_tokens(lambda kind, layer: model.vectors(layer, kind), reads, writes, missing, shown)


def tokenizer_of(index: "Index") -> "Tokenizer":
    from precompute.errors import IndexFault
    from precompute.files import read_regular
    from precompute.index.manifest import TOKENIZER
    from precompute.index.tokenizer import parse_tokenizer

    path = index.folder / TOKENIZER
    try:
        return parse_tokenizer(read_regular(path))
    except Exception as error:  # the library raises nothing more special
        raise IndexFault(
            f"{path} cannot be read ({error}): run `{index.manifest.rebuild_command}` again to replace it"
        ) from None
