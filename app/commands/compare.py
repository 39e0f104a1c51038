"""`lexiscope compare`: measure how similar the layers of two models are, and find which of their vectors match."""

import argparse

from lexiscope.app.commands.command import (
    DEVICE,
    GOES_ON,
    THREADS,
    TWO_MODELS,
    check_folder,
    command,
    exit_on_signals,
    flag,
    kinds,
    stopping,
)


@command(
    "compare",
    "compare two models: layers, and every vector's matches",
    "Compare two models that share tokens: how alike their layers are, which layer goes with which, and the best "
    "matches of every vector in the other model. Goes on with a comparison that was stopped.",
    *TWO_MODELS,
    kinds("all that both models have"),
    DEVICE,
    THREADS,
    flag("--force", "make the comparison anew"),
)
def run(args: argparse.Namespace) -> None:
    check_folder(args.data)
    with exit_on_signals(GOES_ON.format("kinds")):
        from lexiscope.app.weights import find_weights
        from lexiscope.precompute.compare.job import CompareOptions, CompareProgress, compare
        from lexiscope.precompute.weights.architectures import describe
        from lexiscope.precompute.weights.difference import Difference

        with stopping(CompareProgress(), f"{args.a} and {args.b} cannot be compared in {args.data}") as progress:
            found = (find_weights(asked, args.data) for asked in (args.a, args.b))
            a, b = (weights if isinstance(weights, Difference) else describe(weights) for weights in found)
            compare(a, b, args.data, CompareOptions(args.kinds, args.force, args.device, args.threads), progress)
