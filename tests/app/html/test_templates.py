"""The templates as files, the macros and the words that pages share: nothing that the content security policy forbids,
nothing unescaped, no HTML outside of them."""

import re
from pathlib import Path

import pytest

from lexiscope.app.html.assets import folder
from lexiscope.app.html.glossary import TERMS, explain_mark
from lexiscope.app.html.rendering import environment
from tests.support.pages import parsed

TEMPLATES = sorted(path for path in folder("templates").iterdir() if path.suffix in (".html", ".svg"))
APP = folder("templates").parent / "app"
PROGRAMS = sorted(APP.rglob("*.py"))
WRITERS = tuple(APP / "html" / f"{name}.py" for name in ("tokens", "tables"))  # those that make tags
FORBIDDEN = {
    "inline style": r"<style|\sstyle\s*=",
    "inline script": r"<script(?![^>]*\ssrc=)",
    "inline handler": r"\son[a-z]+\s*=|hx-on|javascript:|[\"' ]js:",
    "trigger filter, which needs eval": r"hx-trigger=\"[^\"]*\[",
    "unescaped text": r"\|\s*safe|autoescape false",
}


def rendered(macro: str, call: str, **given: str) -> str:
    """What a macro of _words.html makes."""
    jinja = environment(folder("templates"), {})
    return jinja.from_string(f'{{% from "_words.html" import {macro} %}}{{{{ {call} }}}}').render(given)


@pytest.mark.parametrize("what", FORBIDDEN)
@pytest.mark.parametrize("path", [*TEMPLATES, *WRITERS], ids=lambda path: path.name)
def test_nothing_forbidden(path: Path, what: str) -> None:
    if path.name == "notebook.html" and what == "inline style":
        return  # it is no page of the site: a notebook has no policy, and no style sheet of ours
    assert not re.search(FORBIDDEN[what], path.read_text("utf-8"))


@pytest.mark.parametrize("path", PROGRAMS, ids=lambda path: f"{path.parent.name}/{path.name}")
def test_html_is_in_templates(path: Path) -> None:
    tags = re.findall(r"</[a-z]+>|<[a-z]+ [a-z-]+=", path.read_text("utf-8"))
    assert bool(tags) == (path in WRITERS), tags


@pytest.mark.parametrize(("text", "expected"), [
    ("run `lexiscope demo` <now>", "run <code>lexiscope demo</code> &lt;now&gt;"),
    ("an odd ` tick & more", "an odd ` tick &amp; more"),
    ("`<b>`", "<code>&lt;b&gt;</code>"),
])  # fmt: skip
def test_ticked(text: str, expected: str) -> None:
    assert rendered("ticked", "ticked(text)", text=text) == expected


@pytest.mark.parametrize("key", TERMS)
def test_terms(key: str) -> None:
    (link,) = parsed(rendered("term", "term(key)", key=key)).all("a")
    assert link.attributes == {"class": "term", "href": f"/-/help/glossary#{key}", "title": TERMS[key].text}
    assert link.text == TERMS[key].name


@pytest.mark.parametrize(("token", "said"), [
    ("[CLS]", "before every text"),
    ("<s>", "before every text"),
    ("</s>", "after every text"),
    ("[MASK]", "guess"),
    ("<mask>", "guess"),
    ("[unused791]", "Kept free"),
])  # fmt: skip
def test_marks_are_explained(token: str, said: str) -> None:
    assert said in explain_mark(token)


@pytest.mark.parametrize("token", ["", "s", "cls", "[", "[]", "<div>", "[unused]", "[unusedx]", "mask", "[CLS"])
def test_text_is_no_mark(token: str) -> None:
    assert explain_mark(token) == ""
