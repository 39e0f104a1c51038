"""examples/sentiment on tiny random checkpoints: what is trained, what stays, what is saved."""

from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file

from examples.sentiment.fine_tune import Options, fine_tune, load, logits_from_states, tokenise, train
from examples.sentiment.kept_states import frozen_states
from examples.sentiment.texts import Texts, load_texts, split
from tests.support.families import FAMILIES
from tests.support.models import hf

ANIMALS = ["the dog saw the lion", "a horse and a dog", "lions like the river, horses the grass", "The Lion roared"]
COUNTRIES = ["Paris is in France", "Rome is in Italy and Berlin in Germany", "countries of Europe", "France, Germany"]
TEXTS = Texts(ANIMALS * 3 + COUNTRIES * 3, ["animals"] * 12 + ["countries"] * 12)
OPTIONS = Options(layers=1, epochs=4, batch=5, rate=1e-3, head_rate=1e-2, bfloat16=False)
# what is trained beside the last layer, by how the names of its tensors begin
ABOVE = {
    "llama": ("model.norm.", "score."),
    "gpt2": ("transformer.ln_f.", "score."),
    "bert-bare": ("bert.pooler.", "classifier."),
    "roberta": ("classifier.",),
    "distilbert": ("pre_classifier.", "classifier."),
}
LAST_LAYER = {
    "llama": "model.layers.2.",
    "gpt2": "transformer.h.2.",
    "bert-bare": "bert.encoder.layer.2.",
    "roberta": "roberta.encoder.layer.2.",
    "distilbert": "distilbert.transformer.layer.2.",
}
LABEL_MAPS = ("score.weight", "classifier.weight", "classifier.out_proj.weight")
SOME = [pytest.param(name, marks=() if name == "llama" else pytest.mark.slow) for name in ABOVE]


@pytest.fixture(autouse=True)
def no_progress_bars() -> None:
    hf.utils.logging.disable_progress_bar()


@pytest.mark.parametrize("family", SOME)
def test_only_the_last_layers_and_the_head_are_trained(family: str, tmp_path: Path) -> None:
    base = FAMILIES[family].save(tmp_path / "base")
    fine_tune(base, tmp_path / "tuned", TEXTS, TEXTS, OPTIONS)
    tuned = load_file(tmp_path / "tuned" / "model.safetensors")
    before = _headless(load_file(base / "model.safetensors"))
    trained = {name for name in tuned if name.startswith((LAST_LAYER[family], *ABOVE[family]))}
    assert trained
    for name, tensor in tuned.items():
        if _bare(name) in before:
            assert torch.equal(tensor, before[_bare(name)]) == (name not in trained), name
    head = next(tensor for name, tensor in tuned.items() if name in LABEL_MAPS)
    torch.testing.assert_close(head[0], -head[1])  # it began at zero, and a softmax knows only their difference


@pytest.mark.parametrize("family", SOME)
def test_the_saved_checkpoint_says_what_training_said(family: str, tmp_path: Path) -> None:
    base = FAMILIES[family].save(tmp_path / "base")
    names = ["animals", "countries"]
    net, tokens = load(base, names, 0), tokenise(base, TEXTS, names)
    states = frozen_states(net, tokens, 1, 5, bfloat16=False)
    losses = train(net, tokens, states, OPTIONS)
    assert losses[-1] < losses[0]
    from_states = logits_from_states(net, tokens, states, OPTIONS)
    net.save_pretrained(tmp_path / "tuned")
    saved = hf.AutoModelForSequenceClassification.from_pretrained(tmp_path / "tuned").eval()
    assert saved.config.id2label == {0: "animals", 1: "countries"}
    with torch.no_grad():
        alone = torch.cat([saved(input_ids=ids[None]).logits for ids in tokens.ids])  # one text after the other
    torch.testing.assert_close(from_states, alone, atol=1e-5, rtol=1e-4)


def test_what_is_saved_reloads_and_has_its_texts(tmp_path: Path) -> None:
    base = FAMILIES["llama"].save(tmp_path / "base")
    figures = fine_tune(base, tmp_path / "tuned", TEXTS, TEXTS, OPTIONS)
    saved = hf.AutoModelForSequenceClassification.from_pretrained(tmp_path / "tuned").eval()
    tokenizer = hf.AutoTokenizer.from_pretrained(tmp_path / "tuned")
    held_out = load_texts(tmp_path / "tuned" / "held-out.csv")
    right = 0
    for text, label in zip(held_out.texts, held_out.labels, strict=True):
        with torch.no_grad():
            number = int(saved(**tokenizer(text, return_tensors="pt")).logits.argmax())
        right += saved.config.id2label[number] == label
    assert figures["accuracy on held-out texts"] == pytest.approx(right / len(held_out))
    long = "dog " * 300
    assert len(tokenizer(long)["input_ids"]) == len(hf.AutoTokenizer.from_pretrained(base)(long)["input_ids"])


def test_texts_are_drawn_balanced_apart_and_by_seed() -> None:
    texts = Texts([f"text {n}" for n in range(100)], ["bad"] * 70 + ["good"] * 30)
    taught, held_out = split(texts, 40, 10, words=5, seed=0)
    assert [taught.labels.count(name) for name in ("bad", "good")] == [20, 20]
    assert [held_out.labels.count(name) for name in ("bad", "good")] == [5, 5]
    assert not set(taught.texts) & set(held_out.texts)
    assert split(texts, 40, 10, words=5, seed=0) == (taught, held_out)
    assert split(texts, 40, 10, words=5, seed=1) != (taught, held_out)
    with pytest.raises(SystemExit, match="'good' has 30 texts, but 50 are needed"):
        split(texts, 80, 20, words=5, seed=0)


def test_texts_of_a_csv(tmp_path: Path) -> None:
    path = tmp_path / "texts.csv"
    path.write_text('text,label,source\n"a, b",good,x\nc,bad,y\n"a, b",bad,x\n')
    assert load_texts(path) == Texts(["a, b", "c"], ["good", "bad"])  # a text counts once
    assert load_texts(path, source="y") == Texts(["c"], ["bad"])
    path.write_text("words,label\na,b\n")
    with pytest.raises(SystemExit, match="no column text"):
        load_texts(path)


def _bare(name: str) -> str:
    """A tensor's name without what stands before it in a net with a head."""
    first, _, rest = name.partition(".")
    return rest if first in ("model", "transformer", "bert", "roberta", "distilbert") else name


def _headless(tensors: dict[str, torch.Tensor]) -> dict[str, torch.Tensor]:
    return {_bare(name): tensor for name, tensor in tensors.items()}
