"""`lexiscope run`: run a model on a text, here or on a server, and print its panels (parts of the result) or write them
into a file. The options are the arguments of the page."""

import argparse
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

from lexiscope.app.commands.command import amount, command, natural, option, positive
from lexiscope.precompute.shape import LENSES

if TYPE_CHECKING:
    from lexiscope.app.lists.view import View

FORMATS = (".json", ".csv", ".parquet")

# The arguments of the page, and how each is read; texts are checked as in an address.
ARGUMENTS = {
    "position": (natural, "which token to look at, from 0 (default: the last, or an encoder's mask)"),
    "layer": (natural, "which layer to look at; of the sheet, only its rows"),
    "head": (natural, "which head to look at; of the sheet, only its rows"),
    "neuron": (natural, "a neuron of that layer to tell of"),
    "off": (str, "neurons and heads to switch off, such as 10.2361,8.h11"),
    "set": (str, "coefficients of neurons, such as 10.5:2.5"),
    "mean": (str, "neurons and heads to set to their mean, such as 23.h4"),
    "means": (str, "what that mean is over: prompt (the default), or texts"),
    "from_": (str, "a second text, from which --patch takes values"),
    "patch": (str, "neurons and heads that take their value from the second text, such as 23.h4@3"),
    "bos": (natural, "1: put the model's own first token in front"),
    "convention": (str, "vocabulary (the default), final or exact"),
    "rows": (str, "of patterns: heads (the default), or tokens"),
    "k": (positive, "tokens of each list (default: 5)"),
    "token": (str, "whose logit is explained (default: the predicted)"),
    "against": (str, "what that logit is compared with: mean (the default), none, or a token"),
    "of": (str, "of the sheet: rows of heads or of neurons (default: both)"),
    "at": (natural, "of the sheet: heads at this position"),
    "word": (str, "of the sheet: rows in whose lists this word stands"),
    "least": (amount, "of the sheet: the smallest weight, or size of coefficient"),
    "bias": (str, "of the sheet: hide leaves out rows of high bias"),
    "sort": (str, "of the sheet: layer, moved, message, weight, adds, strength or coefficient"),
}

EXAMPLES = """\
examples:
  lexiscope run gpt2 "The capital of France is"
  lexiscope run gpt2 "The capital of France is" -o sheet.parquet
  lexiscope run gpt2 "The capital of France is" --panel sheet --word paris --sort moved
  lexiscope run http://127.0.0.1:8000/gpt2 "The capital of France is" --panel neurons -o neurons.csv
"""


@command(
    "run",
    "run a model on a text; its heads and neurons as a file",
    "Run a model on a text and print what it predicts and how, or write it into a file: every head at every position "
    "and the strongest neurons (the sheet), or other panels. It needs the weights, or a server that has them. A "
    ".parquet needs pyarrow: pip install 'lexiscope[parquet]'.",
    option("model", "a model that is built, or its address on a server", metavar="MODEL"),
    option("text", "the text, as it is", metavar="TEXT"),
    option("-o --output", f"a file: {', '.join(FORMATS)}; without it, tables are printed", Path, metavar="FILE"),
    option("--panel", "what to compute: sheet, evolution, patterns, ... (default: evolution; of a file, sheet)"),
    option("--server", "the server that has the model, such as http://127.0.0.1:8000", metavar="URL"),
    option("--lens", "how scores are read (default: dot)", choices=LENSES),
    *(option(f"--{name.rstrip('_')}", words, parse, dest=name) for name, (parse, words) in ARGUMENTS.items()),
    examples=EXAMPLES,
)
def run(args: argparse.Namespace) -> None:
    if args.output and args.output.suffix not in FORMATS:
        args.usage_error(f"-o {args.output}: the name of the file ends in {', '.join(FORMATS)}")
    if args.output and not args.output.parent.is_dir():  # said before the model is loaded and run
        args.usage_error(f"-o {args.output}: there is no folder {args.output.parent}")
    panels = (args.panel or ("sheet" if args.output else "evolution")).split(",")
    if args.output and args.output.suffix == ".parquet":
        import pyarrow  # noqa: F401  # if it is not installed, say so before the model is loaded

        if panels != ["sheet"]:
            args.usage_error("a .parquet is of the sheet alone: leave out --panel, or write .csv or .json")
    from lexiscope.app.notebook.opening import open as open_model
    from lexiscope.app.notebook.run import PanelOfRun, Run
    from lexiscope.app.pages.prompt.page import PROMPT, PromptAt
    from lexiscope.precompute.errors import BadRequest

    if not args.text:
        raise BadRequest("there is no text: give one such as The capital of France is")
    model = open_model(f"{args.server.rstrip('/')}/{args.model}" if args.server else args.model, data=args.data)
    asked = {name: getattr(args, name) for name in ("lens", *ARGUMENTS)}
    view = model.source.get(PROMPT, PromptAt(), text=args.text, panel=panels, **asked)
    if args.output:
        _write(args.output, view)
        return
    print(Run(view))
    for name in panels:
        if name != "evolution":
            print(f"\n{PanelOfRun(view, name)}")


def _write(path: Path, view: "View") -> None:
    from lexiscope.app.formats.json_format import json_bytes
    from lexiscope.app.formats.tables import view_csv, view_parquet
    from lexiscope.precompute.files import write_beside

    chunks: Iterable[bytes]
    match path.suffix:
        case ".json":
            chunks = [json_bytes(view)]
        case ".csv":
            chunks = (text.encode() for text in view_csv(view))
        case _:
            chunks = view_parquet(view)
    write_beside(path, chunks)
