"""`lexiscope export`: the lists of a model as Parquet or CSV, for notebooks and databases."""

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from app.commands import options
from app.commands.interruption import exit_on_signals
from precompute.shape import LENSES, MATRICES, SIDES

if TYPE_CHECKING:
    from app.commands.options import Subparsers

NAMES = (*SIDES, *MATRICES)


def add_parser(subparsers: "Subparsers") -> None:
    parser = subparsers.add_parser(
        "export",
        help="write a model's lists as Parquet or CSV files",
        description="Write the lists of a model as data: one file for each kind of vectors, and one for the pairs of "
        "each matrix of heads; a row per entry. Needs pyarrow: pip install 'lexiscope[parquet]'.",
    )
    parser.add_argument("model", metavar="MODEL", help="a model that is built, or demo")
    parser.add_argument("-o", "--output", metavar="DIR", type=Path, required=True, help="a new folder for the files")
    parser.add_argument(
        "--kinds",
        type=options.some_of(NAMES),
        metavar="KIND,...",
        help=f"only these lists, of {', '.join(NAMES)} (default: all that are stored)",
    )
    parser.add_argument(
        "--lens",
        "--lenses",
        dest="lenses",
        type=options.some_of(LENSES),
        metavar="LENS,...",
        help="only these (default: all that are stored)",
    )
    parser.add_argument("--format", choices=("parquet", "csv"), default="parquet", help="of the files (parquet)")
    parser.add_argument(
        "--threads", type=options.positive, default=2, metavar="N", help="files that are written at once (2)"
    )
    options.add_data(parser)
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    with exit_on_signals("Nothing was written; the same command begins anew"):
        from precompute.export.job import ExportOptions, ExportProgress, export
        from precompute.index.data_folder import open_model

        progress = ExportProgress()
        try:
            chosen = ExportOptions(args.kinds, args.lenses, args.format, args.threads)
            export(open_model(args.data, args.model), args.output, chosen, progress)
        finally:
            progress.stop()
    return 0
