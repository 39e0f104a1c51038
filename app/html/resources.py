"""Where templates and static files are: beside the packages in a clone, inside `app` in an installed wheel.
What is in them is for rendering.py and assets.py."""

from pathlib import Path

_APP = Path(__file__).parents[1]


def folder(name: str) -> Path:
    """`templates` or `static`."""
    installed = _APP / name
    return installed if installed.is_dir() else _APP.parent / name
