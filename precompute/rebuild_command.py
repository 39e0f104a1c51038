"""How to make an index again: the command to run, by what its manifest says that it was made from.
Shown to people in errors and on pages; of a local path only the last part, the rest is private."""

import json
import shlex
from pathlib import Path, PurePath

from precompute.plain_text import plain

MANIFEST = "manifest.json"


def rebuild_command(source: str) -> str:
    """For example `lexiscope precompute demo`."""
    path = PurePath(source)
    return f"lexiscope precompute {shlex.quote(plain(path.name if path.is_absolute() else source))}"


def unless_running(source: str) -> str:
    return f"If no build is running, `{rebuild_command(source)}` goes on with it"


def rebuild_command_for(folder: Path) -> str:
    """The command for an index that may be damaged; the name of its folder is used if its manifest does not tell."""
    try:
        source = json.loads((folder / MANIFEST).read_bytes())["source"]
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        source = None
    return rebuild_command(source if isinstance(source, str) and source else folder.name)
