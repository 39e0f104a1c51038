"""`lexiscope push`: publishes an index in a dataset repository of the Hub, or goes on with it."""

import argparse
from typing import TYPE_CHECKING

from app.commands import options
from app.commands.interruption import exit_on_signals

if TYPE_CHECKING:
    from app.commands.options import Subparsers


def add_parser(subparsers: "Subparsers") -> None:
    parser = subparsers.add_parser(
        "push",
        help="publish an index in a repository of the Hub",
        description="Publish the index of a model, finished or not, in a dataset repository of the Hugging Face Hub, "
        "or go on where this was stopped. Log in with `hf auth login`, or set HF_TOKEN. Needs huggingface-hub: "
        "pip install 'lexiscope[hub]'.",
    )
    parser.add_argument("model", metavar="MODEL", help="a model that is built, or demo")
    parser.add_argument("repository", metavar="REPO", help="owner/name, which is made if it is not there")
    parser.add_argument("--private", action="store_true", help="if the repository is made: for you alone")
    parser.add_argument("--revision", help="a branch, which is made if it is not there (default: main)")
    parser.add_argument("--message", help="of the commits (default: which layers they bring)")
    parser.add_argument("--force", action="store_true", help="replace another index in the repository")
    options.add_data(parser)
    parser.set_defaults(run=run, extra="hub")


def run(args: argparse.Namespace) -> int:
    with exit_on_signals("Layers that were committed stay published; the same command goes on from here"):
        from precompute.index.data_folder import open_model
        from precompute.travel.push import PushOptions, PushProgress, push

        progress = PushProgress()
        try:
            chosen = PushOptions(args.private, args.revision, args.message or None, args.force)
            push(open_model(args.data, args.model), args.repository, chosen, progress)
        finally:
            progress.stop()
    return 0
