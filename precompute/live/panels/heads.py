"""The panel `heads`: for every head of every layer, where it looked in this run, how much it moved the stream, and what
kind of words its lists have: the token's own, the same at many positions, or words with the token's first letter.

The first position is left out of all means, where the text has more: heads that find nothing rest on it, and its stream
is far longer than that of any other. Special tokens and white space are no words; measures of words leave them out.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

import torch
from torch import Tensor

from lexiscope.precompute.live.panels import sheet
from lexiscope.precompute.live.panels.panel import Fields, Panel, PanelRun
from lexiscope.precompute.live.panels.records import LayerHeads
from lexiscope.precompute.live.weights import Weights
from lexiscope.precompute.live.wire.answers import HeadSummary, ListShares, Token
from lexiscope.precompute.live.wire.asks import PromptAsk

# A head rests if what it writes is shorter than this share of the stream. On the demo and a few texts, heads below it
# (6 to 10 %) pay 92 to 96 % of their attention to the first position, all others 47 to 72 %.
RESTS = 0.02
Lists = Sequence[Sequence[str]]  # words of a head's lists, by position
REPEATED = 3  # words of a head that are named
LISTS = ("looks_for", "found_by", "sends")


def written(w: Weights, layer: int, heads: LayerHeads) -> Iterator[Tensor]:
    """Yield what each head added to the stream, (T, d_model): through a norm of what attention writes, where the model
    has one, with the scale that it has in this run."""
    W_O, norm = w.heads("w_o", layer), w.norm_of_written(layer, "attention")
    if norm is None:
        yield from (mixed @ W for mixed, W in zip(heads.mixed, W_O, strict=True))
        return
    total = heads.mixed.transpose(0, 1).flatten(1) @ W_O.flatten(0, 1)
    bias = w.bias("w_o", layer)
    total = total if bias is None else total + bias
    centred = total - total.mean(dim=1, keepdim=True) if norm.centres else total
    scale = (centred.square().mean(dim=1, keepdim=True) + norm.eps).rsqrt()
    for mixed, W in zip(heads.mixed, W_O, strict=True):
        x = mixed @ W
        yield (x - x.mean(dim=1, keepdim=True) if norm.centres else x) * scale * norm.gain


def attention_numbers(w: Weights, layer: int, heads: LayerHeads, positions: Sequence[int]) -> Iterator[list[float]]:
    """Yield the numbers first, entropy, distance and moves of each head of a layer."""
    at = torch.tensor(positions, device=w.device)
    weights = heads.weights[:, at]  # (n_heads, n, T)
    steps = (at[:, None] - torch.arange(weights.shape[2], device=w.device)).abs()
    stream = torch.linalg.vector_norm(heads.stream[at], dim=1)
    moves = [(torch.linalg.vector_norm(x[at], dim=1) / stream).mean() for x in written(w, layer, heads)]
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


def share(flags: Iterable[bool]) -> float:
    found = [*flags]
    return sum(found) / len(found) if found else 0.0


def mean(numbers: Iterable[float]) -> float:
    found = [*numbers]
    return sum(found) / len(found) if found else 0.0


def own_share(own: Sequence[str], lists: Lists) -> float:
    """Return the share of the positions whose list has the position's own word."""
    return share(word in listed for word, listed in zip(own, lists, strict=True))


def repeated_words(lists: Lists) -> list[str]:
    """Return the words in the lists of so many positions that each of these shares them with half of the others, most
    frequent first."""
    counts = Counter(word for listed in lists for word in dict.fromkeys(listed) if is_word(word))
    least = max((len(lists) - 1) / 2, 1)
    return [word for word, count in counts.most_common() if count - 1 >= least]


def repeated_share(lists: Lists) -> float:
    """Return the mean over positions of the share of a list that are words in the lists of at least half of the other
    positions."""
    words = {*repeated_words(lists)}
    return mean(share(word in words for word in listed) for listed in lists)


def letter_share(own: Sequence[str], lists: Lists) -> float:
    """Return the mean over positions with a word of the share of a list, the word itself left out, that begins with
    the same letter."""
    pairs = [(word, [each for each in listed if each != word]) for word, listed in zip(own, lists, strict=True)]
    return mean(share(each[:1] == word[0] for each in others) for word, others in pairs if word[0].isalpha())


def letter_chance(own: Sequence[str], vocabulary: Sequence[str]) -> float:
    """Return the mean over positions with a word of the share of all tokens that begin with the same letter."""
    letters = Counter(surface[:1] for surface in vocabulary)
    return mean(letters[word[0]] / len(vocabulary) for word in own if word[0].isalpha())


def of_lists(measure: Callable[[Lists], float], lists: Mapping[str, Lists]) -> ListShares:
    return {name: measure(lists[name]) for name in LISTS}  # type: ignore[return-value]


def summaries(run: PanelRun) -> Iterator[HeadSummary]:
    w, surfaces, k, T = run.w, run.tables.surfaces, run.ask.k, len(run.record.tokens)
    after_first = [*range(1, T)] or [0]
    rows = sheet.every_head(run, "heads")
    words = [surfaces[token] for token in run.record.tokens]
    positions = [at for at in after_first if words[at]]
    own = [words[at] for at in positions]
    for layer in range(w.shape.n_layers):
        numbers = attention_numbers(w, layer, run.record.heads[layer], after_first)
        for head, (first, entropy, distance, moves) in enumerate(numbers):
            start = (layer * w.shape.n_heads + head) * T
            of_head = rows[start : start + T]
            lists = {
                name: [[surfaces[token["id"]] for token in of_head[at][name][:k]] for at in positions] for name in LISTS
            }
            repeated: dict[str, list[Token]] = {}
            for name in LISTS:
                counts = Counter(token["id"] for at in positions for token in of_head[at][name][:k])
                tokens = {surfaces[token]: token for token, _ in reversed(counts.most_common())}
                repeated[name] = [{"id": tokens[word]} for word in repeated_words(lists[name])[:REPEATED]]
            yield {
                "layer": layer, "head": head, "first": first, "entropy": entropy, "distance": distance, "moves": moves,
                "rests": moves < RESTS, "self": of_lists(lambda listed: own_share(own, listed), lists),
                "repeats": of_lists(repeated_share, lists), "repeated": repeated,  # type: ignore[typeddict-item]
                "letter": of_lists(lambda listed: letter_share(own, listed), lists),
            }  # fmt: skip


def answer(run: PanelRun) -> Fields:
    tokens, causal = run.record.tokens, run.w.shape.causal
    words = [run.tables.surfaces[token] for token in tokens[1:] or tokens]
    by_chance = letter_chance([word for word in words if word], run.tables.surfaces)
    even = mean(1 / (at + 1 if causal else len(tokens)) for at in [*range(1, len(tokens))] or [0])
    return {"heads": [*summaries(run)], "letter_chance": by_chance, "first_even": even}


def rows(w: Weights, ask: PromptAsk, tokens: int) -> int:
    return 0 if "sheet" in ask.panel else sheet.rows(w, ask, tokens)


def cost(w: Weights, _: PromptAsk, tokens: int) -> float:
    s = w.shape
    return s.n_layers * tokens * s.n_heads * (s.d_head * s.d_model + tokens)


PANEL = Panel(name="heads", keeps=frozenset({"every"}), answer=answer, rows=rows, cost=cost)
