"""`lexiscope push` and `lexiscope pull`: publish an index in a repository of the Hub, or fetch one from there, from an
address or a folder; or continue what was stopped."""

import argparse

from lexiscope.app.commands.command import (
    GOES_ON,
    LAYERS,
    MODEL,
    check_folder,
    command,
    exit_on_signals,
    flag,
    option,
    stopping,
)
from lexiscope.precompute.errors import TravelError


@command(
    "push",
    "publish an index in a repository of the Hub",
    "Publish the index of a model, finished or not, in a dataset repository of the Hugging Face Hub, or go on where "
    "this was stopped. Log in with `hf auth login`, or set HF_TOKEN. Needs huggingface-hub: pip install "
    "'lexiscope[hub]'.",
    MODEL,
    option("repository", "owner/name, which is made if it is not there", metavar="REPO"),
    flag("--private", "if the repository is made: for you alone"),
    option("--revision", "a branch, which is made if it is not there (default: main)"),
    option("--message", "of the commits (default: which layers they bring)"),
    flag("--force", "replace another index in the repository"),
    extra="hub",
)
def publish(args: argparse.Namespace) -> None:
    with exit_on_signals("Layers that were committed stay published; the same command goes on from here"):
        from lexiscope.precompute.index.data_folder import open_model
        from lexiscope.precompute.travel.push import PushOptions, PushProgress, push

        chosen = PushOptions(args.private, args.revision, args.message or None, args.force)
        with stopping(PushProgress()) as progress:
            push(open_model(args.data, args.model), args.repository, chosen, progress)


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
def fetch(args: argparse.Namespace) -> None:
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
