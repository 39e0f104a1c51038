"""What visitors type into live pages, read and written back in one way: words with weights, groups of words, layers,
pairs, changes to a run."""

import re
from collections.abc import Iterable

from precompute.errors import BadRequest
from precompute.index.index import ranges
from precompute.live.wire import Group, HeadOff, Intervention, NeuronSet, Term, Word, WordPair

LONGEST_WORD = 100
LARGEST = 1e6  # of weights and coefficients
MOST_LAYERS = 1000  # far above what any model has
ALL_LAYERS = "all"

_NUMBER = r"[0-9]+(?:\.[0-9]*)?|\.[0-9]+"
_PART = re.compile(
    rf"""
    (?P<gap>[\s,]+)
    | (?P<sign>[+\-−])
    | (?P<times>{_NUMBER})\s*[*×·]
    | "(?P<quoted>[^"]*)"
    | (?P<word>[^\s,"][^\s,]*)
    """,
    re.VERBOSE,
)
_PLAIN = re.compile(rf"""(?!{_NUMBER}\s*[*×·])[^\s,"+\-−][^\s,]*""")
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
_WEIGHTED = re.compile(rf"[\-−]|(?:{_NUMBER})[*×·]")
_PLAIN_IN_GROUP = re.compile(rf"""(?!#[0-9]{{1,9}}$|{_WEIGHTED.pattern})[^\s,"+][^\s,+]*""")
_LAYERS = re.compile(r"[Ll]?([0-9]{1,9})(?:[-–][Ll]?([0-9]{1,9}))?")
_NEURON = re.compile(r"[Ll]?([0-9]{1,9})(?:\.|[Nn])([0-9]{1,9})")
_HEAD = re.compile(r"[Ll]?([0-9]{1,9})(?:\.[Hh]|[Hh])([0-9]{1,9})")
_SET = re.compile(rf"([^:=]+)[:=]([+\-−]?(?:{_NUMBER}))")


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
                terms.append(Term(word=_word(part[part.lastgroup], text), weight=_weight(weight)))
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


def _word_of_group(part: re.Match[str], text: str) -> Word:
    if part["token"] is not None:
        return Word(word=f"#{int(part['token'])}", token=int(part["token"]))
    if part["word"] and _WEIGHTED.match(part["word"]):
        raise BadRequest(
            f"words = {part['word'][:100]!r}: here words are not subtracted or weighed, only joined, as in horse+lion. "
            'Put a word that begins so in quotes: "-ing"'
        )
    return Word(word=_word(part["word"] or part["quoted"], text))


def write_groups(groups: Iterable[Group]) -> str:
    return ",".join("+".join(map(_written, group)) for group in groups)


def write_words(words: Iterable[str]) -> str:
    """Words as groups of one."""
    return write_groups((Word(word=word),) for word in words)


def parse_layers(text: str) -> tuple[int, ...] | None:
    """`0-3`, `0,2,5`, `L8`: layers, rising; None: `all` of them."""
    if text.strip().lower() == ALL_LAYERS:
        return None
    layers: set[int] = set()
    for part in re.split(r"[\s,]+", re.sub(r"\s*[-–]\s*", "-", text.strip())):
        if not part:
            continue
        match = _LAYERS.fullmatch(part)
        first, last = (int(match[1]), int(match[2] or match[1])) if match else (0, -1)
        if not first <= last < MOST_LAYERS:
            raise BadRequest(f"layers = {part[:100]!r}: write layers such as 0-3 or 0,2,5, or {ALL_LAYERS}")
        layers |= set(range(first, last + 1))
    if not layers:
        raise BadRequest(f"layers = {text[:100]!r}: write layers such as 0-3 or 0,2,5, or {ALL_LAYERS}")
    return tuple(sorted(layers))


def write_layers(layers: tuple[int, ...] | None) -> str:
    return ALL_LAYERS if layers is None else ranges(layers).replace(" ", "")


def parse_pairs(text: str) -> tuple[WordPair, ...]:
    """`France>Paris, Italy>Rome`: also with -> or →; a line or a comma ends a pair."""
    pairs = []
    for part in re.split(r"[,;\n]", text):
        if not part.strip():
            continue
        sides = re.split(r"-?>|→", part)
        if len(sides) != 2:
            raise BadRequest(f"pairs = {part.strip()[:100]!r}: a pair is two words such as France>Paris")
        source, target = (_word(side.strip(), part) for side in sides)
        pairs.append(WordPair(source=source, target=target))
    return tuple(pairs)


def write_pairs(pairs: Iterable[WordPair]) -> str:
    return ",".join(f"{pair.source}>{pair.target}" for pair in pairs)


def parse_off(text: str) -> tuple[Intervention, ...]:
    """`10.2361, 8.h11`: neurons and heads that are switched off."""
    changes: list[Intervention] = []
    for part in re.split(r"[\s,]+", text.strip()):
        if found := _HEAD.fullmatch(part):
            changes.append(HeadOff(layer=int(found[1]), head=int(found[2])))
        elif part:
            layer, neuron = _neuron(part, "off")
            changes.append(NeuronSet(layer=layer, neuron=neuron))
    return tuple(dict.fromkeys(changes))


def parse_set(text: str) -> tuple[Intervention, ...]:
    """`10.5:2.5`: neurons whose coefficient is set; of one that is set twice, the last."""
    changes: dict[tuple[int, int], NeuronSet] = {}
    for part in re.split(r"[\s,]+", text.strip()):
        if not part:
            continue
        match = _SET.fullmatch(part)
        if not match:
            raise BadRequest(f"set = {part[:100]!r}: write layer.neuron:coefficient, such as 10.2361:2.5")
        layer, neuron = _neuron(match[1], "set")
        value = _weight(float(match[2].replace("−", "-")))
        changes[layer, neuron] = NeuronSet(layer=layer, neuron=neuron, value=value)
    return tuple(changes.values())


def write_off(changes: Iterable[Intervention]) -> str:
    return ",".join(map(off_name, changes))


def write_set(changes: Iterable[Intervention]) -> str:
    return ",".join(
        f"{change.layer}.{change.neuron}:{change.value:.12g}" for change in changes if isinstance(change, NeuronSet)
    )


def off_name(change: Intervention) -> str:
    """The name of a neuron or head as the argument `off` writes it."""
    return f"{change.layer}.h{change.head}" if isinstance(change, HeadOff) else f"{change.layer}.{change.neuron}"


def without_change(changes: str | None, name: str) -> str | None:
    """What `off` or `set` asks for, less one neuron or head by its name; None if nothing is left."""
    return ",".join(part for part in (changes or "").split(",") if part.partition(":")[0] != name) or None


def _neuron(part: str, argument: str) -> tuple[int, int]:
    match = _NEURON.fullmatch(part)
    if not match:
        raise BadRequest(f"{argument} = {part[:100]!r}: a neuron is layer.neuron such as 10.2361, a head 8.h11")
    return int(match[1]), int(match[2])


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


def _weight(value: float) -> float:
    if abs(value) > LARGEST:
        raise BadRequest(f"{value:g} is too large: numbers go up to {LARGEST:g}")
    return value


def _quoted(word: str) -> str:
    return word if _PLAIN.fullmatch(word) else f'"{word}"'


def _written(word: Word) -> str:
    if word.token is not None:
        return f"#{word.token}"
    return word.word if _PLAIN_IN_GROUP.fullmatch(word.word) else f'"{word.word}"'


def _times(weight: float) -> str:
    return "" if weight == 1 else f"{weight:.12g}*"
