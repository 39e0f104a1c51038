"""What heads do in a run: their attention and what they write are those of `transformers`, the kinds of their words are
counted anew from the lists of the sheet; and heads that were made to be of a kind are found."""

import re
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file
from torch import Tensor

from lexiscope.precompute.index.tokens import TokenTable, is_special, token_bytes
from lexiscope.precompute.live.engine import Engine
from lexiscope.precompute.live.wire.answers import HEAD_LISTS
from lexiscope.precompute.live.wire.asks import PromptAsk
from lexiscope.precompute.weights.checkpoint import Checkpoint
from tests.precompute.live.reference import TEXT, Case, ids
from tests.support.models import tiny_gpt2
from tests.support.nets import Run
from tests.support.planted import D_HEAD, Weights, pieces, token_numbers, tokenizer_json, vocabulary


def written(case: Case, run: Run, layer: int, head: int) -> Tensor:
    """Return what transformers' module writes of one head's values (T, d_model), after Gemma's norm as it is."""
    d_head = case.engine.shape.d_head
    mine = slice(head * d_head, (head + 1) * d_head)
    alone = torch.zeros_like(run.mixed[layer])
    alone[:, mine] = run.mixed[layer][:, mine]
    output = case.net.module(layer, "w_o")
    part: Tensor = output(alone) - output(torch.zeros_like(alone))
    if case.engine.weights.norm_of_written(layer, "attention") is not None:
        step = run.streams[layer, "attention"] - before(run, layer)
        part = part * step / run.attended[layer]
    return part


def before(run: Run, layer: int) -> Tensor:
    return run.streams[layer - 1, "ff"] if layer else run.streams[0, "embedding"]


def test_attention_and_moves_are_those_of_transformers(every: Case) -> None:
    answer = every.ask(panel=("heads",))
    run, heads = every.run(ids(answer["tokens"])), answer["heads"] or []
    s, T = every.engine.shape, len(answer["tokens"])
    assert [(head["layer"], head["head"]) for head in heads] == [
        (layer, head) for layer in range(s.n_layers) for head in range(s.n_heads)
    ]
    for found in heads:
        layer, number = found["layer"], found["head"]
        rows = run.attentions[layer][number].double().tolist()[1:]
        entropies = [-sum(p * float(torch.tensor(p).log()) for p in row if p > 0) for row in rows]
        distances = [sum(p * abs(at - to) for to, p in enumerate(row)) for at, row in enumerate(rows, 1)]
        x = written(every, run, layer, number)
        moves = [float(x[at].norm() / before(run, layer)[at].norm()) for at in range(1, T)]
        for name, expected in (("first", [row[0] for row in rows]), ("entropy", entropies), ("distance", distances),
                               ("moves", moves)):  # fmt: skip
            assert found[name] == pytest.approx(sum(expected) / (T - 1), rel=1e-3, abs=1e-4), name  # type: ignore[literal-required]
        assert found["rests"] == (found["moves"] < 0.02)
    even = torch.ones(T, T).tril() if s.causal else torch.ones(T, T)
    assert answer["first_even"] == pytest.approx(float((even / even.sum(dim=1, keepdim=True))[1:, 0].mean()))


@pytest.mark.parametrize("how", [{}, {"convention": "exact", "lens": "cosine", "k": 9}])
def test_shares_are_those_of_the_sheets_lists(every: Case, how: dict[str, Any]) -> None:
    """Together with the sheet, and alone: the lists are the same."""
    text = TEXT + " and the dog saw Paris"
    answer, alone = (every.ask(text, panel=panel, **how) for panel in (("sheet", "heads"), ("heads",)))
    assert alone["heads"] == answer["heads"]
    assert answer["sheet"] is not None
    table = TokenTable.of(token_bytes(every.engine.tokenizer_file, every.engine.shape.d_vocab))
    every_word = [table.surface(table.text(token)) for token in range(len(table))]

    def words(tokens: Any) -> list[str]:
        return [every_word[token["id"]] for token in tokens]

    text_words = words(answer["tokens"])
    special = [is_special(table.text(token["id"])) for token in answer["tokens"]]
    positions = [at for at, word in enumerate(text_words) if at and word and not special[at]]
    rows = {(row["layer"], row["head"], row["position"]): row for row in answer["sheet"]["heads"]}
    for found in answer["heads"] or ():
        for name in HEAD_LISTS:
            lists = {at: words(rows[found["layer"], found["head"], at][name]) for at in positions}
            own = [text_words[at] in lists[at] for at in positions]
            assert found["self"][name] == pytest.approx(sum(own) / len(own))
            repeats, letters = [], []
            for at in positions:
                others = [lists[other] for other in positions if other != at]
                again = [
                    word.isalpha()
                    and (len(word) > 1 or ord(word) > 127)
                    and 2 * sum(word in o for o in others) >= len(others)
                    for word in lists[at]
                ]
                repeats.append(sum(again) / len(lists[at]))
                rest = [word for word in lists[at] if word != text_words[at]]
                if text_words[at][0].isalpha():
                    letters.append(sum(word.startswith(text_words[at][0]) for word in rest) / max(len(rest), 1))
            assert found["repeats"][name] == pytest.approx(sum(repeats) / len(repeats))
            assert found["letter"][name] == pytest.approx(sum(letters) / len(letters))
    chance = [
        sum(word.startswith(text_words[at][0]) for word in every_word) / len(every_word)
        for at in positions if text_words[at][0].isalpha()
    ]  # fmt: skip
    assert answer["letter_chance"] == pytest.approx(sum(chance) / len(chance))


def test_a_head_that_is_off_moves_nothing(case: Case) -> None:
    heads = case.ask(panel=("heads",), off="1.h2")["heads"] or []
    (off,) = (head for head in heads if (head["layer"], head["head"]) == (1, 2))
    assert (off["moves"], off["rests"]) == (0.0, True)


@pytest.mark.parametrize("text", ["d", "d d"])
def test_a_text_of_a_token_or_two(case: Case, text: str) -> None:
    heads = case.ask(text, panel=("heads",))["heads"] or []
    for head in heads:
        shares = [head[name][of] for name in ("self", "repeats", "letter") for of in HEAD_LISTS]
        assert all(0 <= share <= 1 for share in (head["first"], *shares))


def test_together_with_the_sheet_lists_cost_once(case: Case) -> None:
    alone, both, sheet = (
        case.engine.cost(PromptAsk(text=TEXT, panel=panel), 10)
        for panel in (("heads",), ("sheet", "heads"), ("sheet",))
    )
    assert sheet <= both < 1.1 * sheet < alone + sheet


def test_four_kinds_of_planted_heads_are_found(tmp_path: Path) -> None:
    """Of a model's heads, one looks for and sends the token itself, one sends a word with its first letter, one the
    same word always, and one nothing."""
    source = tiny_gpt2(tmp_path, d_vocab=len(pieces()), n_layers=1, n_heads=8, d_model=8 * D_HEAD, d_mlp=16)
    (source / "tokenizer.json").write_text(tokenizer_json())
    weights = Weights(load_file(source / "model.safetensors"), token_numbers())
    by_letter: dict[str, list[str]] = {}
    for text in filter(re.compile(" [a-z]{3,}").fullmatch, vocabulary()):
        by_letter.setdefault(text[1], []).append(text)
    pairs = [(words[0], words[1]) for words in by_letter.values() if len(words) > 1][:6]
    own = [(word, word) for word, _ in pairs]
    always = next(word for word in by_letter["s"] if word not in {word for pair in pairs for word in pair})
    weights.head("qk", 0, 0, own)
    weights.head("vo", 0, 0, own)
    weights.head("vo", 0, 1, pairs)
    weights.head("vo", 0, 2, [(word, always) for word, _ in pairs])
    weights.head("vo", 0, 3, [])
    weights.tensors["transformer.wpe.weight"] *= 0
    save_file({name: each.contiguous() for name, each in weights.tensors.items()}, source / "model.safetensors")
    engine = Engine.load(Checkpoint.open(source), device="cpu")
    (answer,) = engine.prompts([PromptAsk(text="".join(word for word, _ in pairs), panel=("heads",), k=1)])
    assert isinstance(answer, dict), answer
    itself, letter, repeats, rests = (answer["heads"] or [])[:4]
    assert len(answer["tokens"]) == len(pairs)
    assert (itself["self"]["looks_for"], itself["self"]["sends"]) == (1, 1)
    assert (letter["letter"]["sends"], letter["self"]["sends"]) == (1, 0)
    assert (repeats["repeats"]["sends"], repeats["letter"]["sends"]) == (1, 0)
    assert [token["id"] for token in repeats["repeated"]["sends"]] == [token_numbers()[always]]
    assert [head["rests"] for head in (itself, letter, repeats, rests)] == [False, False, False, True]
    assert answer["letter_chance"] < 0.2  # type: ignore[operator]
