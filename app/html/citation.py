"""Write BibTeX that cites a page."""

import re
from typing import TYPE_CHECKING

from lexiscope.app.formats.latex import escape, slug

if TYPE_CHECKING:
    from lexiscope.app.html.rendering import PageRequest


def page_bibtex(title: str, page: "PageRequest") -> str:
    """Write BibTeX for a page about a model: its permanent link, and the build of the index that it was made from."""
    if page.index is None:
        return ""
    manifest = page.index.manifest
    minus = f" less {manifest.minus.weights_sha256[:12]} of {manifest.minus.model}" if manifest.minus else ""
    return f"""\
@misc{{lexiscope-{slug(page.canonical)},
  title = {{{_plain(title)}}},
  author = {{{{Lexiscope}}}},
  howpublished = {{Lexiscope, index build {manifest.build}}},
  note = {{Weights {manifest.weights_sha256[:12]}{minus}, {_plain(manifest.origin)}}},
  url = {{{page.origin}{page.pinned or page.canonical}}}
}}"""


def _plain(text: str) -> str:
    """Escape text for LaTeX without the macro \\lexchar, which a citing document does not define."""
    return re.sub(r"\\lexchar\{(\w+)\}\{.\}", r"U+\1", escape(text), flags=re.DOTALL)
