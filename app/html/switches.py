"""What stands above the lists of a page: neighbours, switches that turn the page's own address, links to share it.
Made here because every page has several of them and a template would take longer for these than for all its text."""

from collections.abc import Iterable, Mapping
from html import escape
from typing import Any

from markupsafe import Markup

from app.addresses import turned
from app.html.glossary import term, tip
from app.views.lengths import offered
from precompute.shape import LENSES, PRESETS

_COPIED = {
    "md": ("Markdown", "a Markdown table"),
    "tex": ("LaTeX", "a LaTeX table"),
    "csv": ("CSV", "comma-separated values"),
}
_CURRENT, _OTHER = ' aria-current="true"', ' data-key="l"'


def around(before: str | None, after: str | None, what: str) -> Markup:
    """The previous and the next, which keys lead to as well."""

    def link(href: str | None, key: str, rel: str, title: str, text: str) -> str:
        if href is None:
            return f'<span aria-hidden="true">{text}</span>'
        return f'<a href="{escape(href)}" data-key="{key}" rel="{rel}" title="{title} {what} (key {key})">{text}</a>'

    return Markup(
        f'<nav class="around" aria-label="Neighbours">\n{link(before, "[", "prev", "Previous", "← previous")}\n'
        f"{link(after, ']', 'next', 'Next', 'next →')}\n</nav>\n"
    )


def lens_switch(address: str, chosen: str) -> Markup:
    return _switch(
        "Lens",
        term("lens", "Lens"),
        [
            f'<a href="{escape(turned(address, lens=lens, page=None))}" title="{escape(tip(lens))}"'
            f"{_CURRENT if lens == chosen else _OTHER}>{lens}</a>"
            for lens in LENSES
        ],
    )


def preset_switch(address: str, chosen: str) -> Markup:
    return _switch(
        "Preset",
        term("preset", "Pairs"),
        [
            f'<a href="{escape(turned(address, preset=preset, page=None))}" title="{escape(tip(preset))}"'
            f"{_CURRENT if preset == chosen else ''}>{preset}</a>"
            for preset in PRESETS
        ],
    )


def length_switch(address: str, usual: int, shown: int, stored: int) -> Markup:
    """Nothing where there is nothing to choose."""
    if stored <= usual and shown == usual:
        return Markup()
    return _switch(
        "How much of each list",
        "<span>First</span>",
        [
            f'<a href="{escape(turned(address, k=None if k == usual else k))}"{_CURRENT if k == shown else ""}>'
            f"{'all ' if k == stored else ''}{k}</a>"
            for k in sorted({*offered(usual, stored), shown})
        ],
    )


def share(address: str, formats: Mapping[str, str], whole: str = "") -> Markup:
    """The page's whole address and its other formats; the script turns a click into a copy.

    Where the CSV holds more than the page, `whole` says what: too much to copy, so it is a link like any other."""
    links = [
        "<span>Copy:</span>",
        f'<a href="{escape(address)}" data-copy="link" title="Copy the address of this page">link</a>',
    ]
    links += [
        f'<a href="{escape(formats[format])}" data-copy="{format}" title="Copy as {what}">{name}</a>'
        for format, (name, what) in _COPIED.items()
        if format in formats and not (whole and format == "csv")
    ]
    links += ["<span>Open:</span>"]
    if whole:
        links += [f'<a href="{escape(formats["csv"])}" title="Comma-separated values: {whole}">CSV ({whole})</a>']
    if "json" in formats:
        links += [f'<a href="{escape(formats["json"])}" title="This page as data">JSON</a>']
    lines = "\n".join(links)
    return Markup(f'<nav class="share" aria-label="Share this page" hx-boost:inherited="false">\n{lines}\n</nav>\n')


def _switch(name: str, label: str, links: Iterable[str]) -> Markup:
    lines = "\n".join(links)
    return Markup(f'<div class="switch" role="group" aria-label="{name}">{label}\n{lines}\n</div>\n')


FUNCTIONS: dict[str, Any] = {made.__name__: made for made in (around, lens_switch, preset_switch, length_switch, share)}
