"""`lexiscope stitch`: runs one model up to each of its layers and goes on with the last layers of another."""

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from app.commands import options
from app.commands.interruption import exit_on_signals
from precompute.errors import BuildError
from precompute.plain_text import plain

if TYPE_CHECKING:
    from app.commands.options import Subparsers
    from precompute.index.stitching import StitchingRun

LAST, LIMIT, LENGTH = 3, 500, 256  # layers of B, texts, tokens of a text


def add_parser(subparsers: "Subparsers") -> None:
    parser = subparsers.add_parser(
        "stitch",
        help="run one model up to each of its layers, and the last layers of another on what it makes",
        description="Stitch two models without training: the states of A after each of its layers, turned by the "
        "kernel into states of B, go through the last layers of B and its head. What comes out is measured "
        "on texts and kept beside the comparison of the two.",
    )
    for name in ("a", "b"):
        parser.add_argument(
            name, metavar=name.upper(), help="a model that is built, or whatever `lexiscope precompute` takes"
        )
    parser.add_argument(
        "--texts",
        metavar="FILE",
        type=Path,
        required=True,
        help="a .txt with a text in each line (next tokens), or a .csv with the columns text,label (B is a classifier)",
    )
    parser.add_argument("--last", type=options.positive, default=LAST, metavar="N", help=f"layers of B ({LAST})")
    options.add_text_limits(parser, LIMIT, LENGTH)
    options.add_data(parser)
    parser.add_argument("--device", default="auto", help="auto, cpu, cuda, cuda:1, ... (default: auto)")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    options.check_folder(args.data)
    with exit_on_signals("No run was kept; the same command begins it anew"):
        from app.weights import find_checkpoint
        from precompute.compare.stitch_job import StitchProgress, stitch_models
        from precompute.live.texts import read_texts
        from precompute.weights.architectures import describe

        texts = read_texts(args.texts)
        progress = StitchProgress()
        try:
            a, b = (describe(find_checkpoint(asked, args.data)) for asked in (args.a, args.b))
            measured = stitch_models(
                a, b, args.data, texts, progress,
                last=args.last, limit=args.limit, length=args.tokens, device=args.device,
            )  # fmt: skip
        except OSError as error:  # a disk or a folder that does not do what every disk does
            raise BuildError(f"{args.a} and {args.b} cannot be stitched in {args.data}: {error}") from error
        finally:
            progress.stop()
    for line in _lines(a.checkpoint.name, b.checkpoint.name, measured):
        print(plain(line))
    return 0


def _lines(a: str, b: str, run: "StitchingRun") -> list[str]:
    what = "next tokens" if run.measure == "next" else "labels"
    skipped = f", {run.skipped} left out: the two models cut them differently, or nothing is to predict"
    rows = [
        ("embedding", run.embedding),
        *((f"after layer {after.layer}", after) for after in run.by_layer),
        (f"{b} by itself", run.own),
        ("chance", run.chance),
    ]
    heading = f"state of {a}"
    width = max(len(name) for name in (heading, *dict(rows)))
    return [
        f"{a} → the last {run.last} layers of {b}: {run.predictions} {what} of {run.count} texts of {run.texts}, "
        f"up to {run.length} tokens of each{skipped if run.skipped else ''}",
        f"{heading:>{width}}  accuracy      loss" + ("  without the kernel" if run.identity else ""),
        *(f"{name:>{width}}  {row.accuracy:8.1%}  {row.loss:8.3f}{_control(run, name)}" for name, row in rows),
    ]


def _control(run: "StitchingRun", name: str) -> str:
    """Accuracy and loss of the state as it is, where both models have one d_model."""
    if run.identity is None:
        return ""
    rows = {"embedding": run.identity.embedding}
    rows |= {f"after layer {after.layer}": after for after in run.identity.by_layer}
    return f"  {rows[name].accuracy:8.1%}  {rows[name].loss:8.3f}" if name in rows else " " * 20
