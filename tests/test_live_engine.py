"""Loading a model, counting tokens, and the demo by hand: what it says of France, and who is about animals."""

from pathlib import Path

import pytest
import torch
from tokenizers import Tokenizer

from precompute import demo, gguf_import
from precompute.checkpoint import Checkpoint
from precompute.errors import BadRequest, BadWeights, BuildError
from precompute.live.engine import Engine
from precompute.live.vocabulary import count_above, top_tokens
from precompute.live.wire import PromptAnswer, PromptAsk, SeedsAnswer, SeedsAsk, Term
from tests.live import TEXT, Case, case, make_case  # noqa: F401
from tests.models import hf, tiny_gpt2

CACHE = Path(__file__).parents[1] / "data" / ".cache"


def test_a_model_is_loaded(case: Case) -> None:  # noqa: F811
    engine = case.engine
    assert engine.shape == case.model.shape
    assert engine.device == torch.device("cpu")
    assert engine.n_positions == 64
    assert engine.token_count(TEXT) == len(engine.words.tokenizer.encode(TEXT).ids)
    with pytest.raises(BadRequest, match="not UTF-8"):
        engine.token_count("\udcff")
    with pytest.raises(BadRequest, match="no tokens"):
        engine.token_count("")


def test_weights_are_once_in_memory(case: Case) -> None:  # noqa: F811
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
    assert made.ask().tokens == tuple(expected)
    assert made.ask().tokens[0] == first


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


def _demo() -> Path | None:
    name = f"{demo.SHA256[:32]}-v{gguf_import.VERSION}"
    folder = CACHE / "converted" / name
    return folder if folder.is_dir() else None


@pytest.mark.skipif(_demo() is None, reason="the demo's weights are not here: `lexiscope demo` fetches them")
def test_the_demo() -> None:
    folder = _demo()
    assert folder is not None
    made = make_case(folder)
    text = made.engine.words.tokenizer.decode
    (answer,) = made.engine.prompts([PromptAsk(text="The capital of France is", panels=frozenset({"evolution"}))])
    assert isinstance(answer, PromptAnswer)
    assert text([answer.prediction[0].id]) == " Paris"
    assert answer.evolution is not None
    assert answer.appears == 29
    logits = made.run(answer.tokens).logits
    for position, cell in enumerate(answer.evolution[-1].cells):
        expected = logits[position].log_softmax(dim=0)
        for likely in cell:
            assert torch.tensor(likely.p).log() == pytest.approx(float(expected[likely.id]), abs=1e-3)
    (found,) = made.engine.seeds(
        [SeedsAsk(terms=tuple(Term(word=w) for w in ("horse", "dog", "lion")), kinds=("ff_value",))]
    )
    assert isinstance(found, SeedsAnswer)
    W_U = made.model.W_U
    for result in found.results[:3]:
        value = made.model.vectors(result.layer, "ff_value")[result.index]
        words = {text([token]).strip().lower() for token in (W_U @ value).topk(10).indices.tolist()}
        assert words & {"dog", "dogs", "animal", "animals", "horse", "bird", "cat"}
