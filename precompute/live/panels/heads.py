"""The panel `heads`: for every head of every layer, where it looked in this run, how much it moved the stream, and what
kind of words its lists have: the token's own, the same at many positions, or words with the token's first letter.

The first position is left out of all means, where the text has more: heads that find nothing rest on it, and its stream
is far longer than that of any other. Special tokens and white space are no words; measures of words leave them out.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from statistics import fmean

import torch

from lexiscope.precompute.live.panels import sheet
from lexiscope.precompute.live.panels.head_vectors import added
from lexiscope.precompute.live.panels.panel import Fields, Panel, PanelRun
from lexiscope.precompute.live.panels.records import LayerHeads
from lexiscope.precompute.live.weights import Weights
from lexiscope.precompute.live.wire.answers import HEAD_LISTS, HeadSummary, Token
from lexiscope.precompute.live.wire.asks import PromptAsk

# A head rests if what it writes is shorter than this share of the stream. On the demo and a few texts, heads below it
# (6 to 10 %) pay 92 to 96 % of their attention to the first position, all others 47 to 72 %.
RESTS = 0.02
Lists = Sequence[Sequence[str]]  # words of a head's lists, by position
REPEATED = 3  # words of a head that are named


def after_first(n: int) -> Sequence[int]:
    """Return the positions that count in a text of n tokens."""
    return range(1, n) or [0]


def attention_numbers(w: Weights, layer: int, heads: LayerHeads) -> Iterator[list[float]]:
    """Yield the numbers first, entropy, distance and moves of each head of a layer."""
    at = torch.tensor(after_first(len(heads.states)), device=w.device)
    weights = heads.weights[:, at]  # (n_heads, n, T)
    steps = (at[:, None] - torch.arange(weights.shape[2], device=w.device)).abs()
    stream = torch.linalg.vector_norm(heads.stream[at], dim=1)
    moves = [(torch.linalg.vector_norm(x[at], dim=1) / stream).mean() for x in added(w, layer, heads.mixed)]
    columns = (
        weights[:, :, 0].mean(dim=1),
        torch.special.entr(weights).sum(dim=2).mean(dim=1),
        (weights * steps).sum(dim=2).mean(dim=1),
        torch.stack(moves),
    )
    yield from torch.stack(columns, dim=1).tolist()


def is_word(surface: str) -> bool:
    """Return True if a token without case and surrounding space is letters, of ASCII more than one."""
    return surface.isalpha() and (len(surface) > 1 or not surface.isascii())


def mean(numbers: Iterable[float]) -> float:
    return fmean([*numbers] or [0.0])


def own_share(own: Sequence[str], lists: Lists) -> float:
    """Return the share of the positions whose list has the position's own word."""
    return mean(word in listed for word, listed in zip(own, lists, strict=True))


def repeated_words(lists: Lists) -> list[str]:
    """Return the words in the lists of so many positions that each of these shares them with half of the others, most
    frequent first."""
    counts = Counter(word for listed in lists for word in dict.fromkeys(listed) if is_word(word))
    least = max((len(lists) - 1) / 2, 1)
    return [word for word, count in counts.most_common() if count - 1 >= least]


def repeated_tokens(ids: Sequence[Sequence[int]], lists: Lists, surfaces: Sequence[str]) -> list[Token]:
    """Return the words that repeat most, each as its most frequent token."""
    counts = Counter(token for listed in ids for token in listed)
    tokens = {surfaces[token]: token for token, _ in reversed(counts.most_common())}
    return [{"id": tokens[word]} for word in repeated_words(lists)[:REPEATED]]


def repeated_share(lists: Lists) -> float:
    """Return the mean over positions of the share of a list that are words in the lists of at least half of the other
    positions."""
    words = {*repeated_words(lists)}
    return mean(mean(word in words for word in listed) for listed in lists)


def letter_share(own: Sequence[str], lists: Lists) -> float:
    """Return the mean over positions with a word of the share of a list, the word itself left out, that begins with
    the same letter."""
    pairs = [(word, [each for each in listed if each != word]) for word, listed in zip(own, lists, strict=True)]
    return mean(mean(each[:1] == word[0] for each in others) for word, others in pairs if word[0].isalpha())


def letter_chance(own: Sequence[str], vocabulary: Sequence[str]) -> float:
    """Return the mean over positions with a word of the share of all tokens that begin with the same letter."""
    letters = Counter(surface[:1] for surface in vocabulary)
    return mean(letters[word[0]] / len(vocabulary) for word in own if word[0].isalpha())


def summaries(run: PanelRun, positions: Sequence[int], own: Sequence[str]) -> Iterator[HeadSummary]:
    """Yield the numbers of each head; the positions that have words, and these words, are given."""
    w, surfaces, k, T = run.w, run.tables.surfaces, run.ask.k, len(run.record.tokens)
    rows = sheet.every_head(run, "heads")
    for layer in range(w.shape.n_layers):
        numbers = attention_numbers(w, layer, run.record.heads[layer])
        for head, (first, entropy, distance, moves) in enumerate(numbers):
            start = (layer * w.shape.n_heads + head) * T
            ids = {
                name: [[token["id"] for token in rows[start + at][name][:k]] for at in positions] for name in HEAD_LISTS
            }
            lists = {name: [[surfaces[token] for token in listed] for listed in ids[name]] for name in HEAD_LISTS}
            yield {
                "layer": layer, "head": head, "first": first, "entropy": entropy, "distance": distance, "moves": moves,
                "rests": moves < RESTS, "self": {name: own_share(own, of) for name, of in lists.items()},
                "repeats": {name: repeated_share(of) for name, of in lists.items()},
                "repeated": {name: repeated_tokens(ids[name], of, surfaces) for name, of in lists.items()},
                "letter": {name: letter_share(own, of) for name, of in lists.items()},
            }  # fmt: skip


def answer(run: PanelRun) -> Fields:
    surfaces, tokens, causal = run.tables.surfaces, run.record.tokens, run.w.shape.causal
    after = after_first(len(tokens))
    positions = [at for at in after if surfaces[tokens[at]]]
    own = [surfaces[tokens[at]] for at in positions]
    return {
        "heads": [*summaries(run, positions, own)],
        "letter_chance": letter_chance(own, surfaces),
        "first_even": mean(1 / (at + 1 if causal else len(tokens)) for at in after),
    }


def rows(w: Weights, ask: PromptAsk, tokens: int) -> int:
    return 0 if "sheet" in ask.panel else sheet.rows(w, ask, tokens)


def cost(w: Weights, _: PromptAsk, tokens: int) -> float:
    s = w.shape
    return s.n_layers * tokens * s.n_heads * (s.d_head * s.d_model + tokens)


PANEL = Panel(name="heads", keeps=frozenset({"every"}), answer=answer, rows=rows, cost=cost)
