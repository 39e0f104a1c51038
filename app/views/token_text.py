"""A token as one can see it: spaces marked, control characters escaped, nothing invisible and nothing that combines.
Containing right-to-left text is for whoever shows it: <bdi> in pages, isolates in a terminal."""

import unicodedata

from lexiscope.precompute.plain_text import escaped

_NAMED = {" ": "␣", "\n": "\\n", "\r": "\\r", "\t": "\\t"}


def visible(text: str) -> str:
    r"""U+00A0 is \u00a0: \xa0 is the byte that is no text by itself, as TokenTable spells it."""
    shown = "".join([_NAMED.get(character) or _visible(character) for character in text])
    if shown and unicodedata.category(shown[0]).startswith("M"):
        shown = "\N{DOTTED CIRCLE}" + shown  # a mark would sit on whatever stands before the token
    return shown or "(no text)"  # an embedding row that no token has


def _visible(character: str) -> str:
    return escaped(character) if unicodedata.category(character)[0] in "CZ" else character
