"""Loading a model, counting tokens, and the first tokens of a row of scores."""

from pathlib import Path

import pytest
import torch
from tokenizers import Tokenizer

from lexiscope.precompute.errors import BadRequest, BadWeights, BuildError
from lexiscope.precompute.live.engine import Engine
from lexiscope.precompute.live.vocabulary import count_above, top_tokens
from lexiscope.precompute.weights.checkpoint import Checkpoint
from tests.precompute.live.reference import TEXT, Case, ids, make_case
from tests.support.models import hf, tiny_gpt2


def test_a_model_is_loaded(case: Case) -> None:
    engine = case.engine
    assert engine.shape == case.model.shape
    assert engine.device == torch.device("cpu")
    assert engine.n_positions == 64
    assert engine.token_count(TEXT) == len(engine.words.tokenizer.encode(TEXT).ids)
    with pytest.raises(BadRequest, match="not UTF-8"):
        engine.token_count("\udcff")
    if not engine.words.tokenizer.encode("").ids:
        with pytest.raises(BadRequest, match="no tokens"):
            engine.token_count("")


def test_weights_are_once_in_memory(case: Case) -> None:
    w = case.engine.weights
    assert (w.W_U is w.W_E) == w.shape.tied
    assert case.engine.words.reads.embedding.rows.ctypes.data == w.W_E.data_ptr()


def test_what_a_tokenizer_puts_before_a_text_counts(tmp_path: Path) -> None:
    folder = tiny_gpt2(tmp_path)
    tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
    from tokenizers.processors import TemplateProcessing

    first = tokenizer.token_to_id("<|endoftext|>")
    tokenizer.post_processor = TemplateProcessing(single="<|endoftext|> $A", special_tokens=[("<|endoftext|>", first)])
    tokenizer.enable_truncation(3)
    tokenizer.enable_padding(length=50)
    tokenizer.save(str(folder / "tokenizer.json"))
    made = make_case(folder)
    expected = hf.PreTrainedTokenizerFast(tokenizer_file=str(folder / "tokenizer.json"))(TEXT)["input_ids"]
    assert ids(made.ask()["tokens"]) == tuple(expected)
    assert ids(made.ask()["tokens"])[0] == first


def test_a_device_that_is_not_here_and_a_broken_tokenizer(tmp_path: Path) -> None:
    checkpoint = Checkpoint.open(tiny_gpt2(tmp_path))
    with pytest.raises(BuildError, match="cannot be used here"):
        Engine.load(checkpoint, device="meta:7x")
    (tmp_path / "tokenizer.json").write_text("{}")
    with pytest.raises(BadWeights, match="tokenizer"):
        Engine.load(checkpoint, device="cpu")


@pytest.mark.parametrize("k", [1, 5, 50, 700])
@pytest.mark.parametrize("d_vocab", [3, 64, 700, 5000])
def test_first_tokens_are_those_of_a_full_sort(k: int, d_vocab: int) -> None:
    scores = torch.randn(6, d_vocab, generator=torch.Generator().manual_seed(k)).mul(8).round().div(4)  # many ties
    scores[5] = -1.0
    top = top_tokens(scores, k)
    expected = scores.sort(dim=1, descending=True, stable=True)
    assert top.ids.equal(expected.indices[:, :k])
    assert top.values.equal(expected.values[:, :k])
    assert count_above(scores, scores[:, 1]).equal((scores > scores[:, 1:2]).sum(dim=1))


def test_scores_that_are_no_numbers_do_no_harm() -> None:
    scores = torch.full((2, 500), torch.nan)
    assert top_tokens(scores, 5).ids.shape == (2, 5)
