"""The run of the model against `transformers`: logits, attention, mixed values, coefficients, for every variant."""

import json
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

from lexiscope.precompute.errors import BadWeights
from lexiscope.precompute.live.engine import Engine
from lexiscope.precompute.live.run import Watcher, run
from lexiscope.precompute.live.wire.asks import PromptAsk
from lexiscope.precompute.live.wire.errors import Cancelled
from lexiscope.precompute.live.wire.grammar import HeadOff, NeuronSet
from lexiscope.precompute.weights.architectures.base import Rotation
from lexiscope.precompute.weights.checkpoint import Checkpoint
from tests.precompute.live.reference import TEXT, Case, changed, close, make_case
from tests.support.models import tiny_gpt2, tiny_llama
from tests.support.nets import Net


class Everything(Watcher):
    def __init__(self) -> None:
        self.streams: list[tuple[tuple[int, str], Tensor]] = []
        self.attentions: list[tuple[Tensor, Tensor, Tensor]] = []
        self.keys: list[Tensor] = []
        self.coefficients: list[Tensor] = []

    def stream(self, layer: int, after: str, x: Tensor) -> None:
        self.streams.append(((layer, after), x))

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
        self.keys.append(keys)
        self.coefficients.append(coefficients)


def check_logits(case: Case) -> None:
    tokens, w = case.engine.words.prompt(TEXT), case.engine.weights
    with torch.inference_mode():
        last = run(w, torch.tensor([tokens]), [len(tokens)], [()], Watcher())
        expected = case.run(tokens).logits
        assert expected is not None
        close(w.model.logits(last[0]), expected)


def test_everything_equals_transformers(each_family: Case) -> None:
    tokens = each_family.engine.words.prompt(TEXT)
    expected, seen, w = each_family.run(tokens), Everything(), each_family.engine.weights
    with torch.inference_mode():
        last = run(w, torch.tensor([tokens]), [len(tokens)], [()], seen)
        if expected.logits is not None:
            close(w.model.logits(last[0]), expected.logits)
    for layer in range(w.shape.n_layers):
        x, weights, z = seen.attentions[layer]
        close(x[0], expected.reads[layer])
        close(weights[0], expected.attentions[layer])
        close(z[0].transpose(0, 1).flatten(1), expected.mixed[layer])
        close(seen.keys[layer][0], expected.keys[layer])
        close(seen.coefficients[layer][0], expected.coefficients[layer])
    assert [step for step, _ in seen.streams] == list(expected.streams)
    for (_, found), stream in zip(seen.streams, expected.streams.values(), strict=True):
        close(found[0], stream)


TOUCHES = (
    HeadOff(layer=0, head=1),
    HeadOff(layer=2, head=3),
    NeuronSet(layer=1, neuron=5, value=2.5),
    NeuronSet(layer=0, neuron=7),
)
AT_ONE_POSITION = (
    NeuronSet(layer=1, neuron=5, value=2.5, position=1),  # it holds there, whatever holds everywhere
    NeuronSet(layer=1, neuron=5, value=-1.0),
    HeadOff(layer=0, head=1, position=0),
    HeadOff(layer=2, head=3, position=1),
)


@contextmanager
def touched(net: Net, touches: Sequence[HeadOff | NeuronSet]) -> Iterator[None]:
    """The same changes made to the modules of `transformers`."""
    d_head = net.module(0, "w_o").weight.numel() // net.net.config.hidden_size // net.net.config.num_attention_heads

    def change(touch: HeadOff | NeuronSet) -> Callable[..., Any]:
        def hook(_: Any, given: Any) -> Any:
            changed = given[0].clone()
            rows = changed.view(-1, changed.shape[-1])  # one for each position
            where = slice(None) if touch.position is None else touch.position
            if isinstance(touch, HeadOff):
                rows[where, touch.head * d_head : (touch.head + 1) * d_head] = 0
            else:
                rows[where, touch.neuron] = touch.value
            return (changed,)

        return hook

    parts = ["w_o" if isinstance(touch, HeadOff) else "ff_value" for touch in touches]
    modules = [net.module(touch.layer, part) for touch, part in zip(touches, parts, strict=True)]
    hooks = [module.register_forward_pre_hook(change(touch)) for touch, module in zip(touches, modules, strict=True)]
    try:
        yield
    finally:
        for hook in hooks:
            hook.remove()


def test_interventions_equal_transformers_with_the_same_changes(each_family: Case) -> None:
    """Each prompt of a batch has its own, and texts are of different lengths."""
    w, words = each_family.engine.weights, each_family.engine.words
    prompts = [words.prompt(TEXT), words.prompt("The dog"), words.prompt(TEXT), words.prompt("a lion and a horse")]
    changes: list[Sequence[HeadOff | NeuronSet]] = [TOUCHES, AT_ONE_POSITION, (), TOUCHES[2:]]
    T = max(map(len, prompts))
    padded = torch.tensor([tokens + (words.padding,) * (T - len(tokens)) for tokens in prompts])
    with torch.inference_mode():
        last = run(w, padded, [len(tokens) for tokens in prompts], changes, Watcher())
    for found, tokens, change in zip(last, prompts, changes, strict=True):
        with touched(each_family.net, sorted(change, key=lambda touch: touch.position is not None)):
            expected = each_family.net.run(tokens)
        close(found[: len(tokens)], expected.streams[w.shape.n_layers - 1, "ff"])
    assert not torch.allclose(last[0], last[2], atol=1e-2)


def test_a_text_may_be_as_long_as_there_are_positions(every: Case) -> None:
    w = every.engine.weights
    tokens = torch.full((1, w.n_positions), 5)
    with torch.inference_mode():
        last = run(w, tokens, [w.n_positions], [()], Watcher())
    close(last[0], every.net.run((5,) * w.n_positions).streams[w.shape.n_layers - 1, "ff"])
    assert w.n_positions == (62 if "roberta" in w.shape.architecture else 64)


def hooks_of(net: Any) -> int:
    kinds = ("_forward_hooks", "_forward_pre_hooks")
    return sum(len(getattr(module, kind)) for module in net.modules() for kind in kinds)


class Fails(Watcher):
    """Ends the run at some layer."""

    def __init__(self, where: str) -> None:
        self.where = where

    def layer(self, layer: int) -> None:
        if self.where == "layer" and layer == 1:
            raise RuntimeError("in the middle")

    def attention(self, layer: int, *_: Any) -> None:
        if self.where == "attention" and layer == 2:
            raise RuntimeError("in the middle")

    def ff(self, layer: int, *_: Any) -> None:
        if self.where == "ff" and layer == 0:
            raise RuntimeError("in the middle")


def test_a_run_leaves_no_hook_behind(every: Case) -> None:
    w, tokens = every.engine.weights, every.engine.words.prompt(TEXT)
    before = hooks_of(w.net)
    every.ask(panel=("evolution", "attention", "patterns", "neurons", "coverage", "attribution"), **changed(TOUCHES))
    assert hooks_of(w.net) == before
    for where in ("layer", "attention", "ff"):
        with torch.inference_mode(), pytest.raises(RuntimeError, match="in the middle"):
            run(w, torch.tensor([tokens]), [len(tokens)], [()], Fails(where))
        assert hooks_of(w.net) == before
    asked = iter(range(100))
    with pytest.raises(Cancelled):
        every.engine.prompts([PromptAsk(text=TEXT)], cancelled=lambda: next(asked) == 2)
    assert hooks_of(w.net) == before


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


@pytest.mark.parametrize(("changes", "said"), [
    ({"hidden_act": "mish-mash"}, "cannot load .* as Llama"),
    ({"rope_parameters": {"rope_type": "spiral", "factor": 2.0}}, "cannot load .* as Llama"),
])  # fmt: skip
def test_what_cannot_be_run_is_named(tmp_path: Path, changes: dict[str, Any], said: str) -> None:
    path = tiny_llama(tmp_path) / "config.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | changes))
    with pytest.raises(BadWeights, match=said):
        Engine.load(Checkpoint.open(tmp_path), device="cpu")
