"""`lexiscope seeds`: find the vectors that write (or read) words like the given ones, in all layers. The command needs
the model's weights, which it finds as `precompute` does, and the index, for the words of each vector."""

import argparse
from typing import TYPE_CHECKING

from lexiscope.app.commands.command import MODEL, command, flag, option, positive
from lexiscope.precompute.shape import LENSES, SEED_KIND, SIDES

if TYPE_CHECKING:
    from tokenizers import Tokenizer

    from lexiscope.precompute.index.index import Index
    from lexiscope.precompute.live.seed_ranking import Ranked
    from lexiscope.precompute.live.wire.answers import FirstTokens
    from lexiscope.precompute.weights.difference import Parameters


@command(
    "seeds",
    "find the vectors that are about a few words (needs the weights)",
    "Find the vectors that are about a few words, over all layers. This needs the weights, which are fetched again if "
    "they are gone; the other lists come from the index alone.",
    MODEL,
    option(
        "words",
        'words, as on the page of seeds: horse dog lion, "king - man + woman", "2*dog"',
        metavar="WORD",
        nargs="+",
    ),
    option("--kind", f"which vectors ({SEED_KIND}); may be repeated", action="append", choices=tuple(SIDES)),
    option("--lens", "dot, as in the paper (the default), or cosine: directions only", choices=LENSES, default="dot"),
    option("--k", "how many to show (default: 20)", positive, default=20),
    flag("--json", "print JSON instead of a table"),
)
def run(args: argparse.Namespace) -> None:
    from lexiscope.app.pages.seeds import seed_ranking_view
    from lexiscope.app.weights import weights_of_index
    from lexiscope.precompute.errors import BadRequest
    from lexiscope.precompute.index.data_folder import open_model
    from lexiscope.precompute.live.seed_ranking import find_seed, rank_by_seeds
    from lexiscope.precompute.live.wire.grammar import parse_terms

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
        from lexiscope.app.formats.json_format import ascii_json

        print(ascii_json(view))
        return

    from rich.console import Console

    from lexiscope.app.terminal import print_seeds

    print_seeds(Console(highlight=False), view, index.shape)


def _first_tokens(index: "Index", model: "Parameters", ranked: "list[Ranked]", lens: str) -> "list[FirstTokens]":
    """Return the first tokens of the found vectors that are in layers without stored lists, computed from the
    weights."""
    from lexiscope.app.lists.first_tokens import unbuilt
    from lexiscope.precompute.live.first_tokens import ListEnd, first_tokens
    from lexiscope.precompute.live.words import Vocabulary

    missing = unbuilt(index, lens)
    shown = [ListEnd(result.kind, result.layer, result.index) for result in ranked]
    if not missing or not missing.layers.intersection(each.layer for each in shown):
        return []
    reads = Vocabulary.of(model.W_E)
    writes = reads if model.shape.tied else Vocabulary.of(model.W_U)
    return first_tokens(lambda kind, layer: model.vectors(layer, kind), reads, writes, missing, shown)


def tokenizer_of(index: "Index") -> "Tokenizer":
    from lexiscope.precompute.errors import IndexFault
    from lexiscope.precompute.files import read_regular
    from lexiscope.precompute.index.manifest import TOKENIZER
    from lexiscope.precompute.index.tokenizer import parse_tokenizer

    path = index.folder / TOKENIZER
    try:
        return parse_tokenizer(read_regular(path))
    except Exception as error:  # the library `tokenizers` raises a plain Exception
        raise IndexFault(
            f"{path} cannot be read ({error}): run `{index.manifest.rebuild_command}` again to replace it"
        ) from None
