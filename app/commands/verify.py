"""`lexiscope verify`: checks an index against its checksums, and a random sample of its lists against the weights.
The checks themselves are in precompute/verify.py."""

import argparse
from typing import TYPE_CHECKING

from app.commands import options

if TYPE_CHECKING:
    from app.commands.options import Subparsers


def add_parser(subparsers: "Subparsers") -> None:
    parser = subparsers.add_parser("verify", help="check an index: sums, and a random sample against the weights")
    parser.add_argument("model", metavar="MODEL", help="a model that is built, or demo")
    parser.add_argument("--sample", type=options.positive, default=2, metavar="N", help="vectors per kind and layer (2)")
    parser.add_argument("--seed", type=int, help="of the random sample, to repeat one (default: a new one)")
    parser.add_argument("--sums-only", action="store_true", help="leave the weights alone")
    options.add_data(parser)
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    from app.commands.precompute import find
    from precompute.index import open_model
    from precompute.verify import check_sums

    index = open_model(args.data, args.model)
    problems = 0
    for name, fault in check_sums(index):
        print(f"{name}: {'ok' if fault is None else fault}", flush=True)
        problems += fault is not None
    if not args.sums_only:
        from precompute.architectures import describe
        from precompute.verify import check_sample, new_seed

        seed = new_seed() if args.seed is None else args.seed
        print(f"re-deriving a sample from the weights (--seed {seed})", flush=True)
        model = describe(find(args.model, args.data))
        for name, fault in check_sample(index, model, args.sample, seed):
            print(f"{name}: {'equals brute force' if fault is None else fault}", flush=True)
            problems += fault is not None
    print("everything is as it should be" if not problems else f"{problems} problems", flush=True)
    return 1 if problems else 0
