"""Stitch one model to another without training (section 5.2 of the paper): states of A after each of its layers,
multiplied with the kernel, go through the last layers of B and its head, which predicts next tokens or labels."""

import math
from collections import Counter
from collections.abc import Callable, Sequence

import torch
from torch import Tensor

from lexiscope.precompute.compare.measures import Labels, NextTokens, Tally
from lexiscope.precompute.compare.texts import Cut, Cutter
from lexiscope.precompute.errors import BadRequest
from lexiscope.precompute.index.stitching import AfterLayer, Measured, StitchingRun, WithoutKernel
from lexiscope.precompute.live.batches import of_like_length
from lexiscope.precompute.live.run import Watcher, padded, run
from lexiscope.precompute.live.texts import Texts
from lexiscope.precompute.live.weights import Weights
from lexiscope.precompute.project.embedding import Float64
from lexiscope.precompute.weights.architectures.base import Model

# Layers of B, texts, and tokens of a text, unless others are asked for.
LAST_LAYERS, STITCHED_TEXTS, STITCHED_TOKENS = 3, 500, 256

Tick = Callable[[int, int], None]  # called with how many texts are done, and how many there are


@torch.inference_mode()
def stitch(
    a: Model, b: Model, kernel: Float64, texts: Texts, device: torch.device, *, last: int = LAST_LAYERS,
    limit: int = STITCHED_TEXTS, length: int = STITCHED_TOKENS, tick: Tick = lambda *_: None,
) -> StitchingRun:  # fmt: skip
    """Measure what B predicts from the states of A after each layer, multiplied with the kernel (d_A, d_B). Raise
    BadRequest if B has no head that predicts this, or if the tokenizers of A and B cut no text alike."""
    right = (NextTokens if texts.labels is None else Labels)(b, last, device)
    if a.lacks_unembedding:
        raise BadRequest(
            f"{a.checkpoint.name} is a classifier without its W_U, which cannot run here: give the model that it was "
            "made from"
        )
    weights = Weights.load(a, device)
    length = min(length, weights.n_positions, right.n_positions)
    chosen = texts.spread(limit)
    cutter = Cutter(a, b, length)
    cuts = [cutter.cut(text) for text in chosen.texts]
    labels = chosen.labels or (None,) * len(cuts)
    answered = [(cut, right.answers(cut, label)) for cut, label in zip(cuts, labels, strict=True) if cut]
    jobs = [(cut, answers) for cut, answers in answered if answers]
    if not jobs:
        raise BadRequest(_none_left(a, b, chosen, len(answered)))
    K = torch.from_numpy(kernel).float().to(device)
    a_weights, b_weights = (model.checkpoint.weights_hash() for model in (a, b))
    has_control = a.shape.d_model == b.shape.d_model and a_weights != b_weights
    own, done = Tally(), 0
    stitched, control = ([Tally() for _ in range(a.shape.n_layers + 1)] for _ in range(2))
    tick(0, len(jobs))
    for group in of_like_length([len(cut.a) for cut, _ in jobs], [1] * len(jobs)):
        batch = [jobs[at][0] for at in group]
        wanted = torch.tensor([answer for at in group for answer in jobs[at][1]], device=device)
        tokens = padded([cut.b for cut in batch], right.padding(batch), device)
        with right.layers.read() as read:
            right.add(own, tokens, batch, wanted)
        lent = read()
        for at, states in enumerate(_states(weights, batch, tokens.shape[1])):
            with right.layers.reading(_lend(states @ K, lent, batch)):
                right.add(stitched[at], tokens, batch, wanted)
            if has_control:
                with right.layers.reading(_lend(states, lent, batch)):
                    right.add(control[at], tokens, batch, wanted)
        done += len(group)
        tick(done, len(jobs))
    embedding, by_layer = _measured(stitched)
    without = None
    if has_control:
        embedding_itself, by_layer_itself = _measured(control)
        without = WithoutKernel(by_layer=by_layer_itself, embedding=embedding_itself)
    return StitchingRun(
        texts=texts.name,
        sha256=texts.sha256,
        last=last,
        measure="next" if texts.labels is None else "label",
        count=len(jobs),
        skipped=len(cuts) - len(jobs),
        predictions=own.count,
        length=length,
        by_layer=by_layer,
        embedding=embedding,
        own=own.measured(),
        chance=_chance([answer for _, answers in jobs for answer in answers], right.classes),
        identity=without,
        a_weights_sha256=a_weights,
        b_weights_sha256=b_weights,
    )


def _measured(tallies: Sequence[Tally]) -> tuple[Measured, tuple[AfterLayer, ...]]:
    embedding, *layers = (tally.measured() for tally in tallies)
    return embedding, tuple(AfterLayer(layer=at, **measured.model_dump()) for at, measured in enumerate(layers))


class _States(Watcher):
    """Keep the stream that A's first layer reads, and the stream after each layer, (texts, T, d_A) each."""

    def __init__(self) -> None:
        self.streams: list[Tensor] = []

    def stream(self, layer: int, after: str, x: Tensor) -> None:  # noqa: ARG002
        if after != "attention":
            self.streams.append(x)


def _states(weights: Weights, cuts: Sequence[Cut], T: int) -> list[Tensor]:
    """Return the input of A's first layer, then A's stream after each layer, at the positions of B's tokens: (texts, T,
    d_A) each."""
    watcher = _States()
    tokens = padded([cut.a for cut in cuts], weights.padding, weights.device)
    run(weights, tokens, [len(cut.a) for cut in cuts], [()] * len(cuts), watcher)
    at = torch.zeros(len(cuts), T, dtype=torch.long, device=weights.device)  # positions of B's tokens among those of A
    for row, cut in enumerate(cuts):
        at[row, cut.lent : len(cut.b)] = torch.arange(cut.kept.start, cut.kept.stop)
    rows = torch.arange(len(cuts), device=weights.device)[:, None]
    return [stream[rows, at] for stream in watcher.streams]


def _lend(states: Tensor, own: Tensor, cuts: Sequence[Cut]) -> Tensor:
    """Return `states` (texts, T, d_B), with B's `own` states at special tokens that have no counterpart in A."""
    for row, cut in enumerate(cuts):
        states[row, : cut.lent] = own[row, : cut.lent]
    return states


def _chance(answers: Sequence[int], classes: int) -> Measured:
    """Return what chance would give: the accuracy of always giving the most frequent answer, and the loss if all of B's
    tokens or labels are equally likely."""
    _, most = Counter(answers).most_common(1)[0]
    return Measured(accuracy=most / len(answers), loss=math.log(classes))


def _none_left(a: Model, b: Model, texts: Texts, alike: int) -> str:
    names, count = f"{a.checkpoint.name} and {b.checkpoint.name}", len(texts.texts)
    if alike:
        return f"none of the {count} texts of {texts.name} has two tokens, so there is no next token to predict"
    return (
        f"none of the {count} texts of {texts.name} is cut alike by the tokenizers of {names}: shorter texts of common "
        "words may be, or take two models that have one tokenizer"
    )
