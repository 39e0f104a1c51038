"""What visitors are told of a fault: the files of an index by their place in the data folder, because where that folder
is on the machine is nobody's business. The log of the server and the command line have the whole path."""

import re
from pathlib import Path


def for_visitors(fault: object, data: Path) -> str:
    folder = re.escape(str(data))
    return re.sub(rf"(?<![\w./-]){folder}/", "", str(fault)) if data != Path() else str(fault)


def without_folders(text: str) -> str:
    """The text with only the last part of every absolute path: where things are on the machine is private."""
    return re.sub(r"(?<![\w:/.])(?:/[^\s/'\"`]+)*/(?=[^\s/'\"`])", "", text)
