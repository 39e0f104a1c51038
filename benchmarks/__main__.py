"""`make bench`: print one line per figure: name, measured, bound, ok or short. Given names of parts, run only those.
These run by name only: `families`, a table of differences, `patterns`, how many words each convention shows, `bases`,
whether directions of heads read better than subheads, and `scale`, what large models take elsewhere."""

import argparse
import os
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

from benchmarks import (
    bases,
    build,
    compare,
    difference,
    directions,
    export,
    fairness,
    index,
    large,
    live,
    notebook,
    pairs,
    patterns,
    ray,
    ray_serve,
    readability,
    scale,
    seeds,
    server,
    token_page,
    travel,
    vectors,
)
from benchmarks.figures import Figure, with_rows
from lexiscope.precompute.build.job import build as build_index
from lexiscope.precompute.build.options import BuildOptions
from lexiscope.precompute.build.progress import Progress
from lexiscope.precompute.index.index import Index
from lexiscope.precompute.index.origin import DEMO_NAME
from lexiscope.precompute.weights.architectures import describe
from lexiscope.precompute.weights.sources import resolve

PARTS = (
    "vectors", "pairs", "index", "build", "difference", "directions", "compare", "large", "token", "server", "live",
    "sheet", "fairness", "readability", "seeds", "export", "travel", "notebook", "serve", "ray",
)  # fmt: skip
SPEED = Path(__file__).parents[1] / "docs" / "speed.md"
TABLES = ("families", "patterns", "bases", "scale")


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("parts", nargs="*", choices=[[], *PARTS, *TABLES], help="default: all but tables")
    parser.add_argument("--data", type=Path, default=Path(os.environ.get("LEXISCOPE_DATA") or "data"))
    parser.add_argument("--write", action="store_true", help="write the figures into docs/speed.md")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=args.data if args.data.is_dir() else None) as folder:
        scratch = Path(folder)
        runs: dict[str, Callable[[], Iterator[Figure]]] = {
            "vectors": vectors.figures,
            "pairs": lambda: pairs.figures(args.data),
            "index": lambda: index.figures(_demo_index(args.data), scratch),
            "build": lambda: build.figures(scratch, _demo_tokenizer(args.data)),
            "compare": lambda: compare.figures(scratch, args.data, _demo_tokenizer(args.data)),
            "directions": lambda: directions.figures(args.data),
            "difference": lambda: difference.figures(scratch, args.data, _demo_tokenizer(args.data)),
            "large": lambda: large.figures(scratch, _demo_tokenizer(args.data)),
            "token": lambda: token_page.figures(scratch, _demo_tokenizer(args.data)),
            "live": lambda: live.figures(scratch, _demo_tokenizer(args.data)),
            "sheet": lambda: live.sheet(resolve("demo", cache=args.data / ".cache")),
            "server": lambda: server.figures(scratch, _demo_tokenizer(args.data)),
            "export": lambda: export.figures(scratch, _demo_tokenizer(args.data)),
            "travel": lambda: travel.figures(scratch, _demo_tokenizer(args.data)),
            "notebook": lambda: notebook.figures(scratch, _demo_tokenizer(args.data)),
            "serve": lambda: ray_serve.figures(scratch, _demo_tokenizer(args.data)),
            "ray": lambda: ray.figures(scratch, _demo_tokenizer(args.data)),
            "fairness": lambda: fairness.figures(_demo_index(args.data)),
            "seeds": lambda: seeds.figures(_demo_index(args.data)),
            "readability": lambda: readability.figures(_demo_index(args.data)),
        }
        for part in args.parts or PARTS:
            if part == "families":
                from benchmarks import families  # it uses the models of the tests

                for line in families.lines(scratch):
                    print(line, flush=True)
                continue
            if part == "patterns":
                for line in patterns.lines(resolve("demo", cache=args.data / ".cache")):
                    print(line, flush=True)
                continue
            if part == "scale":
                for line in scale.lines(args.data):
                    print(line, flush=True)
                continue
            if part == "bases":
                model = describe(resolve("demo", cache=args.data / ".cache"))
                for line in bases.lines(Index.open(_demo_index(args.data)), model):
                    print(line, flush=True)
                continue
            rows = []
            for figure in runs[part]():
                print(figure.line(), flush=True)
                rows.append(figure.row(part))
            if args.write:
                SPEED.write_text(with_rows(SPEED.read_text(encoding="utf-8"), part, rows), encoding="utf-8")


def _demo_index(data: Path) -> Path:
    """Return the folder of the demo's index; build one layer of it if there is none."""
    folder = data / DEMO_NAME
    if not (folder / "manifest.json").exists():
        build_index(resolve("demo", cache=data / ".cache"), data, BuildOptions(layers=(29,)), Progress())
    return folder


def _demo_tokenizer(data: Path) -> Path:
    return resolve("demo", cache=data / ".cache").tokenizer_file()


if __name__ == "__main__":
    main()
