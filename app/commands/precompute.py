"""`lexiscope precompute`: builds indexes of models, or goes on with builds that were stopped.
How a build works is in precompute/build.py."""

import argparse
import sys
from typing import TYPE_CHECKING

from app.commands import options
from precompute.errors import IndexFault, SourceNotFound

if TYPE_CHECKING:
    from pathlib import Path

    from app.commands.options import Subparsers
    from precompute.checkpoint import Checkpoint


def add_parser(subparsers: "Subparsers") -> None:
    parser = subparsers.add_parser("precompute", help="build the index of a model")
    parser.add_argument(
        "models", nargs="+", metavar="MODEL", help="a Hub id, a folder in Hub format, a .gguf file, or `demo`"
    )
    options.add_data(parser)
    options.add_build(parser)
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    from precompute.build import Options, build
    from precompute.progress import Progress

    wanted = Options(args.k, args.pairs, args.layers, args.force, args.device, args.threads)
    for model in args.models:
        progress = Progress()
        try:
            build(find(model, args.data, args.revision), args.data, wanted, progress)
        except KeyboardInterrupt:
            progress.stop()
            print("Stopped. Finished layers are kept; the same command goes on from here.", file=sys.stderr)
            raise
        finally:
            progress.stop()
    return 0


def find(model: str, data: "Path", revision: str | None = None) -> "Checkpoint":
    """The weights of a model; a name that is no source may be that of an index, which knows where it came from."""
    from precompute.manifest import Manifest, model_name
    from precompute.sources import resolve

    cache = data / ".cache"
    try:
        index = Manifest.load(data / model_name(model))
    except IndexFault:
        index = None
    if index and revision is None:  # the same weights as before, not whatever the Hub has today
        return resolve(index.source, revision=index.revision or None, cache=cache)
    try:
        return resolve(model, revision=revision, cache=cache)
    except SourceNotFound:
        if index:
            return resolve(index.source, revision=revision, cache=cache)
        raise
