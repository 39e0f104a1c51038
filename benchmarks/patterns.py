"""How many of the tokens that patterns and messages show are words: over all layers and heads of the demo, at every
token of a few texts, for each convention and lens. A word is in a dictionary, whatever its case or a space before it.
"""

from collections import Counter
from collections.abc import Iterable, Iterator
from itertools import product
from pathlib import Path
from typing import get_args

import torch
from torch import Tensor

from lexiscope.precompute.errors import LexiscopeError
from lexiscope.precompute.live.engine import Engine
from lexiscope.precompute.live.panels.patterns import patterns_by_token
from lexiscope.precompute.live.panels.records import Record
from lexiscope.precompute.live.panels.token_rows import TokenRows, Vocabularies
from lexiscope.precompute.live.run import Watcher, run
from lexiscope.precompute.live.wire.answers import ScoredToken
from lexiscope.precompute.live.wire.asks import Convention, PromptAsk
from lexiscope.precompute.live.wire.fields import Lens
from lexiscope.precompute.weights.architectures.base import Rotation
from lexiscope.precompute.weights.checkpoint import Checkpoint

DICTIONARY = Path("/usr/share/dict/words")  # Debian's package wamerican
SHORTEST = 3  # letters of a word: the dictionary has every letter by itself
TEXTS = (
    "The capital of France is Paris, and the dog ran home.",
    "She opened the door of the old house and called for her brother.",
    "Water boils at a lower temperature in the mountains than at the sea.",
)
SIDES = ("pattern", "found_by", "message")


def lines(checkpoint: Checkpoint) -> Iterator[str]:
    engine, dictionary = Engine.load(checkpoint, "cpu"), words()
    w = engine.weights
    reads = TokenRows.of(w, w.W_E)
    vocabularies = reads, reads if w.shape.tied else TokenRows.of(w, w.W_U)
    with torch.inference_mode():
        records = [record for text in TEXTS for record in records_of(engine, text)]
        yield f"{'convention':<12}{'lens':<8}" + "".join(f"{side:>10}" for side in SIDES)
        for convention, lens in product(get_args(Convention), get_args(Lens)):
            shares = readable_shares(engine, records, convention, lens, vocabularies, dictionary)
            yield f"{convention:<12}{lens:<8}" + "".join(f"{shares[side]:>9.1%} " for side in SIDES)


def words() -> frozenset[str]:
    if not DICTIONARY.exists():
        raise LexiscopeError(f"there is no {DICTIONARY}: install a list of words, such as Debian's wamerican")
    return frozenset(word.lower() for word in DICTIONARY.read_text("utf-8").split() if len(word) >= SHORTEST)


def records_of(engine: Engine, text: str) -> list[Record]:
    """Keeps what patterns need of one run, for every layer."""
    tokens = engine.words.prompt(text)
    records: list[Record] = []

    class Keep(Watcher):
        def attention(self, layer: int, x: Tensor, weights: Tensor, z: Tensor, rotation: Rotation | None) -> None:  # noqa: ARG002
            record = Record(tokens, (), len(tokens) - 1, layer, frozenset())
            record.chosen_states, record.chosen_weights, record.chosen_rotation = x[0], weights[0], rotation
            records.append(record)

    run(engine.weights, torch.tensor([tokens]), [len(tokens)], [()], Keep())
    return records


def readable_shares(
    engine: Engine, records: Iterable[Record], convention: Convention, lens: Lens, vocabularies: Vocabularies,
    dictionary: frozenset[str],
) -> dict[str, float]:  # fmt: skip
    """Return by side the share of all tokens shown that are words."""
    found, shown = Counter[str](), Counter[str]()
    for record, head in product(records, range(engine.shape.n_heads)):
        ask = PromptAsk(text="-", head=head, rows="tokens", convention=convention, lens=lens)
        for token, side in product(patterns_by_token(engine.weights, record, ask, vocabularies), SIDES):
            listed: list[ScoredToken] = token[side]  # type: ignore[literal-required]
            texts = [engine.words.tokenizer.decode([each["id"]]).strip().lower() for each in listed]
            found[side] += sum(each in dictionary for each in texts)
            shown[side] += len(texts)
    return {side: found[side] / shown[side] for side in SIDES}
