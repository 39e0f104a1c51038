"""What attention, FF and heads added to the stream: against the difference of the streams of `transformers` and what
its modules write."""

from typing import Any

import pytest
import torch
from torch import Tensor

from lexiscope.precompute.live.wire.answers import Update
from lexiscope.precompute.live.wire.fields import pack_tokens
from tests.precompute.live.panels.test_evolution import expected_rows
from tests.precompute.live.reference import Case, changed, ids
from tests.precompute.live.test_run import TOUCHES, touched
from tests.support.nets import Run

POSITION, OPENED = 3, 1


def asked(case: Case, **fields: Any) -> tuple[list[Update], tuple[int, ...]]:
    answer = case.ask(panel=("updates",), position=POSITION, **fields)
    assert answer["updates"] is not None
    return answer["updates"], ids(answer["tokens"])


def steps_of(case: Case, run: Run) -> list[tuple[int, str, Tensor, Tensor]]:
    """Layer, part, the stream before (T, d_model) and what was added to it: of decoders, by how much the stream
    changed; of encoders, what is added before the norm."""
    found, before = [], run.streams[0, "embedding"]
    for (layer, part), after in list(run.streams.items())[1:]:
        written = run.attended[layer] if part == "attention" else run.written[layer]
        added = after - before if case.engine.shape.causal else written
        if not case.engine.shape.causal:
            norm = case.net.norm("ff", layer) if part == "attention" else case.net.module(layer, "attention_norm")
            torch.testing.assert_close(norm(before + written), after, atol=1e-4, rtol=1e-4)
        found.append((layer, part, before, added))
        before = after
    return found


def check(case: Case, row: Update, before: Tensor, update: Tensor, lens: str) -> None:
    """Compare numbers and words with those of an update (d_model,)."""
    before, update = before.double(), update.double()
    assert row["norm"] == pytest.approx(float(update.norm()), rel=1e-3, abs=1e-5)
    assert row["share"] == pytest.approx(float(update.norm() / before.norm()), rel=1e-3, abs=1e-5)
    cosine = torch.cosine_similarity(update, before, dim=0)
    assert row["cosine"] == pytest.approx(float(cosine), abs=1e-3)
    W = case.model.W_U.double()
    if lens == "cosine":
        W = torch.nn.functional.normalize(W - W.mean(dim=0), dim=1)
    scores = W @ (update @ case.net.linear_norm("final"))
    for tokens, sign in ((row["top"], 1), (row["bottom"], -1)):
        best = (sign * scores).topk(len(tokens)).values * sign
        found = torch.tensor([token["score"] for token in tokens]).double()
        torch.testing.assert_close(found, best, atol=2e-3, rtol=1e-3)
        torch.testing.assert_close(scores[[token["id"] for token in tokens]], best, atol=2e-3, rtol=1e-3)


@pytest.mark.parametrize(("lens", "changes"), [("dot", ()), ("cosine", TOUCHES)])
def test_updates_are_what_the_stream_changed_by(every: Case, lens: str, changes: Any) -> None:
    found, tokens = asked(every, lens=lens, k=7, **changed(changes))
    with touched(every.net, changes):
        run = every.net.run(tokens)
        leads = [scores.argmax(dim=1) for scores, _ in expected_rows(every, tokens, run).values()]
    steps = steps_of(every, run)
    assert [(row["layer"], row["of"]) for row in found] == [(layer, part) for layer, part, *_ in steps]
    for at, (row, (_, _, before, update)) in enumerate(zip(found, steps, strict=True)):
        assert (row["head"], row["position"]) == (None, POSITION)
        check(every, row, before[POSITION], update[POSITION], lens)
        assert row["changed"] == int((leads[at] != leads[at + 1]).sum())
        was, now = (int(lead[POSITION]) for lead in leads[at : at + 2])
        assert (row["before"], row["after"], row["changes"]) == ({"id": was}, {"id": now}, was != now)


def test_heads_and_bias_sum_to_attention(every: Case) -> None:
    """Each head as the module writes it alone; through a norm of what is written, at its scale in this run."""
    found, tokens = asked(every, layer=OPENED, k=7)
    run, s, module = every.run(tokens), every.engine.shape, every.net.module(OPENED, "w_o")
    mixed = run.mixed[OPENED][POSITION].view(s.n_heads, s.d_head)
    alone = torch.diag_embed(torch.ones(s.n_heads))[:, :, None] * mixed  # (n_heads, n_heads, d_head)
    bias = module(torch.zeros(1, mixed.numel()))
    heads = module(alone.flatten(1)) - bias
    norm: Any = every.net.module(OPENED, "written")
    if every.net.layout.written.endswith("layernorm"):  # Gemma's norm of what is written
        whole = run.attended[OPENED][POSITION]
        scale = norm(whole[None])[0] / whole
        heads, bias = heads * scale, bias * scale
    before, update = next(each[2:] for each in steps_of(every, run) if each[:2] == (OPENED, "attention"))
    torch.testing.assert_close(heads.sum(dim=0) + bias[0], update[POSITION], atol=1e-4, rtol=1e-3)
    rows = [row for row in found if row["of"] == "head"]
    assert [(row["layer"], row["head"]) for row in rows] == [(OPENED, head) for head in range(s.n_heads)]
    for row, head in zip(rows, heads, strict=True):
        check(every, row, before[POSITION], head, "dot")
        assert (row["changes"], row["changed"], row["before"], row["after"]) == (None, None, None, None)


def test_lists_of_some_tokens_have_room_for_those_left_out(case: Case) -> None:
    kept = torch.arange(case.engine.shape.d_vocab) % 3 == 1
    only = pack_tokens(kept.numpy())
    for row, whole in zip(asked(case, k=4, spare=3, only=only)[0], asked(case, k=50)[0], strict=True):
        for some, all_of in ((row["top"], whole["top"]), (row["bottom"], whole["bottom"])):
            expected = [token["id"] for token in all_of if kept[token["id"]]][:7]
            assert ([token["id"] for token in some], len(some)) == (expected, 7)


def test_one_token(case: Case) -> None:
    """A text of one token has as many steps, and at most one prediction to change."""
    answer = case.ask("d", panel=("updates",), k=2)
    rows = answer["updates"] or []
    assert len(rows) == 2 * case.engine.shape.n_layers
    for row in rows:
        assert 0 <= (row["changed"] or 0) <= len(answer["tokens"])
