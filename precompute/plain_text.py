"""Write text for people. Text that may come from a hostile file is made safe to print: nothing in it moves the cursor
or hides what follows."""

import unicodedata

_INVISIBLE = ("Cc", "Cf", "Cs", "Zl", "Zp")  # control, format, half of a character, ends of lines and paragraphs

_NAMED = {"\n": "\\n", "\r": "\\r", "\t": "\\t"}


def plain(text: str) -> str:
    """Return the text on one line, with escapes for characters that a terminal obeys rather than shows."""
    return text if text.isascii() and text.isprintable() else "".join(map(_plain, text))


def _plain(character: str) -> str:
    if unicodedata.category(character) not in _INVISIBLE:
        return character
    return _NAMED.get(character) or escaped(character)


def escaped(character: str) -> str:
    """Return the escape of a character. From 80 on, \\xNN is not used, because TokenTable writes it for a byte that is
    no character."""
    code = ord(character)
    return f"\\x{code:02x}" if code < 0x80 else f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


def file_size(n_bytes: float) -> str:
    """Write a number of bytes for people: 1234567 -> "1.23 MB"."""
    for unit in ("B", "kB", "MB", "GB"):
        if n_bytes < 999.5:
            return f"{n_bytes:.3g} {unit}"
        n_bytes /= 1000
    return f"{n_bytes:.3g} TB"
