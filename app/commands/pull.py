"""`lexiscope pull`: fetch an index from a repository of the Hub, an address or a folder, or continue a fetch that was
stopped."""

import argparse

from lexiscope.app.commands.command import (
    GOES_ON,
    LAYERS,
    check_folder,
    command,
    exit_on_signals,
    flag,
    option,
    stopping,
)
from lexiscope.precompute.errors import TravelError


@command(
    "pull",
    "take an index that somebody published",
    "Take an index from where somebody published it, upper layers first, or go on where this was stopped. Every file "
    "is compared with its checksum before it counts. A repository needs huggingface-hub: pip install 'lexiscope[hub]'.",
    option(
        "index",
        "a dataset repository of the Hub (owner/name), https://HOST/PATH of a static server, or a folder",
        metavar="REPO",
    ),
    LAYERS,
    option("--revision", "a branch, tag or commit of the repository (default: main)"),
    flag("--force", "replace another index of the same name, once this one is here"),
    extra="hub",
)
def run(args: argparse.Namespace) -> None:
    check_folder(args.data)
    with exit_on_signals(GOES_ON.format("layers")):
        from lexiscope.app.urls import is_reserved
        from lexiscope.precompute.travel.pull import PullOptions, PullProgress, open_published, pull, unfinished_commit

        revision = args.revision or ""
        begun_at = unfinished_commit(args.data, args.index, revision)
        published = open_published(args.index, begun_at or args.revision)
        failed = f"{args.index} cannot be pulled to {args.data}"
        with stopping(PullProgress(), failed, TravelError) as progress:
            if begun_at:
                progress.say(f"{args.index}: going on at the commit where this was begun, {begun_at[:12]}")
            chosen = PullOptions(revision, args.layers, args.force)
            pull(published, args.index, args.data, chosen, progress, is_reserved)
