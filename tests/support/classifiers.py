"""Make small random classifiers of every family, with three labels, one of them hostile."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import load_file, save_file

from tests.support.families import FAMILIES
from tests.support.models import hf

LABELS = ("bad", "good", "<b>")


def make_classifier(family: str, folder: Path, **changes: Any) -> Path:
    """Save a classifier with `transformers`; its words are tied, because a classifier has no W_U of its own."""
    of = FAMILIES[family]
    net = of.config.removesuffix("Config") + "ForSequenceClassification"
    assert hasattr(hf, net)
    fields: dict[str, Any] = {"tie_word_embeddings": True, "id2label": dict(enumerate(LABELS))}
    fields["label2id"] = {label: number for number, label in enumerate(LABELS)}
    return replace(of, net=net).save(folder, **(fields | changes))


def with_labels(folder: Path) -> Path:
    """Add a vector for each label to a checkpoint of one file, as a decoder's classification head has them."""
    tensors, path = load_file(folder / "model.safetensors"), folder / "config.json"
    config = json.loads(path.read_text())
    score = torch.randn(len(LABELS), config["hidden_size"], generator=torch.Generator().manual_seed(0))
    save_file(tensors | {"score.weight": score}, folder / "model.safetensors", {"format": "pt"})
    path.write_text(json.dumps(config | {"id2label": dict(enumerate(LABELS))}))
    return folder


# The tensors of each family's classification head: a vector per label, and those of the step before.
_SCORE = {"classifier": "score.weight"}
_ROBERTA = {"classifier": "classifier.out_proj.weight", "dense": "classifier.dense.weight"}
HEADS: dict[str, dict[str, str]] = {
    **dict.fromkeys(("gpt2", "llama", "mistral", "qwen2", "qwen3", "gemma", "gemma2", "phi3"), _SCORE),
    **dict.fromkeys(("gpt_neox", "stablelm", "falcon", "gpt_neo", "opt"), _SCORE),
    "bert": {"classifier": "classifier.weight", "dense": "bert.pooler.dense.weight"},
    "roberta": _ROBERTA,
    "xlm-roberta": _ROBERTA,
    "distilbert": {"classifier": "classifier.weight", "dense": "pre_classifier.weight"},
}
