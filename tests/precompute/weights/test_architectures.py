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
from precompute.weights.architectures import describe, model_class, supported
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
NAMES = {  # of the modules in transformers
    "gpt2": {"base": "transformer", "block": "transformer.h.{}", "attention": "attn", "w_o": "attn.c_proj",
             "ff_value": "mlp.c_proj", "W_E": "wte", "norm": "ln_f"},
    "llama": {"base": "model", "block": "model.layers.{}", "attention": "self_attn", "w_o": "self_attn.o_proj",
              "ff_value": "mlp.down_proj", "W_E": "embed_tokens", "norm": "norm"},
}  # fmt: skip


class Case:
    """A model as it is described, a forward pass of it, and what went in and out of every module on the way."""

    def __init__(self, folder: Path) -> None:
        self.model = describe(Checkpoint.open(folder))
        self.names = NAMES[self.model.shape.architecture]
        self.net = load(folder, attn_implementation="eager")
        self.seen: dict[str, tuple[Any, Any]] = {}

        def watch(name: str) -> Callable[..., None]:
            return lambda _, args, kwargs, out: self.seen.update({name: (args or tuple(kwargs.values()), out)})

        for name, module in self.net.named_modules():
            module.register_forward_hook(watch(name), with_kwargs=True)
        with torch.no_grad():
            self.result = self.net(TOKENS, output_attentions=True)
        self.layers = range(self.model.shape.n_layers)

    def name(self, layer: int, module: str) -> str:
        return f"{self.names['block'].format(layer)}.{self.names.get(module, module)}"

    def into(self, name: str) -> torch.Tensor:
        value: torch.Tensor = self.seen[name][0][0]
        return value[0]

    def out_of(self, name: str) -> torch.Tensor:
        out = self.seen[name][1]
        value: torch.Tensor = out[0] if isinstance(out, tuple) else out
        return value[0]


@pytest.fixture(params=VARIANTS, scope="module")
def case(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Case:
    family, sizes = VARIANTS[request.param]
    return Case(MAKERS[family](tmp_path_factory.mktemp("model"), **sizes))


def close(found: torch.Tensor, expected: torch.Tensor) -> None:
    torch.testing.assert_close(found, expected, rtol=1e-4, atol=1e-5)


def test_shape_is_that_of_the_config(case: Case) -> None:
    s, c = case.model.shape, case.net.config
    assert (s.n_layers, s.n_heads, s.d_model) == (c.num_hidden_layers, c.num_attention_heads, c.hidden_size)
    assert s.n_kv_heads == getattr(c, "num_key_value_heads", c.num_attention_heads)
    assert s.tied == c.tie_word_embeddings
    assert s.gated == (s.positions == "rotary") == (s.architecture == "llama")
    for kind in s.kinds:
        vectors = case.model.vectors(0, kind)
        assert (vectors.shape, vectors.dtype) == ((s.count(kind), s.d_model), torch.float32)
        assert vectors.is_contiguous()


def test_qk_gives_the_attention(case: Case) -> None:
    """Rotary positions turn the rows of w_q and w_k, which are in the right order then."""
    s = case.model.shape
    for layer in case.layers:
        x = case.into(case.name(layer, "attention"))
        W_Q, K = case.model.factors(layer, "qk")
        q, k = x @ W_Q, x @ K.transpose(1, 2)  # (n_heads, tokens, d_head)
        if s.positions == "rotary":
            cos, sin = case.net.model.rotary_emb(x[None], torch.arange(len(x))[None])
            q, k = (turned[0] for turned in apply_rotary_pos_emb(q[None], k[None], cos, sin))
        later = torch.ones(len(x), len(x), dtype=torch.bool).triu(1)
        scores = (q @ k.transpose(1, 2) / math.sqrt(s.d_head)).masked_fill(later, -torch.inf)
        close(scores.softmax(-1), case.result.attentions[layer][0])


def test_vo_gives_the_output_of_each_head(case: Case) -> None:
    """What the net's own last product makes of one head's mixed values and zeros for the others."""
    s = case.model.shape
    for layer in case.layers:
        x, mixed = case.into(case.name(layer, "attention")), case.into(case.name(layer, "w_o"))
        W_V, W_O = case.model.factors(layer, "vo")  # mixed is (tokens, n_heads · d_head): the heads side by side
        for head in range(s.n_heads):
            own = slice(head * s.d_head, (head + 1) * s.d_head)
            read = case.result.attentions[layer][0, head] @ x @ W_V[head]
            close(read, mixed[:, own])
            alone = torch.zeros_like(mixed)
            alone[:, own] = mixed[:, own]
            with torch.no_grad():
                close(read @ W_O[head], case.net.get_submodule(case.name(layer, "w_o"))(alone))
            first = s.row("w_v", head, 0)
            close(case.model.vectors(layer, "w_v")[first : first + s.d_head].T, W_V[head])


def test_ff_coefficients_and_output(case: Case) -> None:
    for layer in case.layers:
        x = case.into(case.name(layer, "mlp"))
        gate = x @ case.model.vectors(layer, "ff_key").T
        gated = case.model.shape.gated
        coefficients = silu(gate) * (x @ case.model.vectors(layer, "ff_up").T) if gated else NewGELUActivation()(gate)
        close(coefficients, case.into(case.name(layer, "ff_value")))
        torch.testing.assert_close(
            coefficients @ case.model.vectors(layer, "ff_value"),
            case.out_of(case.name(layer, "mlp")),
            rtol=1e-4,
            atol=1e-4,
        )


def test_embedding_and_unembedding(case: Case) -> None:
    model, base = case.model, case.names["base"]
    torch.testing.assert_close(model.W_E[TOKENS[0]], case.out_of(f"{base}.{case.names['W_E']}"))
    logits = case.out_of(f"{base}.{case.names['norm']}") @ model.W_U.T
    torch.testing.assert_close(logits, case.result.logits[0], rtol=1e-4, atol=1e-4)
    assert (model.W_U is model.W_E) == model.shape.tied


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


@pytest.mark.parametrize(("family", "change", "said"), [
    ("gpt2", {"n_head": 5}, "32 cannot be divided by 5"),
    ("gpt2", {"n_embd": 48}, r"\(481, 32\)"),
    ("gpt2", {"n_embd": "32"}, "n_embd is '32'"),
    ("gpt2", {"n_layer": True}, "n_layer is True"),
    ("gpt2", {"n_layer": 0}, "n_layer is 0"),
    ("gpt2", {"n_layer": 10**9}, "h.2.mlp"),
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
    ({"model_type": "t5"}, "t5.*Supported are: BERT, .*GPT-2, .*Llama"),
    ({"model_type": "mamba", "architectures": ["GPT2LMHeadModel"]}, "mamba"),
    ({"architectures": ["T5Model"]}, "T5Model"),
    ({}, "unknown"),
    ({"model_type": ["gpt2"]}, "Supported are"),
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
