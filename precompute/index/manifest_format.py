"""Which format a manifest has: one of an older or newer Lexiscope is told apart before anything else of it is read."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from lexiscope.precompute.errors import NewerFormat, OldFormat
from lexiscope.precompute.files import open_regular, strict_json
from lexiscope.precompute.index.tensor_file import FORMAT
from lexiscope.precompute.rebuild_command import MANIFEST, rebuild_command_for

MAX_BYTES = 1 << 24  # of a manifest, whatever its format


def check_format(path: Path, content: bytes) -> None:
    """NewerFormat or OldFormat, whatever else such a manifest holds."""
    fields = strict_json(content)
    if not isinstance(fields, dict):
        return
    version = fields.get("format")
    if type(version) is int and version > FORMAT:
        raise NewerFormat(
            f"{path} has format {str(version)[:20]}; this Lexiscope reads format {FORMAT}. Upgrade lexiscope, or "
            f"build it anew elsewhere: `lexiscope precompute {path.parent.name} --data DIR`"
        )
    if is_old_format(fields):
        raise OldFormat(
            f"{path} was made by an older Lexiscope and has format {ascii(version or fields['format_version'])[:20]}; "
            f"this one reads format {FORMAT}. `{rebuild_command_for(path.parent)}` builds it anew in its place"
        )


def is_old_format(fields: Mapping[str, Any]) -> bool:
    """Whether these are the fields of an older format's manifest; that of format 1 calls its format otherwise."""
    version = fields.get("format")
    return (type(version) is int and 1 <= version < FORMAT) or (version is None and "format_version" in fields)


def read_old_fields(folder: Path) -> Mapping[str, Any]:
    """The fields of a manifest of an older format, unchecked; empty if there is none."""
    try:
        with open_regular(folder / MANIFEST) as file:
            fields = strict_json(file.read(MAX_BYTES))
    except (OSError, ValueError):
        return {}
    return fields if isinstance(fields, dict) and is_old_format(fields) else {}
