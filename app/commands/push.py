"""`lexiscope push`: publish an index in a dataset repository of the Hub, or continue an upload that was stopped."""

import argparse

from lexiscope.app.commands.command import MODEL, command, exit_on_signals, flag, option, stopping


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
def run(args: argparse.Namespace) -> None:
    with exit_on_signals("Layers that were committed stay published; the same command goes on from here"):
        from lexiscope.precompute.index.data_folder import open_model
        from lexiscope.precompute.travel.push import PushOptions, PushProgress, push

        chosen = PushOptions(args.private, args.revision, args.message or None, args.force)
        with stopping(PushProgress()) as progress:
            push(open_model(args.data, args.model), args.repository, chosen, progress)
