"""The panel `evolution`: the tokens that the stream predicts after every step of a run, where the final answer first
appears, and whether the text goes on as predicted."""

from collections.abc import Collection, Sequence
from statistics import fmean
from typing import Literal

import torch
from torch import Tensor

from lexiscope.precompute.live.panels.panel import Fields, Panel, PanelRun, only_tokens
from lexiscope.precompute.live.panels.records import Record
from lexiscope.precompute.live.vocabulary import OWN_FIRST, Likelihoods, Tick, likelihoods, predicted
from lexiscope.precompute.live.weights import Weights
from lexiscope.precompute.live.wire.answers import EvolutionRow, Right, Truth


def evolution(
    w: Weights, record: Record, word: int, k: int, tick: Tick, only: Tensor | None = None
) -> tuple[list[EvolutionRow], Likelihoods]:
    """Return the most likely tokens of a run's streams (T, d_model), a row for each step: the embedding, then attention
    and ff of every layer. Also return what the last step tells of three tokens at each position: its own first one,
    `word`, and the true one, which is the next in the text or, if the model predicts masked tokens, the one there.

    The answer of a position is the token that this run ends with there: the first token of the last row.
    `only` flags the tokens (d_vocab,) that the rows before it may hold, if these are not all.
    """
    T, streams, tokens = len(record.tokens), record.streams, torch.tensor(record.tokens, device=w.device)
    true = tokens.roll(-1) if w.shape.causal else tokens
    words = torch.full_like(tokens, word)
    asked = torch.stack((torch.full_like(tokens, OWN_FIRST), words, true), dim=1)
    last = likelihoods(w, streams[-1], k, asked, tick)
    asked = torch.stack((last.ids[:, 0], words), dim=1).repeat(len(streams) - 1, 1)
    before = likelihoods(w, torch.cat(list(streams[:-1])), k, asked, tick, only)
    rows: list[EvolutionRow] = []
    # to Python's numbers in one go: element by element it takes longer than the products
    ids, p, of, ranks, logits = (
        [*getattr(before, name).tolist(), *getattr(last, name).tolist()] for name in ("ids", "p", "of", "rank", "logit")
    )
    cells = [predicted(w.shape.predicts, *cell) for cell in zip(ids, p, strict=True)]
    number = "score" if w.shape.predicts == "nearest" else "p"
    steps: list[tuple[int, Literal["embedding", "attention", "ff"]]] = [(0, "embedding")]
    steps += [step for layer in range(w.shape.n_layers) for step in ((layer, "attention"), (layer, "ff"))]
    for at, (layer, after) in enumerate(steps):
        of_step, here = slice(at * T, at * T + T), at * T + record.position
        rows.append({
            "layer": layer, "after": after, "cells": cells[of_step],
            "answer": [each[0] for each in of[of_step]], "answer_rank": [each[0] for each in ranks[of_step]],
            "word": {number: of[here][1], "rank": ranks[here][1],  # type: ignore[misc]  # p or score
                     "logit": logits[here][1] if w.model.predicts else None},
        })  # fmt: skip
    return rows, last


def truth(w: Weights, record: Record, last: Likelihoods, marks: Collection[int]) -> tuple[list[Truth], Right]:
    """Return the true token of every position that has one, and how many of them were predicted. A position at which
    an encoder's tokenizer put one of its marks, or the text a mask, has none."""
    n = len(record.tokens)
    at = list(range(n - 1)) if w.shape.causal else [at for at in range(n) if record.tokens[at] not in marks]
    tokens = [record.tokens[each + w.shape.causal] for each in at]
    first, (p, rank, log_p) = last.ids[at, 0].tolist(), (x[at, 2].tolist() for x in (last.of, last.rank, last.log_p))
    rows = [
        Truth(position=position, token={"id": token}, probability=probability, rank=place)
        for position, token, probability, place in zip(at, tokens, p, rank, strict=True)
    ]
    hits = sum(likeliest == token for likeliest, token in zip(first, tokens, strict=True))
    return rows, {"hits": hits, "of": len(rows), "mean_log_p": fmean(log_p) if rows else None}


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
    every = [evolution(run.w, record, run.token, run.ask.k, run.tick("evolution"), only) for record in run.records]
    rows, last = every[0]
    has_truth = run.w.shape.predicts != "nearest"
    true, right = truth(run.w, run.record, last, run.tables.marks) if has_truth else (None, None)
    return {
        "evolution": rows,
        "evolution_untouched": every[1][0] if run.ask.changes else None,
        "evolution_from": every[-1][0] if run.ask.from_ else None,
        "appears": appears(rows, run.record.position),
        "word": {"id": run.token},
        "truth": true,
        "right": right,
    }


PANEL = Panel(
    name="evolution",
    keeps=frozenset({"streams"}),
    answer=_answer,
    rows=lambda w, ask, tokens: ask.runs * (2 * w.shape.n_layers + 1) * tokens,
)
