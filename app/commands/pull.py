"""`lexiscope pull`: takes an index from a repository of the Hub, an address or a folder, or goes on with it."""

import argparse
from typing import TYPE_CHECKING

from app.addresses import is_reserved
from app.commands import options
from app.commands.interruption import GOES_ON, exit_on_signals
from precompute.errors import TravelError

if TYPE_CHECKING:
    from app.commands.options import Subparsers


def add_parser(subparsers: "Subparsers") -> None:
    parser = subparsers.add_parser(
        "pull",
        help="take an index that somebody published",
        description="Take an index from where somebody published it, upper layers first, or go on where this was "
        "stopped. Every file is compared with its checksum before it counts. A repository needs huggingface-hub: "
        "pip install 'lexiscope[hub]'.",
    )
    parser.add_argument(
        "index",
        metavar="REPO",
        help="a dataset repository of the Hub (owner/name), https://HOST/PATH of a static server, or a folder",
    )
    parser.add_argument(
        "--layers", type=options.layers, metavar="A-B", help="only these layers, such as 30-35 or 0,5,7"
    )
    parser.add_argument("--revision", help="a branch, tag or commit of the repository (default: main)")
    parser.add_argument(
        "--force", action="store_true", help="replace another index of the same name, once this one is here"
    )
    options.add_data(parser)
    parser.set_defaults(run=run, extra="hub")


def run(args: argparse.Namespace) -> int:
    options.check_folder(args.data)
    with exit_on_signals(GOES_ON.format("layers")):
        from precompute.travel.published import open_published
        from precompute.travel.pull import PullOptions, PullProgress, pull
        from precompute.travel.pulled_record import unfinished_commit

        revision = args.revision or ""
        begun_at = unfinished_commit(args.data, args.index, revision)
        published = open_published(args.index, begun_at or args.revision)
        progress = PullProgress()
        try:
            if begun_at:
                progress.say(f"{args.index}: going on at the commit where this was begun, {begun_at[:12]}")
            chosen = PullOptions(revision, args.layers, args.force)
            pull(published, args.index, args.data, chosen, progress, is_reserved)
        except OSError as error:  # a disk or a folder that does not do what every disk does
            raise TravelError(f"{args.index} cannot be pulled to {args.data}: {error}") from error
        finally:
            progress.stop()
            published.close()
    return 0
