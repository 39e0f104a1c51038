"""What a prompt and a word are to a model, with the tokenizers of all families."""

import json
from pathlib import Path
from typing import Any

import pytest
import torch
import transformers

from lexiscope.precompute.errors import BadRequest, NotFound
from lexiscope.precompute.live.words import Vocabulary, Words
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
