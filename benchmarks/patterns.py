"""How many of the tokens that patterns and messages show are words: over all layers and heads of the demo, at every
token of a few texts, for each convention and lens. A word is in a dictionary, whatever its case or a space before it.
"""

from collections import Counter
from collections.abc import Iterator
from itertools import product
from pathlib import Path
from typing import get_args

from lexiscope.precompute.errors import LexiscopeError
from lexiscope.precompute.live.engine import Engine
from lexiscope.precompute.live.wire.answers import ScoredToken
from lexiscope.precompute.live.wire.asks import Convention, PromptAsk
from lexiscope.precompute.live.wire.fields import Lens
from lexiscope.precompute.weights.checkpoint import Checkpoint

DICTIONARY = Path("/usr/share/dict/words")  # Debian's package wamerican
SHORTEST = 3  # letters of a word: the dictionary has every letter by itself
TEXTS = (
    "The capital of France is Paris, and the dog ran home.",
    "She opened the door of the old house and called for her brother.",
    "Water boils at a lower temperature in the mountains than at the sea.",
)
SIDES = ("looks_for", "found_by", "sends")


def lines(checkpoint: Checkpoint) -> Iterator[str]:
    engine, dictionary = Engine.load(checkpoint, "cpu"), words()
    yield f"{'convention':<12}{'lens':<8}" + "".join(f"{side:>10}" for side in SIDES)
    for convention, lens in product(get_args(Convention), get_args(Lens)):
        shares = readable_shares(engine, convention, lens, dictionary)
        yield f"{convention:<12}{lens:<8}" + "".join(f"{shares[side]:>9.1%} " for side in SIDES)


def words() -> frozenset[str]:
    if not DICTIONARY.exists():
        raise LexiscopeError(f"there is no {DICTIONARY}: install a list of words, such as Debian's wamerican")
    return frozenset(word.lower() for word in DICTIONARY.read_text("utf-8").split() if len(word) >= SHORTEST)


def readable_shares(engine: Engine, convention: Convention, lens: Lens, dictionary: frozenset[str]) -> dict[str, float]:
    """Return by side the share of all tokens shown that are words."""
    found, shown = Counter[str](), Counter[str]()
    asks = [PromptAsk(text=text, panel=("sheet",), convention=convention, lens=lens) for text in TEXTS]
    for answer in engine.prompts(asks):
        assert isinstance(answer, dict)
        assert answer["sheet"]
        for row, side in product(answer["sheet"]["heads"], SIDES):
            listed: list[ScoredToken] = row[side]  # type: ignore[literal-required]
            texts = [engine.words.tokenizer.decode([each["id"]]).strip().lower() for each in listed]
            found[side] += sum(each in dictionary for each in texts)
            shown[side] += len(texts)
    return {side: found[side] / shown[side] for side in SIDES}
