"""`lexiscope verify`: compare an index with its checksums, and a random sample of its lists with the weights."""

import argparse
from typing import TYPE_CHECKING

from lexiscope.app.commands.command import MODEL, command, flag, natural, option, positive
from lexiscope.precompute.plain_text import plain

if TYPE_CHECKING:
    from collections.abc import Iterable

    from lexiscope.precompute.verify.sums import Result


@command(
    "verify",
    "check an index: sums, and a random sample against the weights",
    "Check an index: its files against their checksums, and a random sample of its lists against the weights, by brute "
    "force.",
    MODEL,
    option("--sample", "vectors per kind and layer (2)", positive, default=2),
    option("--seed", "of the random sample, to repeat one (default: a new one)", natural),
    flag("--sums-only", "leave the weights alone"),
)
def run(args: argparse.Namespace) -> int:
    from lexiscope.precompute.index.data_folder import open_model
    from lexiscope.precompute.verify.sums import check_sums

    index = open_model(args.data, args.model)
    errors = _report(check_sums(index), "ok")
    if not args.sums_only:
        from lexiscope.app.weights import weights_of_index
        from lexiscope.precompute.verify.sample import check_sample, new_seed

        seed = new_seed() if args.seed is None else args.seed
        print(f"re-deriving a sample from the weights (--seed {seed})", flush=True)
        errors += _report(check_sample(index, weights_of_index(index), args.sample, seed), "equals brute force")
    print(f"{errors} error{'s' if errors > 1 else ''}" if errors else "everything is as it should be", flush=True)
    return 1 if errors else 0


def _report(results: "Iterable[Result]", good: str) -> int:
    """Print each result, and return how many files or lists are wrong."""
    errors = 0
    for name, error in results:
        print(plain(f"{name}: {error or good}"), flush=True)
        errors += error is not None
    return errors
