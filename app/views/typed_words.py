"""Words as visitors type them into live pages, read and written back in one way: with weights, in groups, in pairs, or
one that stands for a token."""

import re
from collections.abc import Iterable
from typing import get_args

from app.views.typed_numbers import NUMBER, checked_size, write_number
from precompute.errors import BadRequest
from precompute.live.wire.panels import ComparedWith
from precompute.live.wire.words import Group, Term, Word, WordPair

LONGEST_WORD = 100
BASELINES = get_args(ComparedWith)

_PART = re.compile(
    rf"""
    (?P<gap>[\s,]+)
    | (?P<sign>[+\-−])
    | (?P<times>{NUMBER})\s*[*×·]
    | "(?P<quoted>[^"]*)"
    | (?P<word>[^\s,"][^\s,]*)
    """,
    re.VERBOSE,
)
_PLAIN = re.compile(rf"""(?!{NUMBER}\s*[*×·])[^\s,"+\-−][^\s,]*""")
_GROUP_PART = re.compile(
    r"""
    (?P<gap>[\s,]+)
    | (?P<joint>\+)
    | \#(?P<token>[0-9]{1,9})(?![^\s,+])
    | "(?P<quoted>[^"]*)"
    | (?P<word>[^\s,"+][^\s,+]*)
    """,
    re.VERBOSE,
)
_WEIGHTED = re.compile(rf"[\-−]|(?:{NUMBER})[*×·]")
_PLAIN_IN_GROUP = re.compile(rf"""(?!#[0-9]{{1,9}}$|{_WEIGHTED.pattern})[^\s,"+][^\s,+]*""")
_ID = re.compile(r"#[0-9]{1,9}")
_TOKEN = re.compile(r"#?([0-9]{1,9})")


def parse_terms(text: str) -> tuple[Term, ...]:
    """`horse, dog`, `king - man + woman`, `2*dog`, `"New York"`: words and what each counts."""
    terms: list[Term] = []
    weight, pending = 1.0, False
    for part in _PART.finditer(text):
        match part.lastgroup:
            case "sign":
                weight, pending = (weight if part["sign"] == "+" else -weight), True
            case "times":
                weight, pending = weight * float(part["times"]), True
            case "quoted" | "word":
                terms.append(Term(word=_word(part[part.lastgroup], text), weight=checked_size(weight)))
                weight, pending = 1.0, False
    if pending:
        raise BadRequest(f"words = {text[:100]!r}: a word is missing at the end. Write king - man + woman, or 2*dog")
    if terms and not any(term.weight for term in terms):
        raise BadRequest(f"words = {text[:100]!r}: nothing is left. Give one word at least a weight other than 0")
    return tuple(terms)


def write_terms(terms: Iterable[Term]) -> str:
    """The one way to write them: commas, or signs as soon as one of them has a weight."""
    terms = tuple(terms)
    if all(term.weight == 1 for term in terms):
        return ",".join(_quoted(term.word) for term in terms)
    signs = ["-" if term.weight < 0 else "+" for term in terms]
    words = [_times(abs(term.weight)) + _quoted(term.word) for term in terms]
    rest = "".join(f" {sign} {word}" for sign, word in zip(signs[1:], words[1:], strict=True))
    return signs[0].strip("+") + words[0] + rest


def parse_groups(text: str) -> tuple[Group, ...]:
    """`couch, dog`, `horse+lion` (the mean of both), `"New York"`, `#3290` (a token by its id): each group once."""
    groups: list[list[Word]] = []
    joined = False
    for part in _GROUP_PART.finditer(text):
        match part.lastgroup:
            case "joint":
                if joined or not groups:
                    raise BadRequest(f"words = {text[:100]!r}: a word is missing before +. Write horse+lion")
                joined = True
            case "token" | "quoted" | "word":
                if not joined:
                    groups.append([])
                groups[-1].append(_word_of_group(part, text))
                joined = False
    if joined:
        raise BadRequest(f"words = {text[:100]!r}: a word is missing after +. Write horse+lion")
    return tuple(dict.fromkeys(map(tuple, groups)))


def write_groups(groups: Iterable[Group]) -> str:
    return ",".join("+".join(map(_written, group)) for group in groups)


def write_words(words: Iterable[str]) -> str:
    """Words as groups of one."""
    return write_groups((Word(word=word),) for word in words)


def parse_pairs(text: str) -> tuple[WordPair, ...]:
    """`France>Paris, Italy>Rome`: also with -> or →; a line or a comma ends a pair. A pair counts once, however often
    it is given: that is no more evidence."""
    pairs = []
    for part in re.split(r"[,;\n]", text):
        if not part.strip():
            continue
        sides = re.split(r"-?>|→", part)
        if len(sides) != 2:
            raise BadRequest(f"pairs = {part.strip()[:100]!r}: a pair is two words such as France>Paris")
        source, target = (_word(_without_quotes(side.strip()), part) for side in sides)
        if _ID.fullmatch(source) or _ID.fullmatch(target):
            raise BadRequest(f"pairs = {part.strip()[:100]!r}: pairs are of words, not of token ids")
        pairs.append(WordPair(source=source, target=target))
    return tuple(dict.fromkeys(pairs))


def write_pairs(pairs: Iterable[WordPair]) -> str:
    return ",".join(f"{pair.source}>{pair.target}" for pair in pairs)


def parse_token(text: str) -> Word | None:
    """`3290` or `#3290`, a token by its id; `run` or `"7"`, a word; None of nothing."""
    text = text.strip()
    if match := _TOKEN.fullmatch(text):
        return Word(word=f"#{int(match[1])}", token=int(match[1]))
    return Word(word=_word(text.strip('"'), text)) if text else None


def write_token(word: Word | None) -> str | None:
    if word is None:
        return None
    if word.token is not None:
        return str(word.token)
    return f'"{word.word}"' if _TOKEN.fullmatch(word.word) or word.word in BASELINES else word.word


def parse_against(text: str) -> Word | ComparedWith:
    """What a logit is compared with: `mean`, `none`, or a token as `parse_token` reads it."""
    named: dict[str, ComparedWith] = {"": "mean", "mean": "mean", "none": "none"}
    text = text.strip()
    return named[text] if text in named else parse_token(text) or "mean"


def write_against(against: Word | ComparedWith) -> str | None:
    return write_token(against) if isinstance(against, Word) else against


def _word_of_group(part: re.Match[str], text: str) -> Word:
    if part["token"] is not None:
        return Word(word=f"#{int(part['token'])}", token=int(part["token"]))
    if part["word"] and _WEIGHTED.match(part["word"]):
        raise BadRequest(
            f"words = {part['word'][:100]!r}: here words are not subtracted or weighed, only joined, as in horse+lion. "
            'Put a word that begins so in quotes: "-ing"'
        )
    return Word(word=_word(part["word"] or part["quoted"], text))


def _word(word: str, text: str) -> str:
    if not word.strip():
        raise BadRequest(f"{text.strip()[:100]!r}: a word is missing. Give words such as horse, dog, lion")
    try:
        word.encode("utf-8")
    except UnicodeEncodeError:  # as a shell passes bytes that are not UTF-8
        raise BadRequest(f"{word[:100]!a} is no text (it is not UTF-8): give words such as horse, dog, lion") from None
    if len(word) > LONGEST_WORD:
        raise BadRequest(f"a word of {len(word)} characters: up to {LONGEST_WORD} are read")
    return word


def _quoted(word: str) -> str:
    return word if _PLAIN.fullmatch(word) else f'"{word}"'


def _written(word: Word) -> str:
    if word.token is not None:
        return f"#{word.token}"
    return word.word if _PLAIN_IN_GROUP.fullmatch(word.word) else f'"{word.word}"'


def _times(weight: float) -> str:
    return "" if weight == 1 else f"{write_number(weight)}*"


def _without_quotes(word: str) -> str:
    return word[1:-1] if len(word) > 2 and word[0] == word[-1] == '"' else word
