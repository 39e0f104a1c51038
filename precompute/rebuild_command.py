"""Write the command that makes an index, or a comparison, again, from what its files say it was made from. People see
this command in errors and on pages; of a local path only the last part is shown, because the rest is private."""

import json
import shlex
from pathlib import Path, PurePath
from typing import Any

from lexiscope.precompute.plain_text import plain

MANIFEST = "manifest.json"
COMPARISON = "comparison.json"
COMPARISONS = "vs"  # comparisons of A with B are in DATA/vs/A/B
HALF_NAME = 44  # characters: two of them with "-minus-" between stay below the longest name there may be


def difference_name(tuned: str, base: str) -> str:
    """Return the name of the index of tuned - base, unless its user gives another."""
    return f"{tuned[:HALF_NAME]}-minus-{base[:HALF_NAME]}"


def rebuild_command(source: str, minus: str = "", name: str = "") -> str:
    """Return, for example, `lexiscope precompute demo`, or for a difference `lexiscope precompute tuned --minus
    base`."""
    options = (f" --minus {_word(minus)}" if minus else "") + (f" --name {_word(name)}" if name else "")
    return f"lexiscope precompute {_word(source)}{options}"


def unless_running(command: str) -> str:
    return f"If no build is running, `{command}` goes on with it"


def rebuild_command_for(folder: Path) -> str:
    """Return the command for an index that may be damaged; if its manifest does not name the model, the folder's name
    is used."""
    if is_comparison(folder):
        return compare_command_for(folder)
    fields = _fields(folder / MANIFEST)
    source, minus = _text(fields.get("source")), fields.get("minus")
    if not source or not isinstance(minus, dict):
        return rebuild_command(source or folder.name)
    base, tuned, model = (_text(minus.get(name)) for name in ("source", "tuned", "model"))
    return rebuild_command(source, base, "" if folder.name == difference_name(tuned, model) else folder.name)


def is_comparison(folder: Path) -> bool:
    return folder.parent.parent.name == COMPARISONS


def compare_command_for(folder: Path) -> str:
    """Return, for example, `lexiscope compare demo minilm`, for a comparison that may be damaged or absent."""
    fields, words = _fields(folder / COMPARISON), []
    for side, name in (("a", folder.parent.name), ("b", folder.name)):
        model = fields.get(side)
        source = model.get("source") if isinstance(model, dict) and "minus" not in model else None
        words.append(_word(_text(source) or name))
    return f"lexiscope compare {' '.join(words)}"


def _fields(path: Path) -> dict[str, Any]:
    try:
        content = json.loads(path.read_bytes())
    except (OSError, ValueError, RecursionError):
        return {}
    return content if isinstance(content, dict) else {}


def _text(value: Any) -> str:
    return value if isinstance(value, str) else ""


def _word(source: str) -> str:
    path = PurePath(source)
    return shlex.quote(plain(path.name if path.is_absolute() else source))
