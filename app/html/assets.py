"""Find templates and static files, and load the static files. The URL of each holds a hash of its content, so that a
browser may keep the file forever."""

import hashlib
import mimetypes
from collections.abc import Mapping, MutableMapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined

_PACKAGE = Path(__file__).parents[2]
_TYPES = {".js": "text/javascript", ".svg": "image/svg+xml", ".ico": "image/x-icon", ".css": "text/css"}


@dataclass(frozen=True)
class Asset:
    name: str
    content: bytes
    media_type: str
    version: str

    @property
    def url(self) -> str:
        return f"/static/{self.name}?v={self.version}"


def folder(name: str) -> Path:
    """Return the folder `templates`, `static` or `reading` of the package; in a clone the folder is a link."""
    return _PACKAGE / name


class TemplateEnvironment(Environment):
    """Give all templates the same names. Jinja compares their names at every import of a macro, which takes ten times
    as long where each template has a layer of names of its own."""

    def make_globals(self, d: MutableMapping[str, Any] | None) -> MutableMapping[str, Any]:
        return self.globals if d is None else super().make_globals(d)


def template_environment(templates: Path) -> Environment:
    return TemplateEnvironment(
        loader=FileSystemLoader(templates),
        autoescape=True,  # every template escapes text, because tokens may hold hostile text
        undefined=StrictUndefined,
        auto_reload=False,
        trim_blocks=True,
        lstrip_blocks=True,
    )


def load_assets(folder: Path) -> Mapping[str, Asset]:
    """Return the static files by name. Only these can be requested, so that no path leads to another file."""
    return {path.name: _load(path) for path in sorted(folder.iterdir()) if _is_asset(path)}


def fingerprint(folder: Path) -> str:
    """Return a hash that changes with any file in a folder or in its subfolders."""
    digest = hashlib.sha256()
    for path in sorted(path for path in folder.rglob("*") if path.is_file()):
        digest.update(path.relative_to(folder).as_posix().encode() + b"\0" + path.read_bytes())
    return digest.hexdigest()[:16]


def _load(path: Path) -> Asset:
    content = path.read_bytes()
    kind = _TYPES.get(path.suffix) or mimetypes.guess_type(path.name)[0] or "application/octet-stream"
    charset = "; charset=utf-8" if kind.startswith("text/") else ""
    return Asset(path.name, content, kind + charset, hashlib.sha256(content).hexdigest()[:16])


def _is_asset(path: Path) -> bool:
    return path.is_file() and not path.name.startswith((".", "_")) and path.suffix not in (".py", ".pyc")
