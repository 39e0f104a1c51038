"""A token as one can see it: spaces marked, control characters escaped, nothing invisible and nothing that combines.
Containing right-to-left text is for whoever shows it: <bdi> in pages, isolates in a terminal."""

import unicodedata

from precompute.plain_text import escaped

_NAMED = {" ": "␣", "\n": "\\n", "\r": "\\r", "\t": "\\t"}


def visible(text: str) -> str:
    r"""U+00A0 is \u00a0: \xa0 is the byte that is no text by itself, as TokenTable spells it."""
    seen = "".join([_NAMED.get(character) or _visible(character) for character in text])
    if seen and unicodedata.category(seen[0]).startswith("M"):
        seen = "\N{DOTTED CIRCLE}" + seen  # a mark would sit on whatever stands before the token
    return seen or "(no text)"  # an embedding row that no token has


def _visible(character: str) -> str:
    return escaped(character) if unicodedata.category(character)[0] in "CZ" else character
