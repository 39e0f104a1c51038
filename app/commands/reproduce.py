"""`lexiscope reproduce`: the lists and numbers that the paper printed of a model, beside ours. Lists come from the
index alone; the ranks of looked-up neurons need the weights, which it finds as precompute does."""

import argparse
from typing import TYPE_CHECKING

from app.commands import options
from precompute.shape import LENSES

if TYPE_CHECKING:
    from app.commands.options import Subparsers
    from app.views.paper_neurons import SpeltRank
    from precompute.index.index import Index

PUBLISHED = ("gpt2-medium", "gpt2")


def add_parser(subparsers: "Subparsers") -> None:
    parser = subparsers.add_parser(
        "reproduce",
        help="the paper's printed lists and numbers beside ours",
        description="Compare the lists and numbers that the paper printed of GPT-2 medium, and of GPT-2 after "
        "fine-tuning, with an index. The ranks of looked-up neurons need the weights, which are fetched again if they "
        "are gone; all else comes from the index alone.",
    )
    parser.add_argument("model", metavar="MODEL", help="a model that is built: gpt2-medium, or a difference from gpt2")
    parser.add_argument(
        "--as",
        dest="compared_as",
        choices=PUBLISHED,
        help="compare with the lists of this model, whatever its name",
    )
    parser.add_argument("--lens", choices=LENSES, default="dot", help="of our lists: dot, as in the paper, or cosine")
    parser.add_argument("--list", dest="chosen", metavar="LIST", help="one list entry by entry: vo/21/7, ff/3/2711")
    parser.add_argument("--no-weights", action="store_true", help="leave out what needs the weights")
    parser.add_argument("--json", action="store_true", help="print JSON instead of tables")
    options.add_data(parser)
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    from app.views.paper import lists_of, paper_view
    from precompute.errors import BadRequest, WeightsError
    from precompute.index.data_folder import open_model

    index = open_model(args.data, args.model)
    published = args.compared_as or lists_of(index.manifest)
    if published is None:
        raise BadRequest(
            f"the paper printed no lists of {index.manifest.model}: only of {' and of '.join(PUBLISHED)}. If it is one "
            f"of these under another name, add --as {PUBLISHED[0]}"
        )
    ranks: dict[tuple[int, int], list[SpeltRank]] = {}
    remark = ""
    if published == PUBLISHED[0] and not args.no_weights:
        try:
            ranks = _ranks(index)
        except (WeightsError, ModuleNotFoundError) as error:
            remark = f"The ranks of looked-up neurons are left out, because they need the weights: {error}"
    view = paper_view(index, args.compared_as, args.lens, args.chosen, ranks)
    if args.json:
        from app.formats.json_format import ascii_json

        print(ascii_json(view))
        return 0

    from rich.console import Console

    from app.formats.terminal import print_paper

    print_paper(Console(highlight=False), view, remark)
    return 0


def _ranks(index: "Index") -> "dict[tuple[int, int], list[SpeltRank]]":
    from app.commands.seeds import tokenizer_of
    from app.views.paper_neurons import SPELLINGS, looked_up
    from app.views.tokens import tokens_of
    from app.weights import weights_of_index
    from precompute.live.seed_ranking import find_seed, rank_of_vector

    found: dict[tuple[int, int], list[SpeltRank]] = {}
    wanted = [*looked_up(index.shape)]
    if not wanted:
        return found
    tokenizer, model = tokenizer_of(index), weights_of_index(index)
    for words, layer, neuron in wanted:
        for spelling in SPELLINGS:
            seeds = [find_seed(tokenizer, word, spelling=spelling) for word in words]
            rank = rank_of_vector(model, seeds, "ff_value", layer, neuron)
            tokens = [tokens_of(index.tokens, seed.tokens) for seed in seeds]
            found.setdefault((layer, neuron), []).append({"spelling": spelling, "tokens": tokens, "rank": rank})
    return found
