"""The run of the model against `transformers`: logits, attention, mixed values, coefficients, for every variant."""

import json
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

from precompute.errors import BadWeights
from precompute.live.engine import Engine
from precompute.live.run import Rotation, Watcher, run
from precompute.live.wire import HeadOff, NeuronSet
from precompute.weights.checkpoint import Checkpoint
from tests.precompute.live.reference import TEXT, Case, close, make_case
from tests.support.models import tiny_gpt2, tiny_llama


class Everything(Watcher):
    def __init__(self) -> None:
        self.streams: list[Tensor] = []
        self.attentions: list[tuple[Tensor, Tensor, Tensor]] = []
        self.coefficients: list[Tensor] = []

    def stream(self, layer: int, after: str, x: Tensor) -> None:  # noqa: ARG002
        self.streams.append(x)

    def attention(
        self,
        layer: int,  # noqa: ARG002
        x: Tensor,
        weights: Tensor,
        z: Tensor,
        rotation: Rotation | None,  # noqa: ARG002
    ) -> None:
        self.attentions.append((x, weights, z))

    def ff(self, layer: int, keys: Tensor, coefficients: Tensor) -> None:  # noqa: ARG002
        self.coefficients.append(coefficients)


def check_logits(case: Case) -> None:
    tokens, w = case.engine.words.prompt(TEXT), case.engine.weights
    with torch.inference_mode():
        last = run(w, torch.tensor([tokens]), [len(tokens)], [()], Watcher())
        close(w.logits(last[0]), case.run(tokens).logits)


def test_everything_equals_transformers(case: Case) -> None:
    tokens = case.engine.words.prompt(TEXT)
    expected, seen, w = case.run(tokens), Everything(), case.engine.weights
    with torch.inference_mode():
        last = run(w, torch.tensor([tokens]), [len(tokens)], [()], seen)
        close(w.logits(last[0]), expected.logits)
    for layer in range(w.shape.n_layers):
        _, weights, z = seen.attentions[layer]
        close(weights[0], expected.attentions[layer])
        close(z[0].transpose(0, 1).flatten(1), expected.inputs[layer, "w_o"])
        close(seen.coefficients[layer][0], expected.inputs[layer, "ff_value"])
        close(seen.streams[2 * layer][0], expected.hidden[layer])
        read, written = seen.streams[2 * layer][0], seen.streams[2 * layer + 1][0]
        close(written, read + expected.outputs[layer, "attention"])


def test_each_heads_share_is_its_own_product(case: Case) -> None:
    """With all other heads off, a head adds its mixed values times its rows of w_o."""
    w, seen = case.engine.weights, Everything()
    tokens = torch.tensor([case.engine.words.prompt(TEXT)])
    layer, head = w.shape.n_layers - 1, 2
    others = tuple(HeadOff(layer=layer, head=h) for h in range(w.shape.n_heads) if h != head)
    with torch.inference_mode():
        run(w, tokens, [tokens.shape[1]], [others], seen)
    z = case.run(tuple(tokens[0].tolist())).inputs[layer, "w_o"]
    rows = slice(head * w.shape.d_head, (head + 1) * w.shape.d_head)
    expected = z[:, rows] @ case.model.vectors(layer, "w_o")[rows]
    bias = w.bias("w_o", layer)
    if bias is not None:
        expected = expected + bias
    close(seen.streams[-2][0] - seen.streams[-3][0], expected)


@pytest.mark.parametrize("value", [0.0, 2.5])
def test_a_neuron_that_is_set_equals_transformers_with_the_same_change(case: Case, value: float) -> None:
    tokens = case.engine.words.prompt(TEXT)

    def change(_: Any, given: Any) -> Any:
        changed = given[0].clone()
        changed[..., 5] = value
        return (changed,)

    hook = case.parts(0)["ff_value"].register_forward_pre_hook(change)
    try:
        expected = case.run(tokens).logits
    finally:
        hook.remove()
    w = case.engine.weights
    with torch.inference_mode():
        touches = [NeuronSet(layer=0, neuron=5, value=value)]
        last = run(w, torch.tensor([tokens]), [len(tokens)], [touches], Watcher())
        close(w.logits(last[0]), expected)
    assert not torch.allclose(expected, case.run(tokens).logits, atol=1e-3)


def test_padding_reaches_no_position_of_the_text(case: Case) -> None:
    w = case.engine.weights
    short, long = case.engine.words.prompt("The dog"), case.engine.words.prompt(TEXT)
    padded = [short + (7,) * (len(long) - len(short)), long]
    with torch.inference_mode():
        both = run(w, torch.tensor(padded), [len(short), len(long)], [(), ()], Watcher())
        alone = run(w, torch.tensor([short]), [len(short)], [()], Watcher())
    close(both[0, : len(short)], alone[0], 1e-5)


@pytest.mark.parametrize("rope", [
    {"rope_type": "default", "rope_theta": 500.0},
    {"rope_type": "linear", "factor": 4.0, "rope_theta": 10_000.0},
    {"rope_type": "llama3", "factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0,
     "original_max_position_embeddings": 32, "rope_theta": 10_000.0},
], ids=lambda rope: rope["rope_type"])  # fmt: skip
@pytest.mark.parametrize("older", [False, True])
def test_rotary_positions_of_every_known_type(tmp_path: Path, rope: dict[str, Any], older: bool) -> None:
    path = tiny_llama(tmp_path, d_head=16) / "config.json"
    config = json.loads(path.read_text())
    config.pop("rope_parameters", None)
    if older:
        config["rope_theta"] = rope["rope_theta"]
        config["rope_scaling"] = None if rope["rope_type"] == "default" else dict(rope)
    else:
        config["rope_parameters"] = rope
    path.write_text(json.dumps(config))
    check_logits(make_case(tmp_path))


@pytest.mark.parametrize("changes", [
    {"scale_attn_weights": False}, {"scale_attn_by_inverse_layer_idx": True}, {"activation_function": "relu"},
    {"activation_function": "gelu"}, {"layer_norm_epsilon": 0.1},
], ids=str)  # fmt: skip
def test_what_a_gpt2_config_may_change(tmp_path: Path, changes: dict[str, Any]) -> None:
    path = tiny_gpt2(tmp_path, biases=True) / "config.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | changes))
    check_logits(make_case(tmp_path))


def test_biases_of_a_llamas_mlp(tmp_path: Path) -> None:
    check_logits(make_case(tiny_llama(tmp_path, biases=True, mlp_biases=True)))


@pytest.mark.parametrize(("changes", "said"), [
    ({"hidden_act": "mish-mash"}, "cannot load .* as Llama"),
    ({"rope_parameters": {"rope_type": "spiral", "factor": 2.0}}, "cannot load .* as Llama"),
])  # fmt: skip
def test_what_cannot_be_run_is_named(tmp_path: Path, changes: dict[str, Any], said: str) -> None:
    path = tiny_llama(tmp_path) / "config.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | changes))
    with pytest.raises(BadWeights, match=said):
        Engine.load(Checkpoint.open(tmp_path), device="cpu")
