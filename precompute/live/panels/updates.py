"""The panel `updates`: what attention and FF of every layer, and the heads of one layer, added to the stream at a
position, as words.

An update is the vector that is added to the stream, with biases: behind the norm of what is written, where the model
has one (Gemma 2), and before the norm of the sum, where the model has that (encoders). A head's is z W_O, with z the
values that it mixed from all positions that it attended to; through a norm of what is written at the scale that it has
for all heads together, so that the heads and the bias of W_O sum to attention's update.

For words, an update goes through the final norm but for its divisor and bias (minus the mean for a LayerNorm, times the
gain), and is multiplied with W_U. Under the lens cosine, rows of W_U are centred and of length one.
"""

from collections.abc import Iterator

import torch
from torch import Tensor

from lexiscope.precompute.live.panels import attribution, head_vectors
from lexiscope.precompute.live.panels.panel import Panel, PanelRun, only_tokens
from lexiscope.precompute.live.vocabulary import PRODUCT_ROWS, Tick, best_tokens, likelihoods
from lexiscope.precompute.live.weights import LEAST_DIVISOR, Weights
from lexiscope.precompute.live.wire.answers import ScoredToken, Update
from lexiscope.precompute.live.wire.asks import PromptAsk
from lexiscope.precompute.weights.architectures.family import Part

PARTS: tuple[Part, Part] = ("attention", "ff")


def added(run: PanelRun, layer: int, part: Part) -> Tensor:
    """Return what attention or FF of a layer added at the position and, if the layer is opened, what each of its heads
    added: (1 or 1 + n_heads, d_model)."""
    w, opened = run.w, part == "attention" and run.ask.layer == layer
    weights = run.record.coefficients[layer] if part == "ff" else run.record.mixed[layer].flatten()
    written = w.written(layer, part, weights)
    norm = w.norm_of_written(layer, part)
    whole = written if norm is None else norm.gained(written) * norm.scale(written)
    heads = head_vectors.added(w, layer, run.record.mixed[layer][:, None]) if opened else ()
    return torch.cat((whole[None], *heads))


def updates(run: PanelRun) -> list[Update]:
    w, record, tick = run.w, run.record, run.tick("updates")
    found = likelihoods(w, torch.cat(record.streams), 1, None, tick).ids
    leads = found.view(len(record.streams), len(record.tokens))  # the likeliest token after each step
    changed = (leads[1:] != leads[:-1]).sum(dim=1).tolist()
    of_step = leads[:, record.position].tolist()
    rows: list[Update] = []
    vectors: list[Tensor] = []
    for step, of_all in enumerate(changed):
        layer, part = step // 2, PARTS[step % 2]
        every, before = added(run, layer, part), record.streams[step][record.position]
        lengths, length = torch.linalg.vector_norm(every, dim=1), torch.linalg.vector_norm(before)
        shares = lengths / length.clamp(min=LEAST_DIVISOR)
        cosines = every @ before / (lengths * length).clamp(min=LEAST_DIVISOR)
        numbers = (each.tolist() for each in (lengths, shares, cosines))
        for at, (norm, share, cosine) in enumerate(zip(*numbers, strict=True)):
            was, now = of_step[step : step + 2]
            rows.append({
                "layer": layer, "of": "head" if at else part, "head": at - 1 if at else None,
                "position": record.position, "norm": norm, "share": share, "cosine": cosine, "top": [], "bottom": [],
                "changes": None if at else was != now, "changed": None if at else of_all,
                "before": None if at else {"id": was}, "after": None if at else {"id": now},
            })  # fmt: skip
        vectors.append(every)
    lists = words(run, torch.cat(vectors), tick)
    return [{**row, "top": top, "bottom": bottom} for row, (top, bottom) in zip(rows, lists, strict=True)]


def words(run: PanelRun, vectors: Tensor, tick: Tick) -> Iterator[tuple[list[ScoredToken], list[ScoredToken]]]:
    """Yield the first tokens of both ends of each vector (n, d_model)."""
    length, only = run.ask.k + run.ask.spare, only_tokens(run.w, run.ask)
    products = run.tables.vocabularies[1].plain(run.ask.lens)
    for block in torch.split(run.w.norm_numbers("final").gained(vectors), PRODUCT_ROWS):
        scores = products(block)
        tick(len(block))
        for top, low in zip(*(best_tokens(sign * scores, length, only) for sign in (1, -1)), strict=True):
            yield top, [{"id": token["id"], "score": -token["score"]} for token in low]


def _rows(w: Weights, ask: PromptAsk, tokens: int) -> int:
    heads = 0 if ask.layer is None else w.shape.n_heads
    return (2 * w.shape.n_layers + 1) * tokens + 2 * w.shape.n_layers + heads


PANEL = Panel(
    name="updates",
    keeps=frozenset({"streams", "mixed", "coefficients"}),
    answer=lambda run: {"updates": updates(run)},
    rows=_rows,
    cost=attribution.cost,
)
