"""What a prompt and a word are to a model, with the tokenizers of all families."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
import transformers

from lexiscope.precompute.errors import BadRequest, NotFound
from lexiscope.precompute.live.words import Vocabulary, Words
from tests.precompute.live.reference import TEXT as RUN_TEXT
from tests.precompute.live.reference import Case, ids
from tests.support.tokenizers import TEXT, TOKENIZERS, SmallTokenizer

hf: Any = transformers  # most of its functions carry no types
PROMPTS = [*TEXT.splitlines(), "The capital of France is", "<script> Ünïcode"]
MODEL_TYPES = {"llama3": "llama", "qwen": "qwen2"}  # where the tokenizer has another name than the family


def words_of(small: SmallTokenizer, d_vocab: int | None = None) -> Words:
    vocabulary = Vocabulary.of(torch.randn(d_vocab or small.size, 4))
    return Words(small.tokenizer, vocabulary, vocabulary, causal=True, padding=0)


@pytest.mark.parametrize(("name", "before", "after"), [
    ("gpt2", [], []), ("gpt_neo", [], []), ("gpt_neox", [], []), ("qwen", [], []), ("phi3", [], []),
    ("llama", ["<s>"], []), ("mistral", ["<s>"], []), ("llama3", ["<|begin_of_text|>"], []), ("gemma", ["<bos>"], []),
    ("opt", ["</s>"], []), ("roberta", ["<s>"], ["</s>"]), ("bert", ["[CLS]"], ["[SEP]"]),
    ("distilbert", ["[CLS]"], ["[SEP]"]), ("xlm-roberta", ["<s>"], ["</s>"]),
])  # fmt: skip
def test_a_prompt_has_the_special_tokens_of_its_family(
    tmp_path: Path, name: str, before: list[str], after: list[str]
) -> None:
    """As `transformers` gives it to the model."""
    small = TOKENIZERS[name]()
    small.save(tmp_path)
    (tmp_path / "config.json").write_text(json.dumps({"model_type": MODEL_TYPES.get(name, name)}))
    theirs = hf.AutoTokenizer.from_pretrained(tmp_path, local_files_only=True)
    words = words_of(small)
    assert [list(words.prompt(text)) for text in PROMPTS] == [theirs(text)["input_ids"] for text in PROMPTS]
    tokens = [small.tokenizer.id_to_token(token) for token in words.prompt("dog")]
    assert (tokens[: len(before)], tokens[len(tokens) - len(after) :]) == (before, after)
    assert len(words.tokens("dog")) == 1


def test_tokens_without_an_embedding_are_refused() -> None:
    """A tokenizer may know more tokens than the model."""
    words = words_of(TOKENIZERS["gemma"](), d_vocab=300)
    with pytest.raises(BadRequest, match="of the prompt has no embedding: the model has 300"):
        words.prompt("the dog")
    with pytest.raises(NotFound, match="of 'dog' has no embedding: the model has 300"):
        words.tokens("dog")


@pytest.mark.parametrize(("family", "puts"), [
    ("gpt2", False), ("gpt_neox", False), ("llama3", True), ("gemma2", True), ("bert", True),
])  # fmt: skip
def test_the_first_token_is_that_of_transformers(case_of: Callable[[str], Case], family: str, puts: bool) -> None:
    """It is put in front once, by the tokenizer or because somebody asks; limits count it, and what follows sees it."""
    case = case_of(family)
    theirs = hf.AutoTokenizer.from_pretrained(case.folder, local_files_only=True)
    first = theirs.cls_token_id if theirs.bos_token_id is None else theirs.bos_token_id
    plain, asked = case.ask(), case.ask(bos=1)
    assert ids(plain["tokens"]) == tuple(theirs(RUN_TEXT)["input_ids"])
    assert ids(asked["tokens"]) == (*(() if puts else (first,)), *ids(plain["tokens"]))
    assert plain["bos"] == {"token": {"id": first}, "by": "tokenizer" if puts else "nobody"}
    assert asked["bos"] == {"token": {"id": first}, "by": "tokenizer" if puts else "asked"}
    assert case.engine.token_count(RUN_TEXT, 1) == len(asked["tokens"])
    logits = case.run(ids(asked["tokens"])).logits
    assert logits is not None
    assert asked["prediction"][0]["id"] == int(logits[asked["position"]].argmax())


def test_a_model_without_a_first_token_refuses_one(case_of: Callable[[str], Case]) -> None:
    case = case_of("qwen2")
    assert case.ask()["bos"] == {"token": None, "by": "nobody"}
    with pytest.raises(BadRequest, match="no first token of its own"):
        case.engine.token_count(RUN_TEXT, 1)
