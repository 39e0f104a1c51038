"""The last layers of every family on states of its own: what `transformers` says of the whole model."""

from collections.abc import Callable
from pathlib import Path

import pytest
import torch

from lexiscope.precompute.compare.last_layers import LastLayers
from lexiscope.precompute.errors import BadRequest
from lexiscope.precompute.live.weights import CLASSIFIER, Weights, load_net
from lexiscope.precompute.weights.architectures import describe
from lexiscope.precompute.weights.checkpoint import Checkpoint
from tests.support.classifiers import make_classifier
from tests.support.families import FAMILIES, archetype_parameters
from tests.support.families import load_net as reference
from tests.support.models import hf
from tests.support.tokenizers import TOKENIZERS

CPU = torch.device("cpu")
TEXTS = ("The dog and the lion saw the horse in Paris, and the horse ran", "a lion and a horse")
DECODERS = [name for name, family in FAMILIES.items() if "Masked" not in family.net and family.net != "BertModel"]
CLASSIFIERS = [name for name in FAMILIES if not name.endswith(("-bare", "-untied"))]


def inputs(family: str, padding: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Two texts of different lengths, padded: tokens and attention mask (2, T)."""
    tokenizer = TOKENIZERS[FAMILIES[family].tokenizer]().tokenizer
    texts = [tokenizer.encode(text).ids for text in TEXTS]
    T = max(map(len, texts))
    tokens = [ids + [padding] * (T - len(ids)) for ids in texts]
    mask = [[1] * len(ids) + [0] * (T - len(ids)) for ids in texts]
    return torch.tensor(tokens), torch.tensor(mask)


@pytest.mark.parametrize("last", [1, 3])
@pytest.mark.parametrize("family", archetype_parameters(*DECODERS))
def test_the_last_layers_of_a_decoder(family: str, last: int, family_folder: Callable[[str], Path]) -> None:
    folder = family_folder(family)
    model = describe(Checkpoint.open(folder))
    weights = Weights.load(model, CPU)
    tokens, mask = inputs(family, weights.padding)
    layers = LastLayers(model, weights.net, last)
    with torch.inference_mode():
        expected = reference(folder)(input_ids=tokens, attention_mask=mask, output_hidden_states=True)
        states = expected.hidden_states[model.shape.n_layers - last]
        noise = torch.randn(states.shape, generator=torch.Generator().manual_seed(1))
        with layers.stream() as stream:
            with layers.reading(states):
                weights.net.base_model(input_ids=tokens, use_cache=False)
                stitched = weights.model.logits(stream()[mask == 1])
            with layers.reading(noise):
                weights.net.base_model(input_ids=tokens, use_cache=False)
                others = weights.model.logits(stream()[mask == 1])
            weights.net.base_model(input_ids=tokens, use_cache=False)
            again = weights.model.logits(stream()[mask == 1])
    torch.testing.assert_close(stitched, expected.logits[mask == 1], atol=1e-5, rtol=1e-5)
    torch.testing.assert_close(again, expected.logits[mask == 1], atol=1e-5, rtol=1e-5)
    assert not torch.allclose(others, stitched, atol=0.1)


@pytest.mark.parametrize("family", archetype_parameters(*CLASSIFIERS))
def test_the_last_layers_of_a_classifier(family: str, tmp_path: Path) -> None:
    folder = make_classifier(family, tmp_path)
    model = describe(Checkpoint.open(folder))
    net = load_net(model, CPU, CLASSIFIER)
    if net.config.pad_token_id is None:
        net.config.pad_token_id = 3
    tokens, mask = inputs(family, net.config.pad_token_id)
    layers = LastLayers(model, net, 2)
    with torch.inference_mode():
        plain = hf.AutoModelForSequenceClassification.from_pretrained(folder, dtype=torch.float32).eval()
        plain.config.pad_token_id = net.config.pad_token_id
        expected = plain(input_ids=tokens, attention_mask=mask, output_hidden_states=True)
        with layers.reading(expected.hidden_states[1]):
            given = {"input_ids": tokens} | ({} if model.causal else {"attention_mask": mask})
            stitched = net(**given).logits
    torch.testing.assert_close(stitched, expected.logits, atol=1e-5, rtol=1e-5)
    assert stitched.shape == (2, 3)


@pytest.mark.parametrize("last", [0, 4, -1])
def test_layers_that_are_not_there(last: int, family_folder: Callable[[str], Path]) -> None:
    model = describe(Checkpoint.open(family_folder("gpt2")))
    with pytest.raises(BadRequest, match=f"the last {last} layers .* it has 3, so give 1 to 3"):
        LastLayers(model, load_net(model, CPU), last)


def test_what_fails_midway_leaves_the_net_as_it_was(family_folder: Callable[[str], Path]) -> None:
    model = describe(Checkpoint.open(family_folder("gpt2")))
    net = load_net(model, CPU)
    tokens = torch.tensor([[5, 6, 7]])
    layers = LastLayers(model, net, 1)
    with torch.inference_mode():
        before = net(input_ids=tokens).logits
        with pytest.raises(RuntimeError), layers.reading(torch.zeros(1, 3, 5)):
            net(input_ids=tokens)
        assert net(input_ids=tokens).logits.equal(before)
