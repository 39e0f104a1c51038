"""The templates as files: nothing inline that the content security policy forbids, nothing unescaped, none too long."""

import re
from pathlib import Path

import pytest

from app.html.resources import folder

TEMPLATES = sorted(folder("templates").glob("*.html"))
MAKERS = [
    folder("templates").parent / "app" / f"{name}.py"
    for name in ("glossary", "markup", "rows", "sections", "switches", "vocabulary")
]
FORBIDDEN = {
    "inline style": r"<style|\sstyle\s*=",
    "inline script": r"<script(?![^>]*\ssrc=)",
    "inline handler": r"\son[a-z]+\s*=|hx-on|javascript:|[\"' ]js:",
    "trigger filter, which needs eval": r"hx-trigger=\"[^\"]*\[",
    "unescaped text": r"\|\s*safe|autoescape false",
}


@pytest.mark.parametrize("what", FORBIDDEN)
@pytest.mark.parametrize("path", [*TEMPLATES, *MAKERS], ids=lambda path: path.name)
def test_nothing_forbidden(path: Path, what: str) -> None:
    text = path.read_text("utf-8")
    assert not re.search(FORBIDDEN[what], text)


@pytest.mark.parametrize("path", TEMPLATES, ids=lambda path: path.name)
def test_small(path: Path) -> None:
    assert len(path.read_text("utf-8").splitlines()) <= 80
