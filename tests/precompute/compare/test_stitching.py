"""Stitching against the same by hand: hidden states of `transformers`, a product, a model of the last layers alone."""

import math
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from tokenizers import Tokenizer

from lexiscope.precompute.compare.common_tokens import CommonTokens
from lexiscope.precompute.compare.job import CompareOptions, CompareProgress, compare
from lexiscope.precompute.compare.space import Grams
from lexiscope.precompute.compare.stitching import stitch
from lexiscope.precompute.errors import BadRequest
from lexiscope.precompute.index.comparison import Comparison
from lexiscope.precompute.index.stitching import StitchingRun
from lexiscope.precompute.live.texts import Texts
from lexiscope.precompute.weights.architectures import describe
from lexiscope.precompute.weights.architectures.base import Model
from lexiscope.precompute.weights.checkpoint import Checkpoint
from tests.support.classifiers import make_classifier
from tests.support.models import hf, load, tiny_llama
from tests.support.tokenizers import gpt2

CPU = torch.device("cpu")
LINES = (
    "The dog and the lion saw the horse", "a lion and a horse of the farm", "Paris is in France",
    "She reads the words and he writes the words: reading, writing, and the horse ran away from the dog", "the",
)  # fmt: skip


def texts(labels: tuple[str, ...] | None = None, lines: tuple[str, ...] = LINES) -> Texts:
    return Texts("some.csv" if labels else "some.txt", "0" * 64, lines, labels)


def model_of(folder: Path) -> Model:
    return describe(Checkpoint.open(folder))


def kernel_of(a: Model, b: Model) -> Any:
    tokens = np.arange(min(a.shape.d_vocab, b.shape.d_vocab))
    with ThreadPoolExecutor(1) as pool:
        grams = Grams.of(a.W_E, b.W_E, CommonTokens(tokens, tokens, "ids"), torch.device("cpu"), pool)
    return grams.kernel().numpy()


def same(found: Any, expected: Any) -> bool:
    return bool(found.accuracy == expected.accuracy and found.loss == pytest.approx(expected.loss, abs=1e-4))


@pytest.mark.parametrize("last", [1, 2])
def test_a_decoder_stitched_to_another(tmp_path: Path, last: int) -> None:
    """Of other sizes; every text by itself, without padding."""
    a_folder = tiny_llama(tmp_path / "a", n_layers=2, d_model=24, n_heads=2, seed=1)
    b_folder = tiny_llama(tmp_path / "b", n_layers=3, seed=2)
    a, b = model_of(a_folder), model_of(b_folder)
    K = kernel_of(a, b)
    found = stitch(a, b, K, texts(), CPU, last=last)
    a_net, b_net, tail = load(a_folder), load(b_folder), load(b_folder)
    tail.model.layers = tail.model.layers[-last:]
    tail.config.num_hidden_layers = last
    own, answers = [], []
    after: list[list[torch.Tensor]] = [[], [], []]
    with torch.inference_mode():
        for line in LINES[:4]:
            ids = torch.tensor([gpt2().tokenizer.encode(line).ids])
            answers += ids[0, 1:].tolist()
            own.append(b_net(input_ids=ids).logits[0, :-1])
            for layer, states in enumerate(a_net(input_ids=ids, output_hidden_states=True).hidden_states):
                # the last of them went through the final norm: its input is asked for below
                after[layer].append(states)
            stream: list[torch.Tensor] = []
            hook = a_net.model.layers[-1].register_forward_hook(lambda _, __, out, s=stream: s.append(out))
            a_net(input_ids=ids)
            hook.remove()
            after[-1][-1] = stream[0]
        logits = [torch.cat([
            tail(inputs_embeds=(states.double() @ torch.from_numpy(K)).float(), use_cache=False).logits[0, :-1]
            for states in of_layer
        ]) for of_layer in after]  # fmt: skip
    right = torch.tensor(answers)
    for measured, scores in zip((found.own, found.embedding, *found.by_layer), (torch.cat(own), *logits), strict=True):
        p = scores.double().softmax(dim=1)[range(len(right)), right]
        assert measured.accuracy == pytest.approx(float((scores.argmax(dim=1) == right).double().mean()))
        assert measured.loss == pytest.approx(float(-p.log().mean()), rel=1e-4)
    counts = np.bincount(answers)
    assert found.chance.accuracy == counts.max() / len(answers)
    assert found.chance.loss == pytest.approx(math.log(b.shape.d_vocab))
    assert (found.count, found.skipped, found.predictions) == (4, 1, len(answers))  # "the" has no next token
    assert (found.texts, found.measure, found.last, found.length) == ("some.txt", "next", last, 64)


def test_the_control_has_no_kernel(tmp_path: Path) -> None:
    """It is what the identity would give; there is none where d_model differs, or where both are one model."""
    a, b = (model_of(tiny_llama(tmp_path / name, seed=seed)) for seed, name in enumerate("ab"))
    wide = model_of(tiny_llama(tmp_path / "wide", d_model=48))
    found, plain = (stitch(a, b, K, texts(), CPU, last=1) for K in (kernel_of(a, b), np.eye(32)))
    assert found.identity is not None
    assert (found.identity.by_layer, found.identity.embedding) == (plain.by_layer, plain.embedding)
    assert found.identity.by_layer != found.by_layer
    for other in (wide, a):
        assert stitch(a, other, kernel_of(a, other), texts(), CPU, last=1).identity is None


@pytest.mark.parametrize("family", ["gpt2", "gemma2", pytest.param("llama", marks=pytest.mark.slow)])
def test_a_decoder_stitched_to_itself(family: str, family_folder: Callable[[str], Path]) -> None:
    """At the layer below the last ones, and only there, it is the model itself."""
    model = model_of(family_folder(family))
    found = stitch(model, model, kernel_of(model, model), texts(), CPU, last=2)
    assert same(found.by_layer[0], found.own)
    assert not same(found.by_layer[1], found.own)
    assert not same(found.embedding, found.own)
    whole = stitch(model, model, kernel_of(model, model), texts(), CPU, last=3)
    assert same(whole.embedding, whole.own)
    assert same(whole.own, found.own)


def test_special_tokens_that_only_the_second_puts_before_a_text(family_folder: Callable[[str], Path]) -> None:
    """B's own state stands where A has none: the numbers are those of A's states with B's first one before them."""
    a, b = model_of(family_folder("phi3")), model_of(family_folder("llama"))
    K = kernel_of(a, b)
    line = "the dog and the lion"
    found = stitch(a, b, K, texts(lines=(line,)), CPU, last=1)
    a_net, b_net = load(family_folder("phi3")), load(family_folder("llama"))
    a_ids, b_ids = (encoded(family_folder(name), line)["input_ids"] for name in ("phi3", "llama"))
    assert b_ids.shape[1] == a_ids.shape[1] + 1
    with torch.inference_mode():
        states = a_net(input_ids=a_ids, output_hidden_states=True).hidden_states[1]
        first = b_net(input_ids=b_ids, output_hidden_states=True).hidden_states[-2][:, :1]
        b_net.model.layers = b_net.model.layers[-1:]
        b_net.config.num_hidden_layers = 1
        stitched = torch.cat((first, (states.double() @ torch.from_numpy(K)).float()), dim=1)
        logits = b_net(inputs_embeds=stitched, use_cache=False).logits[0, :-1]
    loss = torch.nn.functional.cross_entropy(logits.double(), b_ids[0, 1:])
    assert found.by_layer[0].loss == pytest.approx(float(loss), rel=1e-4)


def check_own(folder: Path, found: StitchingRun, labels: list[int]) -> None:
    """B's own numbers, every text by itself."""
    net = hf.AutoModelForSequenceClassification.from_pretrained(folder, dtype=torch.float32).eval()
    with torch.inference_mode():
        logits = torch.cat([net(**encoded(folder, line)).logits for line in LINES])
    right = torch.tensor(labels)
    assert found.own.accuracy == pytest.approx(float((logits.argmax(dim=1) == right).double().mean()))
    assert found.own.loss == pytest.approx(float(torch.nn.functional.cross_entropy(logits, right)), rel=1e-4)


def encoded(folder: Path, line: str) -> dict[str, torch.Tensor]:
    return {"input_ids": torch.tensor([Tokenizer.from_file(str(folder / "tokenizer.json")).encode(line).ids])}


@pytest.mark.slow
@pytest.mark.parametrize("padding", [None, "own"])
@pytest.mark.parametrize("family", ["bert", "gpt2", "roberta"])
def test_a_classifier_with_its_labels(
    tmp_path: Path, family: str, padding: str | None, family_folder: Callable[[str], Path]
) -> None:
    """Labels by name or by number; whether or not config.json names a padding token."""
    if padding is None and family != "gpt2":
        pytest.skip("encoders have a padding token")
    folder = make_classifier(
        family, tmp_path, seed=3, **({} if family != "gpt2" else {"pad_token_id": padding and 511})
    )
    a, b = model_of(family_folder(family)), model_of(folder)
    found = stitch(a, b, kernel_of(a, b), texts(("bad", "Good", "2", "<b>", "0")), CPU, last=2)
    check_own(folder, found, [0, 1, 2, 2, 0])
    assert (found.measure, found.count, found.predictions) == ("label", 5, 5)
    assert found.chance.accuracy == 0.4
    assert found.chance.loss == pytest.approx(math.log(3))
    same_model = stitch(b, b, np.eye(32), texts(("bad",) * 5), CPU, last=2)
    assert same(same_model.by_layer[0], same_model.own)
    assert same_model.chance.accuracy == 1


@pytest.mark.slow
def test_a_classifier_made_from_an_untied_model(tmp_path: Path, family_folder: Callable[[str], Path]) -> None:
    """It was saved without W_U: labels need none, next tokens and the first of two models do."""
    a = model_of(family_folder("gpt_neox"))
    folder = make_classifier("gpt_neox", tmp_path, tie_word_embeddings=False)
    b = model_of(folder)
    assert b.lacks_unembedding
    check_own(folder, stitch(a, b, kernel_of(a, b), texts(("bad",) * 5), CPU), [0] * 5)
    with pytest.raises(BadRequest, match=r"a classifier without a head that predicts tokens: give a .csv"):
        stitch(a, b, kernel_of(a, b), texts(), CPU)
    with pytest.raises(BadRequest, match="give the model that it was made from"):
        stitch(b, b, kernel_of(b, b), texts(("bad",) * 5), CPU)
    options = CompareOptions(kinds=(), least_tokens=100)
    assert Comparison.open(compare(a, b, tmp_path / "data", options, CompareProgress())).kernel().shape == (64, 64)


def test_texts_are_cut_to_a_length_and_the_positions_of_both(family_folder: Callable[[str], Path]) -> None:
    model = model_of(family_folder("gpt2"))
    K = kernel_of(model, model)
    short = stitch(model, model, K, texts(lines=("the dog and the lion",)), CPU, length=3)
    assert (short.length, short.predictions) == (3, 2)
    assert stitch(model, model, K, texts(lines=("the dog " * 100,)), CPU).predictions == 63


@pytest.mark.parametrize(("a", "b", "lines", "labels", "said"), [
    ("bert", "bert", LINES, None, "is an encoder, which predicts no next tokens: give a .csv"),
    ("bert", "bert", LINES, ("1",) * 5, "is no classifier .* give a .txt"),
    ("gpt2", "qwen2", ("1969", "2024"), None, "none of the 2 texts of some.txt is cut alike by the tokenizers of"),
    ("gpt2", "gpt2", ("the",), None, "none of the 1 texts .* has two tokens"),
])  # fmt: skip
def test_what_cannot_be_stitched(
    a: str, b: str, lines: tuple[str, ...], labels: tuple[str, ...] | None, said: str,
    family_folder: Callable[[str], Path],
) -> None:  # fmt: skip
    first, second = (model_of(family_folder(name)) for name in (a, b))
    with pytest.raises(BadRequest, match=said):
        stitch(first, second, kernel_of(first, second), texts(labels, lines), CPU)


@pytest.mark.parametrize("label", ["3", "-1", "best", ""])
def test_labels_that_a_classifier_does_not_have(tmp_path: Path, label: str) -> None:
    model = model_of(make_classifier("bert", tmp_path))
    with pytest.raises(BadRequest, match=f"the label '{label}' is none of B's: 'bad', 'good', '<b>', or 0 to 2"):
        stitch(model, model, np.eye(32), texts((label,) * 5), CPU)


def test_a_classifier_of_one_number_is_refused(tmp_path: Path) -> None:
    model = model_of(make_classifier("bert", tmp_path, id2label={0: "stars"}, label2id={"stars": 0}))
    with pytest.raises(BadRequest, match="gives a single number, no labels"):
        stitch(model, model, np.eye(32), texts(("0",) * 5), CPU)
