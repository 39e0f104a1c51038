"""`lexiscope seeds`: find the vectors that write (or read) words like the given ones, in all layers, as the page does.
The command needs the model's weights, which it finds as `precompute` does, and the index, for the words of each
vector."""

import argparse

from lexiscope.app.commands.command import MODEL, command, flag, option, positive, print_answer
from lexiscope.precompute.shape import LENSES, SIDES


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
    option("--kind", "which vectors (what neurons read and write); may be repeated", action="append", choices=[*SIDES]),
    option("--lens", "dot, as in the paper (the default), or cosine: directions only", choices=LENSES, default="dot"),
    option("--rank", "fit (the default), or score, the paper's", choices=("fit", "score"), default="fit"),
    option(
        "--source",
        "raw (the default), first or pseudo, as on the page",
        choices=("raw", "first", "pseudo"),
        default="raw",
    ),
    flag("--words-alone", "fit the words alone, without the tokens nearest to them"),
    option("--k", "how many to show (default: 20)", positive, default=20),
    flag("--json", "print JSON instead of a table"),
)
def run(args: argparse.Namespace) -> None:
    from lexiscope.app.library.library import Library
    from lexiscope.app.pages.page import ModelSite
    from lexiscope.app.pages.seeds import SEEDS, SeedsAt
    from lexiscope.app.weights import load_engine
    from lexiscope.precompute.errors import BadRequest, LexiscopeError
    from lexiscope.precompute.index.data_folder import open_model

    index = open_model(args.data, args.model)
    site = ModelSite(index=index, library=Library(index.folder.parent))
    asked = {"words": " ".join(args.words), "lens": args.lens, "rank": args.rank, "k": args.k, "source": args.source}
    ask = SEEDS.ask_of(site, asked | {"kind": args.kind, "widen": 0 if args.words_alone else 1})
    asks = SEEDS.asks(site, SeedsAt(), ask)
    if not asks:
        raise BadRequest("there are no words: give some such as horse dog lion")
    (answer,) = load_engine(index).seeds([*asks])
    if isinstance(answer, LexiscopeError):
        raise answer
    site = ModelSite(index=index, library=site.library, answers=[answer])
    view = SEEDS.make(site, SeedsAt(), ask)
    for result in view.results:
        if result["computed"] and result["layer"] in index.manifest.shards:
            index.shard(result["layer"])  # says what is wrong with the layer
    print_answer(view, args.json)
