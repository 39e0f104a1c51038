"""A token as one can see it: spaces marked, control characters escaped, nothing invisible and nothing that combines.
Containing right-to-left text is for whoever shows it: <bdi> in pages, isolates in a terminal."""

import unicodedata

_ESCAPES = {" ": "␣", "\n": "\\n", "\r": "\\r", "\t": "\\t"}


def shown(text: str) -> str:
    text = "".join([_ESCAPES.get(character) or _escaped(character) for character in text])
    if text and unicodedata.category(text[0]).startswith("M"):
        text = "\N{DOTTED CIRCLE}" + text  # a mark would sit on whatever stands before the token
    return text or "(no text)"  # an embedding row that no token has


def _escaped(character: str) -> str:
    if unicodedata.category(character)[0] not in "CZ":
        return character
    code = ord(character)
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"
