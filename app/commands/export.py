"""`lexiscope export`: write the lists of a model as Parquet or CSV, for notebooks and databases."""

import argparse
from pathlib import Path

from lexiscope.app.commands.command import MODEL, command, exit_on_signals, option, positive, some_of, stopping
from lexiscope.precompute.shape import LENSES, MATRICES, SIDES

NAMES = (*SIDES, *MATRICES)


@command(
    "export",
    "write a model's lists as Parquet or CSV files",
    "Write the lists of a model as data: one file for each kind of vectors, and one for the pairs of each matrix of "
    "heads; a row per entry. Needs pyarrow: pip install 'lexiscope[parquet]'.",
    MODEL,
    option("-o --output", "a new folder for the files", Path, metavar="DIR", required=True),
    option(
        "--kinds",
        f"only these lists, of {', '.join(NAMES)} (default: all that are stored)",
        some_of(NAMES),
        metavar="KIND,...",
    ),
    option(
        "--lens --lenses",
        "only these (default: all that are stored)",
        some_of(LENSES),
        dest="lenses",
        metavar="LENS,...",
    ),
    option("--format", "of the files (parquet)", choices=("parquet", "csv"), default="parquet"),
    option("--threads", "files that are written at once (2)", positive, default=2),
)
def run(args: argparse.Namespace) -> None:
    with exit_on_signals("Nothing was written; the same command begins anew"):
        from lexiscope.precompute.export.job import ExportOptions, ExportProgress, export
        from lexiscope.precompute.index.data_folder import open_model

        chosen = ExportOptions(args.kinds, args.lenses, args.format, args.threads)
        with stopping(ExportProgress()) as progress:
            export(open_model(args.data, args.model), args.output, chosen, progress)
