"""`lexiscope stitch`: run one model up to each of its layers and continue with the last layers of another."""

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from lexiscope.app.commands.command import (
    DEVICE,
    TWO_MODELS,
    check_folder,
    command,
    exit_on_signals,
    option,
    positive,
    stopping,
    text_limits,
)
from lexiscope.precompute.plain_text import plain

if TYPE_CHECKING:
    from lexiscope.precompute.index.stitching import StitchingRun

# how many last layers of B are run, how many texts, and how many tokens of each text
LAST_LAYERS, STITCHED_TEXTS, STITCHED_TOKENS = 3, 500, 256


@command(
    "stitch",
    "run one model up to each of its layers, and the last layers of another on what it makes",
    "Stitch two models without training: the states of A after each of its layers, turned by the kernel into states of "
    "B, go through the last layers of B and its head. What comes out is measured on texts and kept beside the "
    "comparison of the two.",
    *TWO_MODELS,
    option(
        "--texts",
        "a .txt with a text in each line (next tokens), or a .csv with the columns text,label (B is a classifier)",
        Path,
        metavar="FILE",
        required=True,
    ),
    option("--last", f"layers of B ({LAST_LAYERS})", positive, default=LAST_LAYERS),
    *text_limits(STITCHED_TEXTS, STITCHED_TOKENS),
    DEVICE,
)
def run(args: argparse.Namespace) -> None:
    check_folder(args.data)
    with exit_on_signals("No run was kept; the same command begins it anew"):
        from lexiscope.app.weights import find_checkpoint
        from lexiscope.precompute.compare.stitch_job import StitchProgress, stitch_models
        from lexiscope.precompute.live.texts import read_texts
        from lexiscope.precompute.weights.architectures import describe

        texts = read_texts(args.texts)
        with stopping(StitchProgress(), f"{args.a} and {args.b} cannot be stitched in {args.data}") as progress:
            a, b = (describe(find_checkpoint(asked, args.data)) for asked in (args.a, args.b))
            measured = stitch_models(
                a, b, args.data, texts, progress,
                last=args.last, limit=args.limit, length=args.tokens, device=args.device,
            )  # fmt: skip
    for line in _lines(a.checkpoint.name, b.checkpoint.name, measured):
        print(plain(line))


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
    """Return a text with accuracy and loss if B gets A's states without the kernel that translates them; "" if that was
    not run because the models differ in d_model."""
    if run.identity is None:
        return ""
    rows = {"embedding": run.identity.embedding}
    rows |= {f"after layer {after.layer}": after for after in run.identity.by_layer}
    return f"  {rows[name].accuracy:8.1%}  {rows[name].loss:8.3f}" if name in rows else " " * 20
