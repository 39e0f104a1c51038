"""Checkpoints to measure on: random ones of GPT-2's sizes in Hub format, and the real demo model."""

import json
from pathlib import Path

import torch
from safetensors.torch import save_file

from lexiscope.precompute.weights.architectures import describe
from lexiscope.precompute.weights.architectures.base import Model
from lexiscope.precompute.weights.checkpoint import Checkpoint
from lexiscope.precompute.weights.sources import resolve

SIZES = {"small": (12, 768, 12), "medium": (24, 1024, 16), "large": (36, 1280, 20)}  # layers, d_model, heads
D_VOCAB = 50257


def demo(data: Path) -> Model:
    return describe(resolve("demo", cache=data / ".cache"))


def random_gpt2(folder: Path, size: str, layers: int, tokenizer: Path, seed: int = 0) -> Checkpoint:
    """Write a checkpoint of GPT-2's shapes, with as many layers as are wanted and normal weights of GPT-2's scale."""
    _, d, heads = SIZES[size]
    generator = torch.Generator().manual_seed(seed)

    def normal(*shape: int) -> torch.Tensor:
        return torch.empty(*shape).normal_(0, 0.02, generator=generator)

    tensors = {"wte.weight": normal(D_VOCAB, d) * 7, "wpe.weight": normal(1024, d)}
    for layer in range(layers):
        for name, shape in (
            ("attn.c_attn", (d, 3 * d)),
            ("attn.c_proj", (d, d)),
            ("mlp.c_fc", (d, 4 * d)),
            ("mlp.c_proj", (4 * d, d)),
        ):
            tensors[f"h.{layer}.{name}.weight"] = normal(*shape)
            tensors[f"h.{layer}.{name}.bias"] = torch.zeros(shape[1])
        for name in ("ln_1", "ln_2"):
            tensors |= {f"h.{layer}.{name}.weight": torch.ones(d), f"h.{layer}.{name}.bias": torch.zeros(d)}
    tensors |= {"ln_f.weight": torch.ones(d), "ln_f.bias": torch.zeros(d)}
    folder.mkdir(parents=True, exist_ok=True)
    save_file(tensors, folder / "model.safetensors")
    sizes = {"n_layer": layers, "n_head": heads, "n_embd": d, "vocab_size": D_VOCAB, "n_positions": 1024}
    config = {"model_type": "gpt2", "architectures": ["GPT2LMHeadModel"], **sizes}
    (folder / "config.json").write_text(json.dumps(config))
    (folder / "tokenizer.json").write_bytes(tokenizer.read_bytes())
    return Checkpoint.open(folder, name=f"random-{size}")
