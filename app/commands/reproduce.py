"""`lexiscope reproduce`: print the lists that the paper shows of a model, and how much of them is in the index."""

import argparse

from lexiscope.app.commands.command import JSON, command, option, print_answer
from lexiscope.precompute.shape import LENSES

PUBLISHED = ("gpt2-medium", "gpt2")


@command(
    "reproduce",
    "how much of the paper's printed lists is in ours",
    "Compare the lists that the paper printed of GPT-2 medium, and of GPT-2 after fine-tuning, with those of an index.",
    option("model", "a model that is built: gpt2-medium, or a difference from gpt2", metavar="MODEL"),
    option("--as", "compare with the lists of this model, whatever its name", dest="compared_as", choices=PUBLISHED),
    option("--lens", "of our lists: dot, as in the paper, or cosine", choices=LENSES, default="dot"),
    option("--list", "one list entry by entry: vo/21/7, ff/3/2711", dest="chosen", metavar="LIST"),
    JSON,
)
def run(args: argparse.Namespace) -> None:
    from lexiscope.app.library.library import Library
    from lexiscope.app.pages.page import ModelSite, find_pages
    from lexiscope.precompute.errors import BadRequest
    from lexiscope.precompute.index.data_folder import open_model
    from lexiscope.precompute.paper.lists import lists_of

    index = open_model(args.data, args.model)
    if not (args.compared_as or lists_of(index.manifest)):
        raise BadRequest(
            f"the paper printed no lists of {index.manifest.model}: only of {' and of '.join(PUBLISHED)}. If it is one "
            f"of these under another name, add --as {PUBLISHED[0]}"
        )
    page = find_pages()["paper"]
    ask = page.arguments.model_construct(lens=args.lens, compared_as=args.compared_as, chosen=args.chosen)
    view = page.make(ModelSite(index=index, library=Library(index.folder.parent)), page.at(), ask)
    print_answer(view, args.json)
