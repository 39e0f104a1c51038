"""The panel `evolution`: the tokens that the stream predicts after every step of a run, and where the final answer
first appears."""

from collections.abc import Sequence
from typing import Literal

import torch
from torch import Tensor

from lexiscope.precompute.live.panels.panel import Fields, Panel, PanelRun, only_tokens
from lexiscope.precompute.live.vocabulary import Tick, likelihoods, predicted
from lexiscope.precompute.live.weights import Weights
from lexiscope.precompute.live.wire.answers import EvolutionRow


def evolution(
    w: Weights, streams: Sequence[Tensor], k: int, tick: Tick, only: Tensor | None = None
) -> list[EvolutionRow]:
    """Return the most likely tokens of streams (T, d_model), a row for each step of a run: the embedding, then
    attention and ff of every layer.

    The answer of a position is the token that this run ends with there: the first token of the last row.
    `only` flags the tokens (d_vocab,) that the rows before it may hold, if these are not all.
    """
    T = len(streams[0])
    last = likelihoods(w, streams[-1], k, None, tick)
    before = likelihoods(w, torch.cat(list(streams[:-1])), k, last.ids[:, 0].repeat(len(streams) - 1), tick, only)
    rows: list[EvolutionRow] = []
    # to Python's numbers in one go: element by element it takes longer than the products
    ids, p, answer, rank = (
        [*getattr(before, name).tolist(), *getattr(last, name).tolist()] for name in ("ids", "p", "answer", "rank")
    )
    cells = [predicted(w.shape.predicts, *cell) for cell in zip(ids, p, strict=True)]
    steps: list[tuple[int, Literal["embedding", "attention", "ff"]]] = [(0, "embedding")]
    steps += [step for layer in range(w.shape.n_layers) for step in ((layer, "attention"), (layer, "ff"))]
    for at, (layer, after) in enumerate(steps):
        of_step = slice(at * T, at * T + T)
        rows.append(
            EvolutionRow(
                layer=layer, after=after, cells=cells[of_step], answer=answer[of_step], answer_rank=rank[of_step]
            )
        )
    return rows


def appears(rows: Sequence[EvolutionRow], position: int) -> int:
    """Return the first layer from which on the answer is the most likely token at the position, in every row to the
    end."""
    first = rows[-1]["layer"]
    for row in reversed(rows):
        if row["answer_rank"][position] != 1:
            break
        if row["after"] == "ff":
            first = row["layer"]
    return first


def _answer(run: PanelRun) -> Fields:
    only = only_tokens(run.w, run.ask)
    rows = [evolution(run.w, record.streams, run.ask.k, run.tick("evolution"), only) for record in run.records]
    return {
        "evolution": rows[0],
        "evolution_untouched": rows[1] if run.ask.changes else None,
        "evolution_from": rows[-1] if run.ask.from_ else None,
        "appears": appears(rows[0], run.record.position),
    }


PANEL = Panel(
    name="evolution",
    keeps=frozenset({"streams"}),
    answer=_answer,
    rows=lambda w, ask, tokens: ask.runs * (2 * w.shape.n_layers + 1) * tokens,
)
