"""`lexiscope lab`: repeat the paper's measurements on one model."""

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from lexiscope.app.commands.command import (
    DEVICE,
    GOES_ON,
    MODEL,
    command,
    exit_on_signals,
    flag,
    number,
    option,
    positive,
    some_of,
    stopping,
    text_limits,
)
from lexiscope.precompute.plain_text import plain

if TYPE_CHECKING:
    from lexiscope.precompute.index.lab_record import LabRecord

MEASUREMENTS = ("similarity", "inverse", "coverage")
# how many active vectors are taken, how many texts, and how many tokens of each text
ACTIVE_VECTORS, LAB_TEXTS, LAB_TOKENS = 10, 60, 128
LARGEST_SEED = (1 << 31) - 1


@command(
    "lab",
    "the paper's measurements of one model, for its page /MODEL/lab",
    "Make the measurements of the paper for one model: how similar the two lists of a neuron or a subhead are "
    "(similarity), which inverse of the embedding survives when only the largest entries are kept (inverse), and, with "
    "texts, how much of a hidden state the lists of active vectors tell (coverage). What is measured is kept beside "
    "the index; run again, it goes on with what is missing.",
    MODEL,
    option(
        "--only",
        f"only these measurements, of {', '.join(MEASUREMENTS)} (default: all)",
        some_of(MEASUREMENTS),
        metavar="NAME,...",
        default=MEASUREMENTS,
    ),
    option(
        "--texts",
        "to run the model on, for coverage and hidden states: a .txt with a text in each line, or a .csv with a column "
        "text",
        Path,
        metavar="FILE",
    ),
    *text_limits(LAB_TEXTS, LAB_TOKENS),
    option(
        "--m",
        f"how many vectors count as active; the paper does not say ({ACTIVE_VECTORS})",
        positive,
        default=ACTIVE_VECTORS,
    ),
    option(
        "--seed",
        "of all that is drawn at random (0)",
        number(int, f"a whole number from 0 to {LARGEST_SEED}", 0, LARGEST_SEED),
        default=0,
        metavar="N",
    ),
    DEVICE,
    flag("--force", "measure anew what was measured already"),
)
def run(args: argparse.Namespace) -> None:
    with exit_on_signals(GOES_ON.format("measurements and texts")):
        from lexiscope.app.weights import weights_of_index
        from lexiscope.precompute.index.data_folder import open_model
        from lexiscope.precompute.lab.job import LabOptions, LabProgress, measure
        from lexiscope.precompute.live.texts import read_texts

        index = open_model(args.data, args.model)
        chosen = LabOptions(
            only=args.only, texts=read_texts(args.texts, labelled=False) if args.texts else None, seed=args.seed,
            m=args.m, limit=args.limit, length=args.tokens, device=args.device, force=args.force,
        )  # fmt: skip
        with stopping(LabProgress(), f"{args.model} cannot be measured in {args.data}") as progress:
            record = measure(index, lambda: weights_of_index(index), chosen, progress)
    for line in _lines(index.manifest.model, record):
        print(plain(line))


def _lines(name: str, record: "LabRecord") -> list[str]:
    """Return lines with a few of the measured numbers; the page of the lab shows all of them."""
    lines = []
    if record.similarity and (ff := record.similarity.ff):
        lines.append(f"similarity of keys and values: {_mean(ff.matched)} (shuffled {_mean(ff.shuffled)})")
    for kind in ("normal", "ff_value", "hidden") if record.inverse else ():
        if scored := getattr(record.inverse, kind):
            at = scored.k.index(1000) if 1000 in scored.k else len(scored.k) - 1
            scores = f"{scored.transpose[at]:.2f} with the transpose, {scored.pseudo[at]:.2f} with the pseudo-inverse"
            lines.append(f"keep-{scored.k[at]} score of {kind}: {scores}")
    if record.coverage and (values := record.coverage.ff_value):
        lines.append(f"coverage by FF values: {_mean(values.own)} (random state {_mean(values.own_random)})")
    return [*lines, f"all numbers are on the page /{name}/lab, and in its .json and .csv"]


def _mean(by_layer: "tuple[float | None, ...]") -> str:
    known = [value for value in by_layer if value is not None]
    return f"{sum(known) / len(known):.3f} on average over {len(known)} layers" if known else "none"
