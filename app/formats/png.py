"""Draw the first words of a page's lists as a PNG, which chats show with a link to the page.

The font is Pillow's own, which has few letters besides ASCII: a token with any other character is left out.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from io import BytesIO
from typing import Any

WIDTH, HEIGHT = 1200, 630  # the size that chats expect
MARGIN, LISTS_TOP, LISTS_BOTTOM = 56, 178, 560
TITLE, TEXT, NAME, WORD = 62, 28, 26, 34  # sizes of the font
LINE, CHIP, PADDING, GAP = 58, 48, 12, 14  # pixels of a line of words; of a word's frame, inside it and beside it
ARROW = 34
MOST_CHARACTERS = 24  # of a word
BACKGROUND, FRAME, DARK, MUTED, ACCENT = "#fdfdfb", "#e4e9ec", "#1d2226", "#5a626b", "#00657a"

Words = tuple[str, ...]  # one token, or the two of a pair


@dataclass(frozen=True)
class Picture:
    """The text of a picture: a parameter's name, what it is, and its lists by name."""

    title: str
    about: str
    lists: Sequence[tuple[str, Sequence[Words]]]


def as_png(picture: Picture) -> bytes:
    # Importing Pillow takes a tenth of a second, which no other answer needs to wait for.
    from PIL import Image, ImageDraw

    image = Image.new("RGB", (WIDTH, HEIGHT), BACKGROUND)
    draw = ImageDraw.Draw(image)
    draw.text((MARGIN, 40), _drawn(picture.title), DARK, _font(TITLE))
    draw.text((MARGIN, 120), _drawn(picture.about), MUTED, _font(TEXT))
    room = (LISTS_BOTTOM - LISTS_TOP) // max(1, len(picture.lists))
    for at, (name, entries) in enumerate(picture.lists):
        _draw_list(draw, LISTS_TOP + at * room, room, name, entries)
    draw.rectangle((0, HEIGHT - 12, WIDTH, HEIGHT), ACCENT)
    draw.text((WIDTH - MARGIN, HEIGHT - 30), "Lexiscope", ACCENT, _font(TEXT), "rs")
    out = BytesIO()
    # A palette makes the file a third as long.
    image.quantize(32, Image.Quantize.FASTOCTREE).save(out, "PNG")
    return out.getvalue()


def _draw_list(draw: Any, top: int, room: int, name: str, entries: Sequence[Words]) -> None:
    """Draw a list's name and below it as many lines of words as there is room for."""
    draw.text((MARGIN, top), _drawn(name), ACCENT, _font(NAME))
    x, y, font = MARGIN, top + NAME + 12, _font(WORD)
    bottom = max(top + room, y + LINE)
    for words in _readable(entries):
        widths = [round(font.getlength(word)) + 2 * PADDING for word in words]
        width = sum(widths) + ARROW * (len(words) - 1)
        if x > MARGIN and x + width > WIDTH - MARGIN:
            x, y = MARGIN, y + LINE
        if y + LINE > bottom:
            return
        for at, (word, of_word) in enumerate(zip(words, widths, strict=True)):
            if at:
                x, middle = x + ARROW, y + CHIP // 2
                draw.line((x - ARROW + 6, middle, x - 8, middle), MUTED, 3)
                draw.polygon([(x - 14, middle - 6), (x - 14, middle + 6), (x - 5, middle)], MUTED)
            draw.rounded_rectangle((x, y, x + of_word, y + CHIP), 8, FRAME)
            draw.text((x + PADDING, y + CHIP // 2 + 12), word, DARK, font, "ls")
            x += of_word
        x += GAP
    if (x, y) == (MARGIN, top + NAME + 12):
        draw.text((x, y), "nothing that this picture has letters for", MUTED, _font(NAME))


def _readable(entries: Sequence[Words]) -> Iterator[Words]:
    """Yield the entries that can be drawn, without spaces around words, each once."""
    seen: set[Words] = set()
    for entry in entries:
        words = tuple(text.strip() for text in entry)
        if words not in seen and all(word and all(map(_has_letter, word[:MOST_CHARACTERS])) for word in words):
            seen.add(words)
            yield tuple(_cut(word) for word in words)


def _drawn(text: str) -> str:
    """Return a line of text without the characters that the font lacks."""
    return "".join(filter(_has_letter, text[: 4 * MOST_CHARACTERS]))


def _cut(word: str) -> str:
    return word if len(word) <= MOST_CHARACTERS else f"{word[: MOST_CHARACTERS - 1]}…"


@cache
def _font(size: int) -> Any:
    from PIL import ImageFont

    return ImageFont.load_default(size)


@lru_cache(1 << 14)
def _has_letter(character: str) -> bool:
    """Return True if the font has this character. It draws all others alike, as it draws one that no font has."""
    return character.isprintable() and bytes(_font(WORD).getmask(character)) != _missing_letter()


@cache
def _missing_letter() -> bytes:
    return bytes(_font(WORD).getmask("\U0010ffff"))
