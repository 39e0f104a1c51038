"""Real models, fetched and converted: they do what they were made for, run by `transformers`."""

from typing import Any

import numpy as np
import pytest
import torch
import transformers

from lexiscope.precompute.index.tokens import token_bytes
from lexiscope.precompute.weights.architectures import describe
from lexiscope.precompute.weights.checkpoint import Checkpoint

hf: Any = transformers  # most of its functions carry no types
ALIKE = ("A man is eating food.", "Someone eats a meal.")
OTHER = ("The girl plays the violin.", "Inflation rose in March.")


@pytest.mark.demo
@pytest.mark.parametrize("name", ["minilm", pytest.param("gte_small", marks=pytest.mark.all_families)])
def test_sentences_that_mean_the_same_are_nearer(name: str, request: pytest.FixtureRequest) -> None:
    checkpoint: Checkpoint = request.getfixturevalue(name)
    tokenizer = hf.AutoTokenizer.from_pretrained(checkpoint.folder, local_files_only=True)
    model, loading = hf.AutoModel.from_pretrained(checkpoint.folder, output_loading_info=True)
    assert {*loading["missing_keys"]} <= {"pooler.dense.weight", "pooler.dense.bias"}
    batch = tokenizer([*ALIKE, *OTHER], return_tensors="pt", padding=True)
    with torch.no_grad():
        stream = model(**batch).last_hidden_state  # (sentences, tokens, d_model)
    mask = batch["attention_mask"][..., None]
    means = torch.nn.functional.normalize((stream * mask).sum(1) / mask.sum(1), dim=1)
    similarity = means @ means.T  # (sentences, sentences)
    others = similarity[~torch.eye(4, dtype=torch.bool)].sort().values[:-2]
    assert similarity[0, 1] > others.max() + 0.1


def test_a_neuron_of_minilm_writes_of_temperature(minilm: Checkpoint) -> None:
    model = describe(minilm)
    tokens = token_bytes(minilm.tokenizer_file(), model.shape.d_vocab)
    centred = model.W_E.numpy().astype(np.float64) - model.W_E.numpy().mean(axis=0, dtype=np.float64)
    directions = centred / np.linalg.norm(centred, axis=1, keepdims=True)  # (d_vocab, d_model)
    scores = directions @ model.vectors(5, "ff_value")[300].numpy().astype(np.float64)  # (d_vocab,)
    first = [tokens[token].decode() for token in np.argsort(-scores)[:5]]
    assert first == ["temperature", "iron", "temperatures", "creator", "wavelengths"]


def test_the_small_llama_tells_a_story(stories: Checkpoint) -> None:
    """Rows of q and k in the wrong order would make it stammer."""
    tokenizer = hf.AutoTokenizer.from_pretrained(stories.folder, local_files_only=True)
    model = hf.AutoModelForCausalLM.from_pretrained(stories.folder)
    prompt = tokenizer("Once upon a time, there was a little girl", return_tensors="pt")["input_ids"]
    told = tokenizer.decode(model.generate(prompt, max_new_tokens=20, do_sample=False)[0], skip_special_tokens=True)
    assert told.startswith("Once upon a time, there was a little girl named Lily. She loved to play outside in the sun")
