"""Parse what people type into live pages, and write it back in one standard way: words with weights, in groups, in
pairs, or a word that stands for a token; layers, neurons and heads; and the changes of a run. Needs no torch."""

import re
from collections.abc import Iterable, Iterator
from decimal import Decimal
from functools import partial
from typing import Annotated, Any, Literal, get_args

from pydantic import Field

from lexiscope.precompute.errors import BadRequest
from lexiscope.precompute.index.index import ranges
from lexiscope.precompute.live.wire.fields import Wire, typed

# Values


# Which tokens stand for a seed word: the one with a leading space if there is one, or else the other; or always the
# tokens of the word with a space, or of the word without.
Spelling = Literal["usual", "spaced", "bare"]
ComparedWith = Literal["mean", "none"]  # what a logit is compared with: the mean over all tokens, or nothing


class Term(Wire):
    """A seed word and its weight."""

    word: str = Field(min_length=1, max_length=100)
    weight: float = Field(default=1.0, ge=-1e6, le=1e6)
    spelling: Spelling = "usual"


class Word(Wire):
    word: str = Field(min_length=1, max_length=100)
    token: int | None = Field(None, ge=0)  # the id of the token that stands for the word, if it was chosen


Group = Annotated[tuple[Word, ...], Field(min_length=1)]  # stands for the mean of its words


class WordPair(Wire):
    source: str = Field(min_length=1, max_length=100)
    target: str = Field(min_length=1, max_length=100)


class NeuronPlace(Wire):
    layer: int
    neuron: int


class NeuronSet(Wire):
    """A neuron whose coefficient is set for this run; 0 switches the neuron off."""

    kind: Literal["neuron"] = "neuron"
    layer: int
    head: None = None
    neuron: int
    value: float = 0.0
    position: int | None = None  # None: all positions


class HeadOff(Wire):
    """A head that adds nothing in this run."""

    kind: Literal["head"] = "head"
    layer: int
    head: int
    neuron: None = None
    position: int | None = None  # None: all positions


class Replaced(Wire):
    """A head whose mixed value, or a neuron whose coefficient, is replaced in this run: by its mean over positions, or
    by what it is in a second text at the same position."""

    kind: Literal["mean", "patch"]
    layer: int
    head: int | None = None
    neuron: int | None = None
    position: int | None = None  # None: all positions


Change = Annotated[NeuronSet | HeadOff, Field(discriminator="kind")]
AnyChange = NeuronSet | HeadOff | Replaced


# Numbers


LARGEST_WEIGHT = 1e6
NUMBER = r"[0-9]+(?:\.[0-9]*)?|\.[0-9]+"  # a pattern, without a sign


def checked_size(value: float) -> float:
    """Return the number; raise BadRequest if it is too large for a weight or a coefficient."""
    if abs(value) > LARGEST_WEIGHT:
        raise BadRequest(f"{value:g} is too large: numbers go up to {LARGEST_WEIGHT:g}")
    return value


def write_number(value: float) -> str:
    """Write a number as people do, without an exponent."""
    return f"{Decimal(f'{value:.12g}'):f}"


# Words


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
    """Parse `horse, dog`, `king - man + woman`, `2*dog` or `"New York"`: words and their weights."""
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
    """Write terms in the one standard way: with commas, or with signs as soon as one of them has a weight."""
    terms = tuple(terms)
    if all(term.weight == 1 for term in terms):
        return ",".join(_quoted(term.word) for term in terms)
    signs = ["-" if term.weight < 0 else "+" for term in terms]
    words = [_times(abs(term.weight)) + _quoted(term.word) for term in terms]
    rest = "".join(f" {sign} {word}" for sign, word in zip(signs[1:], words[1:], strict=True))
    return signs[0].strip("+") + words[0] + rest


def parse_groups(text: str) -> tuple[Group, ...]:
    """Parse `couch, dog`, `horse+lion` (the mean of both), `"New York"`, `#3290` (a token by its id): each group
    once."""
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
    """Write words as `parse_groups` reads them, each as a group of its own."""
    return write_groups((Word(word=word),) for word in words)


def parse_pairs(text: str) -> tuple[WordPair, ...]:
    """Parse `France>Paris, Italy>Rome`, also with -> or →; a line or a comma ends a pair. A pair counts once, however
    often it is given: a repeated pair is no more evidence."""
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
    """Parse `3290` or `#3290`, a token by its id, or `run` or `"7"`, a word; return None for an empty text."""
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
    """Parse what a logit is compared with: `mean`, `none`, or a token as `parse_token` reads it."""
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


# Layers, neurons and heads


MOST_TYPED_LAYERS = 1000  # far above what any model has
ALL_LAYERS = "all"

_LAYERS = re.compile(r"[Ll]?([0-9]{1,9})(?:[-–][Ll]?([0-9]{1,9}))?")
_NEURON = re.compile(r"[Ll]?([0-9]{1,9})(?:\.|[Nn])([0-9]{1,9})")
_HEAD = re.compile(r"[Ll]?([0-9]{1,9})(?:\.[Hh]|[Hh])([0-9]{1,9})")
_DIGITS = re.compile(r"[0-9]{1,9}")
_SET = re.compile(rf"([^:=]+)[:=]([+\-−]?(?:{NUMBER}))")


def parse_layers(text: str) -> tuple[int, ...] | None:
    """Parse `0-3`, `0,2,5`, `L8` into rising layers; return None for `all` of them."""
    if text.strip().lower() == ALL_LAYERS:
        return None
    layers: set[int] = set()
    for part in _parts(re.sub(r"\s*[-–]\s*", "-", text)):
        match = _LAYERS.fullmatch(part)
        first, last = (int(match[1]), int(match[2] or match[1])) if match else (0, -1)
        if not first <= last < MOST_TYPED_LAYERS:
            raise BadRequest(f"layers = {part[:100]!r}: write layers such as 0-3 or 0,2,5, or {ALL_LAYERS}")
        layers |= set(range(first, last + 1))
    if not layers:
        raise BadRequest(f"layers = {text[:100]!r}: write layers such as 0-3 or 0,2,5, or {ALL_LAYERS}")
    return tuple(sorted(layers))


def write_layers(layers: tuple[int, ...] | None) -> str:
    return ALL_LAYERS if layers is None else ranges(layers).replace(" ", "")


def parse_neurons(text: str) -> tuple[NeuronPlace, ...]:
    """Parse `29.1240, L25N382` into neurons, each once."""
    parts = [_neuron(part, "neurons") for part in _parts(text)]
    return tuple(NeuronPlace(layer=layer, neuron=neuron) for layer, neuron in dict.fromkeys(parts))


def write_neurons(neurons: Iterable[NeuronPlace]) -> str:
    return ",".join(f"{neuron.layer}.{neuron.neuron}" for neuron in neurons)


def parse_off(text: str) -> tuple[Change, ...]:
    """Parse `10.2361, 8.h11`, `8.h11@3`: neurons and heads that are switched off, at all positions or at one."""
    places = _places("off", text)
    return tuple(dict.fromkeys(HeadOff(**place) if "head" in place else NeuronSet(**place) for place in places))


def parse_replaced(kind: Literal["mean", "patch"], text: str) -> tuple[Replaced, ...]:
    """Parse what `parse_off` parses: neurons and heads that get their mean, or are patched."""
    return tuple(dict.fromkeys(Replaced(kind=kind, **place) for place in _places(kind, text)))


def _places(argument: str, text: str) -> Iterator[dict[str, Any]]:
    """Yield the layer, the head or neuron, and the position of each part of a text."""
    for part in _parts(text):
        name, position = _position(part, argument)
        if found := _HEAD.fullmatch(name):
            yield {"layer": int(found[1]), "head": int(found[2]), "position": position}
        else:
            layer, neuron = _neuron(name, argument)
            yield {"layer": layer, "neuron": neuron, "position": position}


def write_off(changes: Iterable[AnyChange]) -> str:
    """Write changes as `off`, `mean` and `patch` have them."""
    return ",".join(map(off_name, changes))


def parse_set(text: str) -> tuple[Change, ...]:
    """Parse `10.5:2.5`, `10.5:2.5@3`: neurons whose coefficient is set, at all positions or at one. If one is set twice
    at a position, the last value counts."""
    changes: dict[tuple[int, int, int | None], NeuronSet] = {}
    for part in _parts(text):
        setting, position = _position(part, "set")
        match = _SET.fullmatch(setting)
        if not match:
            raise BadRequest(f"set = {part[:100]!r}: write layer.neuron:coefficient, such as 10.2361:2.5")
        layer, neuron = _neuron(match[1], "set")
        value = checked_size(float(match[2].replace("−", "-")))
        changes[layer, neuron, position] = NeuronSet(layer=layer, neuron=neuron, value=value, position=position)
    return tuple(changes.values())


def write_set(changes: Iterable[Change]) -> str:
    return ",".join(
        f"{change.layer}.{change.neuron}:{write_number(change.value)}{_at(change.position)}"
        for change in changes
        if isinstance(change, NeuronSet)
    )


def off_name(change: AnyChange) -> str:
    """Return the name of a neuron or head as the argument `off` writes it."""
    number = change.neuron if change.head is None else f"h{change.head}"
    return f"{change.layer}.{number}{_at(change.position)}"


def without_change(changes: str | None, name: str) -> str | None:
    """Return the argument `off`, `set`, `mean` or `patch` without the neuron or head of this name; None if nothing is
    left."""
    return ",".join(part for part in (changes or "").split(",") if _name_of(part) != name) or None


def moved_change(changes: str | None, name: str, position: int | None) -> str | None:
    """Return the argument `off`, `set`, `mean` or `patch` with the change of the neuron or head of this name moved to a
    position, or to all if `position` is None."""
    parts = [part.partition("@")[0] + _at(position) if _name_of(part) == name else part
             for part in (changes or "").split(",")]  # fmt: skip
    return ",".join(dict.fromkeys(parts)) or None


def _parts(text: str) -> list[str]:
    """Split a text at spaces and commas."""
    return text.replace(",", " ").split()


def _neuron(part: str, argument: str) -> tuple[int, int]:
    match = _NEURON.fullmatch(part)
    if not match:
        raise BadRequest(f"{argument} = {part[:100]!r}: a neuron is layer.neuron such as 10.2361, a head 8.h11")
    return int(match[1]), int(match[2])


def _position(part: str, argument: str) -> tuple[str, int | None]:
    """Split a change into its name and its position: `8.h11@3` -> `8.h11` and 3."""
    name, mark, position = part.partition("@")
    if mark and not _DIGITS.fullmatch(position):
        raise BadRequest(f"{argument} = {part[:100]!r}: after @ stands a token's position, from 0, as in {name[:50]}@3")
    return name, int(position) if mark else None


def _name_of(part: str) -> str:
    """Return the name of a change without its coefficient: `10.5:2.5@3` -> `10.5@3`."""
    setting, mark, position = part.partition("@")
    return setting.partition(":")[0] + mark + position


def _at(position: int | None) -> str:
    return "" if position is None else f"@{position}"


# The arguments of asks: text outside of Python, these values inside


Terms = Annotated[tuple[Term, ...], *typed(parse_terms, write_terms)]
Groups = Annotated[tuple[Group, ...], *typed(parse_groups, write_groups)]
WordPairs = Annotated[tuple[WordPair, ...], *typed(parse_pairs, write_pairs, several=True)]
OneToken = Annotated[Word | None, *typed(parse_token, write_token)]
Against = Annotated[Word | ComparedWith, *typed(parse_against, write_against)]
Layers = Annotated[tuple[int, ...] | None, *typed(parse_layers, write_layers)]  # None: all layers
Neurons = Annotated[tuple[NeuronPlace, ...], *typed(parse_neurons, write_neurons, several=True)]
Off = Annotated[tuple[Change, ...], *typed(parse_off, write_off, several=True)]
Set = Annotated[tuple[NeuronSet, ...], *typed(parse_set, write_set, several=True)]
Means = Annotated[tuple[Replaced, ...], *typed(partial(parse_replaced, "mean"), write_off, several=True)]
Patches = Annotated[tuple[Replaced, ...], *typed(partial(parse_replaced, "patch"), write_off, several=True)]
