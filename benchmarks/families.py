"""A table of all families on small random models: stored lists and pairs against brute force, a run and its panels
against `transformers`, tokens against its tokenizer. Not a measure of speed.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import cast

import torch
from torch import Tensor

from lexiscope.precompute.build.job import build
from lexiscope.precompute.build.options import BuildOptions
from lexiscope.precompute.build.progress import Progress
from lexiscope.precompute.index.index import Index
from lexiscope.precompute.live.engine import Engine
from lexiscope.precompute.live.run import Watcher, run
from lexiscope.precompute.live.wire.answers import LikelyToken, PanelName, PromptAnswer
from lexiscope.precompute.live.wire.asks import PromptAsk
from lexiscope.precompute.shape import MATRICES
from lexiscope.precompute.verify.sample import check_sample
from lexiscope.precompute.weights.architectures import describe
from lexiscope.precompute.weights.architectures.base import Model, Rotation
from lexiscope.precompute.weights.checkpoint import Checkpoint
from tests.support.families import FAMILIES
from tests.support.models import hf
from tests.support.nets import Net, Run
from tests.support.tokenizers import TEXT

COLUMNS = ("family", "lists", "pairs", "vectors", "run", "neurons", "evolution", "patterns", "tokens")
PROMPT = "The dog and the lion saw the horse in Paris"
ALL = 1_000_000  # a sample of so many is everything


def lines(scratch: Path) -> Iterator[str]:
    """Yield the table. Lists and pairs: how many of what was checked are wrong. Vectors: attention weights, mixed
    values and FF outputs made from them. Run: streams and attention in a batch with padding. Panels: what they show.
    Tokens: texts encoded otherwise.
    """
    yield _line(COLUMNS)
    for name, family in FAMILIES.items():
        folder = family.save(scratch / name)
        lists, pairs = _stored(folder, scratch / "data")
        yield _line((name, lists, pairs, *_live(folder), _tokens(folder)))


def _stored(folder: Path, data: Path) -> tuple[str, str]:
    checkpoint = Checkpoint.open(folder)
    index = build(checkpoint, data, BuildOptions(k=20, pairs=50), Progress())
    results = list(check_sample(Index.open(index), describe(checkpoint), sample=ALL, seed=1, rows=ALL))
    of_heads = [bool(fault) for what, fault in results if any(f" {matrix} head" in what for matrix in MATRICES)]
    others = [bool(fault) for what, fault in results if not any(f" {matrix} head" in what for matrix in MATRICES)]
    return tuple(f"{sum(faults)} of {len(faults)}" for faults in (others, of_heads))  # type: ignore[return-value]


class _Compare(Watcher):
    """Keeps how far the first prompt of a run is from that of `transformers`."""

    def __init__(self, expected: Run) -> None:
        self.expected, self.off, self.T = expected, 0.0, len(expected.reads[0])

    def stream(self, layer: int, after: str, x: Tensor) -> None:
        self.off = max(self.off, _off(x[0, : self.T], self.expected.streams[layer, after]))

    def attention(self, layer: int, x: Tensor, weights: Tensor, z: Tensor, rotation: Rotation | None) -> None:  # noqa: ARG002
        self.off = max(self.off, _off(weights[0, :, : self.T, : self.T], self.expected.attentions[layer]))


def _live(folder: Path) -> list[str]:
    engine, net, model = Engine.load(Checkpoint.open(folder), "cpu"), Net(folder), describe(Checkpoint.open(folder))
    tokens, s = engine.words.prompt(PROMPT), engine.shape
    expected = net.run(tokens)
    compare, longer = _Compare(expected), tokens + tokens[-5:]
    padded = torch.tensor([tokens + (engine.words.padding,) * 5, longer])
    neuron = s.d_mlp // 2
    panels: tuple[PanelName, ...] = ("evolution", "neurons", "patterns")
    ask = PromptAsk(text=PROMPT, panel=panels, k=50, neuron=neuron, layer=1, convention="exact", position=4)
    (answer,) = engine.prompts([ask])
    assert isinstance(answer, dict)
    assert answer["neuron"] is not None
    with torch.inference_mode():
        run(engine.weights, padded, [len(tokens), len(longer)], [(), ()], compare)
    coefficients = _off(torch.tensor(answer["neuron"]["coefficients"]), expected.coefficients[1][:, neuron])
    evolution = None if expected.logits is None else _evolution_off(net, expected, answer)
    patterns = _patterns_off(net, model, expected, answer)
    figures = (_vectors_off(net, model, expected), compare.off, coefficients, evolution, patterns)
    return ["no head" if figure is None else f"{figure:.0e}" for figure in figures]


def _vectors_off(net: Net, model: Model, expected: Run) -> float:
    off, s = 0.0, model.shape
    at = torch.arange(len(expected.reads[0]))

    def bias(layer: int, kind: str) -> Tensor:
        found = model.in_memory(net.net).bias(layer, kind)
        return torch.zeros(1) if found is None else found

    for layer in range(s.n_layers):
        x, weights = expected.reads[layer], expected.attentions[layer]
        scores = net.scores(model, layer, x, at, x, at, expected)
        off = max(off, _off(scores.masked_fill(weights == 0, -torch.inf).softmax(dim=-1), weights))
        values = (x @ model.vectors(layer, "w_v").T + bias(layer, "w_v")).view(len(x), -1, s.d_head).transpose(0, 1)
        mixed = (weights @ values.repeat_interleave(s.n_heads // s.n_kv_heads, dim=0)).transpose(0, 1).flatten(1)
        written = mixed @ model.vectors(layer, "w_o") + bias(layer, "w_o")
        off = max(off, _off(written, expected.attended[layer]))
        output = expected.coefficients[layer] @ model.vectors(layer, "ff_value") + bias(layer, "ff_value")
        off = max(off, _off(output, expected.written[layer]))
    return off


def _patterns_off(net: Net, model: Model, expected: Run, answer: PromptAnswer) -> float:
    """Return how far the scores of all tokens that the exact convention shows are from attention scores of their bare
    embeddings."""
    off, at = 0.0, torch.tensor([answer["position"]])
    x = expected.reads[answer["layer"]][at]
    for head in answer["patterns"] or ():
        ids = [token["id"] for token in head["pattern"]]
        states = net.norm("attention", answer["layer"])(model.W_E[ids] * net.embedding_scale)
        there = torch.tensor([head["messages"][0]["position"]]).expand(len(ids))
        scores = net.scores(model, answer["layer"], x, at, states, there, expected)[head["head"], 0]
        off = max(off, _off(torch.tensor([token["score"] for token in head["pattern"]]), scores))
    return off


def _evolution_off(net: Net, expected: Run, answer: PromptAnswer) -> float:
    """Return how far the probabilities that the panel shows are from those of `transformers`."""
    off = 0.0
    for row in answer["evolution"] or ():
        p = net.logits(expected.streams[row["layer"], row["after"]]).softmax(dim=1)
        for position, cell in enumerate(row["cells"]):
            found = torch.tensor([likely["p"] for likely in cast(list[LikelyToken], cell)])
            off = max(off, _off(found, p[position, [likely["id"] for likely in cell]]))
    return off


def _tokens(folder: Path) -> str:
    texts = [*TEXT.splitlines(), PROMPT, "<script> Ünïcode  ##ing"]
    tokenizer = Engine.load(Checkpoint.open(folder), "cpu").words
    theirs = hf.AutoTokenizer.from_pretrained(folder, local_files_only=True)
    wrong = sum(list(tokenizer.prompt(text)) != theirs(text)["input_ids"] for text in texts)
    return f"{wrong} of {len(texts)}"


def _off(found: Tensor, expected: Tensor) -> float:
    return float((found - expected).abs().max())


def _line(cells: tuple[str, ...]) -> str:
    first, *others = cells
    return "  ".join([f"{first:<15}", *(f"{cell:>12}" for cell in others)])
