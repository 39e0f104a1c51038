"""`lexiscope labels check`: read files of labels (what people wrote about parameters) as the server does, and print
what is wrong with them."""

import argparse
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING

from lexiscope.app.commands.command import command, option
from lexiscope.precompute.errors import LexiscopeError, NotFound
from lexiscope.precompute.plain_text import plain

if TYPE_CHECKING:
    from lexiscope.precompute.index.label_files import LabelFile


@command(
    "labels",
    "check files of labels: what people said of parameters",
    "Labels are what people said of parameters: files DATA/labels/*.json, which the server shows. `lexiscope labels "
    "check` reads such files as the server does, and says what is wrong: by file, entry and field. Where the data "
    "folder has an index of the model, also whether it has such a parameter.",
    option("action", "check: say what is wrong with files of labels", choices=("check",), metavar="ACTION"),
    option("files", "files of labels (default: all in DATA/labels)", Path, metavar="FILE", nargs="*"),
)
def run(args: argparse.Namespace) -> int:
    """Print what is wrong with each file; return 1 if anything is wrong, else 0."""
    from lexiscope.precompute.index.label_files import LABELS, label_paths, plain_path, read_label_file

    folder = args.data / LABELS
    try:
        paths = args.files or label_paths(folder)
    except OSError as error:
        raise NotFound(f"{folder} cannot be read ({error.strerror}): give files, or another --data") from error
    if not paths:
        raise NotFound(f"there is no file of labels in {folder}: give files, or another --data")
    errors = 0
    for path in paths:
        file = read_label_file(path, plain_path(path), None if args.files else folder)
        wrong = [*file.errors, *_misplaced(file, args.data)]
        errors += len(wrong)
        models = Counter(filed.label.about.model for filed in file.labels)
        there = ", ".join(f"{number} of {model}" for model, number in models.items()) or "none"
        print(plain(f"{plain_path(path)}: {'labels' if wrong else 'ok, labels'}: {there}"))
        for each in wrong:
            print(plain(f"  {each}"))
    print(f"{errors} {'error' if errors == 1 else 'errors'}" if errors else "everything is as it should be")
    return 1 if errors else 0


def _misplaced(file: "LabelFile", data: Path) -> tuple[str, ...]:
    """Return a message for each label of a parameter that its model, which is in the data folder, does not have."""
    from lexiscope.app.library.labels import ModelLabels
    from lexiscope.precompute.index.data_folder import open_model

    errors: list[str] = []
    for model in dict.fromkeys(filed.label.about.model for filed in file.labels):
        try:
            shape = open_model(data, model).shape
        except NotFound:
            continue  # without an index of the model nothing is known of its parameters
        except LexiscopeError as error:
            errors.append(f"addresses of {model} were not checked: {error}")
            continue
        errors += ModelLabels((filed for filed in file.labels if filed.label.about.model == model), shape).errors
    return tuple(errors)
