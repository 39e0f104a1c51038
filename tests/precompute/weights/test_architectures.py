"""The descriptions of GPT-2 and Llama against forward passes of `transformers` on small random models."""

import json
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file
from torch.nn.functional import silu
from transformers.activations import NewGELUActivation
from transformers.models.llama.modeling_llama import apply_rotary_pos_emb

from precompute.errors import BadWeights, NotFound, UnsupportedArchitecture
from precompute.weights.architectures import Model, describe, model_class, supported
from precompute.weights.checkpoint import Checkpoint
from tests.support.models import load, tiny_gpt2, tiny_llama

MAKERS: dict[str, Callable[..., Path]] = {"gpt2": tiny_gpt2, "llama": tiny_llama}
VARIANTS: dict[str, tuple[str, dict[str, Any]]] = {
    "gpt2": ("gpt2", {}),
    "gpt2 untied": ("gpt2", {"tied": False}),
    "gpt2 narrow mlp": ("gpt2", {"d_mlp": 40, "n_heads": 2}),
    "gpt2 sharded": ("gpt2", {"shard_size": "30KB"}),
    "llama grouped": ("llama", {}),
    "llama untied": ("llama", {"tied": False}),
    "llama one kv head": ("llama", {"n_kv_heads": 1, "n_heads": 3, "d_model": 24}),
    "llama no groups": ("llama", {"n_kv_heads": 4}),
    "llama head_dim": ("llama", {"d_head": 16, "shard_size": "30KB"}),
}
TOKENS = torch.tensor([[5, 300, 17, 256, 100, 5, 42]])


class Run:
    """A forward pass, and what went in and out of every module on the way."""

    def __init__(self, folder: Path, **inputs: Any) -> None:
        self.net = load(folder, attn_implementation="eager")
        self.seen: dict[str, tuple[Any, Any]] = {}
        for name, module in self.net.named_modules():
            module.register_forward_hook(
                lambda _, args, kwargs, out, name=name: self.seen.__setitem__(
                    name, (args or tuple(kwargs.values()), out)
                ),
                with_kwargs=True,
            )
        with torch.no_grad():
            self.result = self.net(TOKENS, output_attentions=True, **inputs)

    def into(self, name: str) -> torch.Tensor:
        value: torch.Tensor = self.seen[name][0][0]
        return value[0]

    def out_of(self, name: str) -> torch.Tensor:
        out = self.seen[name][1]
        value: torch.Tensor = out[0] if isinstance(out, tuple) else out
        return value[0]


@pytest.fixture(params=VARIANTS, scope="module")
def case(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> tuple[Model, Path]:
    family, sizes = VARIANTS[request.param]
    folder = MAKERS[family](tmp_path_factory.mktemp("model"), **sizes)
    return describe(Checkpoint.open(folder)), folder


def attention(model: Model, layer: int) -> str:
    return f"transformer.h.{layer}.attn" if model.shape.architecture == "gpt2" else f"model.layers.{layer}.self_attn"


def mlp(model: Model, layer: int) -> str:
    return f"transformer.h.{layer}.mlp" if model.shape.architecture == "gpt2" else f"model.layers.{layer}.mlp"


def pattern(scores: torch.Tensor, d_head: int) -> torch.Tensor:
    """Causal attention from bare scores (heads, query, key)."""
    later = torch.ones(scores.shape[-2:], dtype=torch.bool).triu(1)
    return (scores / math.sqrt(d_head)).masked_fill(later, -torch.inf).softmax(-1)


def test_shape_is_that_of_the_config(case: tuple[Model, Path]) -> None:
    model, folder = case
    s, c = model.shape, load(folder).config
    assert (s.n_layers, s.n_heads, s.d_model) == (c.num_hidden_layers, c.num_attention_heads, c.hidden_size)
    assert s.n_kv_heads == getattr(c, "num_key_value_heads", c.num_attention_heads)
    assert s.tied == c.tie_word_embeddings
    assert s.gated == (s.positions == "rotary") == (s.architecture == "llama")
    for kind in s.kinds:
        vectors = model.vectors(0, kind)
        assert vectors.shape == (s.count(kind), s.d_model)
        assert vectors.dtype == torch.float32
        assert vectors.is_contiguous()


def test_qk_gives_the_attention_scores(case: tuple[Model, Path]) -> None:
    model, folder = case
    # At equal positions rotary cancels out; learned positions are part of the hidden state.
    same = {"position_ids": torch.full_like(TOKENS, 3)} if model.shape.positions == "rotary" else {}
    run = Run(folder, **same)
    for layer in range(model.shape.n_layers):
        x = run.into(attention(model, layer))
        left, right = model.factors(layer, "qk")
        torch.testing.assert_close(
            pattern(x @ (left @ right) @ x.T, model.shape.d_head), run.result.attentions[layer][0], rtol=1e-4, atol=1e-5
        )


def test_rotary_positions_turn_the_rows_of_w_q_and_w_k(case: tuple[Model, Path]) -> None:
    model, folder = case
    s = model.shape
    run = Run(folder)
    for layer in range(s.n_layers):
        x = run.into(attention(model, layer))
        W_Q, K = model.factors(layer, "qk")
        q, k = x @ W_Q, x @ K.transpose(1, 2)  # (n_heads, tokens, d_head)
        if s.positions == "rotary":
            cos, sin = run.net.model.rotary_emb(x[None], torch.arange(len(x))[None])
            q, k = (turned[0] for turned in apply_rotary_pos_emb(q[None], k[None], cos, sin))
        torch.testing.assert_close(
            pattern(q @ k.transpose(1, 2), s.d_head), run.result.attentions[layer][0], rtol=1e-4, atol=1e-5
        )


def test_vo_gives_the_head_outputs(case: tuple[Model, Path]) -> None:
    model, folder = case
    run = Run(folder)
    for layer in range(model.shape.n_layers):
        x = run.into(attention(model, layer))
        left, right = model.factors(layer, "vo")
        heads = run.result.attentions[layer][0] @ (x @ (left @ right))  # (n_heads, tokens, d_model)
        torch.testing.assert_close(heads.sum(0), run.out_of(attention(model, layer)), rtol=1e-4, atol=1e-4)


def test_each_head_by_itself(case: tuple[Model, Path]) -> None:
    """Removing one head from the net changes its output by that head's part."""
    model, folder = case
    s = model.shape
    run = Run(folder)
    output = "attn.c_proj" if s.architecture == "gpt2" else "self_attn.o_proj"
    block = "transformer.h.1." if s.architecture == "gpt2" else "model.layers.1."
    mixed = run.into(block + output)  # (tokens, n_heads · d_head): the heads side by side
    x = run.into(attention(model, 1))
    W_V, W_O = model.factors(1, "vo")
    for head in range(s.n_heads):
        own = slice(head * s.d_head, (head + 1) * s.d_head)
        read = run.result.attentions[1][0, head] @ x @ W_V[head]
        torch.testing.assert_close(read, mixed[:, own], rtol=1e-4, atol=1e-5)
        alone = torch.zeros_like(mixed)
        alone[:, own] = mixed[:, own]
        with torch.no_grad():
            written = run.net.get_submodule(block + output)(alone)
        torch.testing.assert_close(read @ W_O[head], written, rtol=1e-4, atol=1e-5)
        first = s.row("w_v", head, 0)
        torch.testing.assert_close(model.vectors(1, "w_v")[first : first + s.d_head].T, W_V[head])


def test_ff_coefficients_and_output(case: tuple[Model, Path]) -> None:
    model, folder = case
    run = Run(folder)
    for layer in range(model.shape.n_layers):
        name = mlp(model, layer)
        x = run.into(name)
        gate = x @ model.vectors(layer, "ff_key").T
        if model.shape.gated:
            coefficients = silu(gate) * (x @ model.vectors(layer, "ff_up").T)
            theirs = run.into(f"{name}.down_proj")
        else:
            coefficients = NewGELUActivation()(gate)
            theirs = run.into(f"{name}.c_proj")
        torch.testing.assert_close(coefficients, theirs, rtol=1e-4, atol=1e-5)
        torch.testing.assert_close(
            coefficients @ model.vectors(layer, "ff_value"), run.out_of(name), rtol=1e-4, atol=1e-4
        )


def test_embedding_and_unembedding(case: tuple[Model, Path]) -> None:
    model, folder = case
    run = Run(folder)
    embedding, norm = ("wte", "ln_f") if model.shape.architecture == "gpt2" else ("embed_tokens", "norm")
    base = "transformer" if model.shape.architecture == "gpt2" else "model"
    torch.testing.assert_close(model.W_E[TOKENS[0]], run.out_of(f"{base}.{embedding}"))
    torch.testing.assert_close(run.out_of(f"{base}.{norm}") @ model.W_U.T, run.result.logits[0], rtol=1e-4, atol=1e-4)
    assert (model.W_U is model.W_E) == model.shape.tied


@pytest.mark.parametrize("family", MAKERS)
@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_half_precision_is_read_as_float32(tmp_path: Path, family: str, dtype: torch.dtype) -> None:
    half = describe(Checkpoint.open(MAKERS[family](tmp_path / "half", dtype=dtype)))
    full = describe(Checkpoint.open(MAKERS[family](tmp_path / "full")))
    for kind in full.shape.kinds:
        torch.testing.assert_close(half.vectors(1, kind), full.vectors(1, kind).to(dtype).float(), rtol=0, atol=0)


@pytest.mark.parametrize("family", MAKERS)
def test_names_without_prefix(tmp_path: Path, family: str) -> None:
    bare = describe(Checkpoint.open(MAKERS[family](tmp_path / "bare", bare=True)))
    whole = describe(Checkpoint.open(MAKERS[family](tmp_path / "whole")))
    assert bare.shape == whole.shape
    assert bare.prefix == ""
    assert torch.equal(bare.W_E, whole.W_E)
    for kind in whole.shape.kinds:
        assert torch.equal(bare.vectors(1, kind), whole.vectors(1, kind))


def test_a_repeated_head_of_a_tied_model_is_left_alone(tmp_path: Path) -> None:
    folder = tiny_gpt2(tmp_path)
    tensors = load_file(folder / "model.safetensors")
    tensors["lm_head.weight"] = tensors["transformer.wte.weight"].clone()
    save_file(tensors, folder / "model.safetensors", metadata={"format": "pt"})
    model = describe(Checkpoint.open(folder))
    assert model.W_U is model.W_E


@pytest.mark.parametrize("family", MAKERS)
def test_biases_do_not_matter(tmp_path: Path, family: str) -> None:
    model = describe(Checkpoint.open(MAKERS[family](tmp_path, biases=True)))
    assert {kind: len(model.vectors(0, kind)) for kind in model.shape.kinds} == {
        kind: model.shape.count(kind) for kind in model.shape.kinds
    }


@pytest.mark.parametrize(("family", "change", "said"), [
    ("gpt2", {"n_head": 5}, "32 cannot be divided by 5"),
    ("gpt2", {"n_embd": 48}, r"\(481, 32\)"),
    ("gpt2", {"n_embd": "32"}, "n_embd is '32'"),
    ("gpt2", {"n_layer": True}, "n_layer is True"),
    ("gpt2", {"n_layer": 0}, "n_layer is 0"),
    ("gpt2", {"n_layer": 10**9}, "h.2.attn"),
    ("gpt2", {"n_inner": 100}, r"\(32, 128\).*must be \(32, 100\)"),
    ("gpt2", {"vocab_size": None}, "vocab_size is missing"),
    ("gpt2", {"tie_word_embeddings": False}, "lm_head.weight"),
    ("gpt2", {"tie_word_embeddings": 1}, "tie_word_embeddings is 1"),
    ("llama", {"num_key_value_heads": 3}, "cannot be divided by 3"),
    ("llama", {"num_key_value_heads": 4}, "k_proj"),
    ("llama", {"head_dim": 16}, "q_proj"),
    ("llama", {"hidden_size": 2.5}, "hidden_size is 2.5"),
    ("llama", {"model_type": "gpt2"}, "wte.weight"),
])  # fmt: skip
def test_a_config_that_does_not_fit(tmp_path: Path, family: str, change: dict[str, Any], said: str) -> None:
    folder = MAKERS[family](tmp_path)
    config = json.loads((folder / "config.json").read_text()) | change
    (folder / "config.json").write_text(json.dumps(config))
    with pytest.raises(BadWeights, match=said):
        describe(Checkpoint.open(folder))


@pytest.mark.parametrize(("config", "said"), [
    ({"model_type": "bert"}, "bert.*Supported are: gpt2, llama"),
    ({"model_type": "mamba", "architectures": ["GPT2LMHeadModel"]}, "mamba"),
    ({"architectures": ["T5Model"]}, "T5Model"),
    ({}, "unknown"),
    ({"model_type": ["gpt2"]}, "gpt2, llama"),
    ({"model_type": "llama", "quantization_config": {"quant_method": "gptq"}}, "quantised.*gptq"),
])  # fmt: skip
def test_an_unsupported_architecture(config: dict[str, Any], said: str) -> None:
    with pytest.raises(UnsupportedArchitecture, match=said):
        model_class(config, "some/model")


def test_model_type_may_be_missing() -> None:
    assert model_class({"architectures": ["GPT2LMHeadModel"]}, "old/model") is supported()["gpt2"]


@pytest.mark.parametrize(("layer", "kind", "said"), [
    (2, "ff_key", "0 to 1"), (-1, "ff_key", "0 to 1"), (0, "ff_up", "only ff_key"), (0, "w_x", "only ff_key"),
])  # fmt: skip
def test_what_does_not_exist(tmp_path: Path, layer: int, kind: str, said: str) -> None:
    model = describe(Checkpoint.open(tiny_gpt2(tmp_path)))
    with pytest.raises(NotFound, match=said):
        model.vectors(layer, kind)
    with pytest.raises(NotFound, match="vo and qk"):
        model.factors(0, "ov")
