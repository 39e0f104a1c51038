"""Small random models for tests of live computations, each beside the same one as `transformers` runs it."""

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from torch import Tensor
from torch.testing import assert_close

from precompute.live.engine import Engine
from precompute.live.wire import PromptAnswer, PromptAsk
from precompute.weights.architectures import describe
from precompute.weights.architectures.base import Model
from precompute.weights.checkpoint import Checkpoint
from tests.support.models import load, tiny_gpt2, tiny_llama

TEXT = "The dog and the lion saw the horse in Paris"
MODELS: dict[str, Callable[[Path], Path]] = {
    "gpt2": lambda folder: tiny_gpt2(folder, biases=True, n_layers=3),
    "gpt2-untied": lambda folder: tiny_gpt2(folder, tied=False, biases=True, d_mlp=160),
    "llama": lambda folder: tiny_llama(folder, n_layers=3),
    "llama-untied": lambda folder: tiny_llama(folder, tied=False, biases=True, d_head=16, n_kv_heads=1),
}


@dataclass
class Case:
    engine: Engine
    reference: Any  # of transformers, attention written out
    folder: Path
    model: Model = field(init=False)

    def __post_init__(self) -> None:
        self.model = describe(Checkpoint.open(self.folder))
        self.gpt2 = self.engine.shape.architecture == "gpt2"

    @property
    def blocks(self) -> Any:
        return self.reference.transformer.h if self.gpt2 else self.reference.model.layers

    def parts(self, layer: int) -> dict[str, Any]:
        """The modules of a layer: attention, its last product, the FF's products with keys and values."""
        block = self.blocks[layer]
        attention, mlp = block.attn if self.gpt2 else block.self_attn, block.mlp
        if self.gpt2:
            return {"attention": attention, "w_o": attention.c_proj, "ff_key": mlp.c_fc, "ff_value": mlp.c_proj}
        return {"attention": attention, "w_o": attention.o_proj, "ff_key": mlp.gate_proj, "ff_value": mlp.down_proj}

    @torch.no_grad()
    def run(self, tokens: tuple[int, ...]) -> "Run":
        return run(self, tokens)

    def ask(self, text: str = TEXT, **fields: Any) -> PromptAnswer:
        (answer,) = self.engine.prompts([PromptAsk(text=text, **fields)])
        assert isinstance(answer, PromptAnswer), answer
        return answer


@dataclass
class Run:
    """What `transformers` computes for one prompt."""

    logits: Tensor  # (T, d_vocab)
    hidden: tuple[Tensor, ...]  # (T, d_model): the embedding, then after each layer; the last one normed
    attentions: tuple[Tensor, ...]  # (n_heads, T, T)
    inputs: dict[tuple[int, str], Tensor]  # (T, ...) of the products w_o (mixed values) and ff_value (coefficients)
    outputs: dict[tuple[int, str], Tensor]  # (T, d_model) of `attention`, (T, d_mlp) of ff_key before its activation


def run(case: Case, tokens: tuple[int, ...]) -> Run:
    inputs: dict[tuple[int, str], Tensor] = {}
    outputs: dict[tuple[int, str], Tensor] = {}

    def keep(layer: int, part: str) -> Callable[[Any, Any, Any], None]:
        def hook(_: Any, given: Any, made: Any) -> None:
            if given:
                inputs[layer, part] = given[0][0]
            outputs[layer, part] = (made[0] if isinstance(made, tuple) else made)[0]

        return hook

    hooks = [
        module.register_forward_hook(keep(layer, part))
        for layer in range(len(case.blocks))
        for part, module in case.parts(layer).items()
    ]
    try:
        out = case.reference(torch.tensor([tokens]), output_hidden_states=True, output_attentions=True)
    finally:
        for hook in hooks:
            hook.remove()
    hidden, attentions = tuple(h[0] for h in out.hidden_states), tuple(a[0] for a in out.attentions)
    return Run(out.logits[0], hidden, attentions, inputs, outputs)


def close(found: Tensor, expected: Tensor, tolerance: float = 1e-4) -> None:
    assert_close(found, expected, atol=tolerance, rtol=tolerance)


def make_case(folder: Path) -> Case:
    return Case(Engine.load(Checkpoint.open(folder), device="cpu"), load(folder, attn_implementation="eager"), folder)
