"""Make a small fine-tuned checkpoint in which some vectors, some heads and one whole layer did not change."""

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import load_file, save_file

from lexiscope.precompute.build.job import build
from lexiscope.precompute.build.options import BuildOptions
from lexiscope.precompute.weights.architectures import describe
from lexiscope.precompute.weights.checkpoint import Checkpoint
from lexiscope.precompute.weights.difference import Difference
from tests.support import builds
from tests.support.builds import Listener, quick_build
from tests.support.models import tiny_gpt2

BASE, TUNED = "tiny-base", "tiny-tuned"
DIFFERENCE = f"{TUNED}-minus-{BASE}"
# The neurons and the head are unchanged in every layer.
UNCHANGED_LAYER, UNCHANGED_NEURONS, UNCHANGED_HEAD = 0, (0, 3), 3
D_HEAD = 8

Change = Callable[[str, torch.Tensor], torch.Tensor]  # gets a tensor's name and its values


def tuned_from(base: Path, folder: Path, change: Change) -> Path:
    """Copy a checkpoint of one file with other weights."""
    shutil.copytree(base, folder)
    tensors = {name: change(name, tensor) for name, tensor in load_file(base / "model.safetensors").items()}
    save_file({name: tensor.contiguous() for name, tensor in tensors.items()}, folder / "model.safetensors")
    return folder


def nudged(tensor: torch.Tensor, seed: int, size: float = 0.05) -> torch.Tensor:
    """Return the tensor with a little noise."""
    generator = torch.Generator().manual_seed(seed)
    return tensor + size * tensor.std() * torch.randn(tensor.shape, generator=generator)


def fine_tune(name: str, tensor: torch.Tensor) -> torch.Tensor:
    """Change the weights of a small GPT-2 of four heads and two layers as a fine-tuning does."""
    if f"h.{UNCHANGED_LAYER}." in name or "h." not in name or tensor.ndim < 2:
        return tensor
    changed, neurons = nudged(tensor, seed=sum(name.encode())), list(UNCHANGED_NEURONS)
    d_model = tensor.shape[0]
    if name.endswith("mlp.c_fc.weight"):  # (d_model, d_mlp)
        changed[:, neurons] = tensor[:, neurons]
    elif name.endswith("mlp.c_proj.weight"):  # (d_mlp, d_model)
        changed[neurons] = tensor[neurons]
    elif name.endswith("attn.c_attn.weight"):  # (d_model, 3 d_model): queries, keys, values
        for part in range(3):
            head = slice(part * d_model + UNCHANGED_HEAD * D_HEAD, part * d_model + (UNCHANGED_HEAD + 1) * D_HEAD)
            changed[:, head] = tensor[:, head]
    elif name.endswith("attn.c_proj.weight"):  # (d_model, d_model)
        head = slice(UNCHANGED_HEAD * D_HEAD, (UNCHANGED_HEAD + 1) * D_HEAD)
        changed[head] = tensor[head]
    return changed


def fine_tune_llama(name: str, tensor: torch.Tensor) -> torch.Tensor:
    """Change a small Llama of four heads: the last head, and the keys and values that it shares, do not change."""
    if f"layers.{UNCHANGED_LAYER}." in name or "layers." not in name or tensor.ndim < 2:
        return tensor
    changed, neurons = nudged(tensor, seed=sum(name.encode())), list(UNCHANGED_NEURONS)
    if name.endswith(("gate_proj.weight", "up_proj.weight")):  # (d_mlp, d_model)
        changed[neurons] = tensor[neurons]
    elif name.endswith("down_proj.weight"):  # (d_model, d_mlp)
        changed[:, neurons] = tensor[:, neurons]
    elif name.endswith("o_proj.weight"):  # (d_model, n_heads d_head)
        changed[:, -D_HEAD:] = tensor[:, -D_HEAD:]
    else:  # (heads d_head, d_model)
        changed[-D_HEAD:] = tensor[-D_HEAD:]
    return changed


def difference_of(tuned: Path, base: Path, name: str | None = None) -> Difference:
    return Difference(describe(Checkpoint.open(tuned)), describe(Checkpoint.open(base)), name)


def build_difference(
    tuned: Path, base: Path, data: Path, listener: Listener | None = None, name: str | None = None, **options: Any
) -> Path:
    chosen = BuildOptions(**{"k": builds.K, "pairs": builds.PAIRS} | options)
    return build(difference_of(tuned, base, name), data, chosen, listener or Listener())


def make_difference_data(folder: Path, k: int, pairs: int) -> None:
    """Make folder/sources with a base and its fine-tuned model, and folder/data with the index of the difference and of
    the base alone."""
    sources, data = folder / "sources", folder / "data"
    base = tiny_gpt2(sources / BASE)
    tuned = tuned_from(base, sources / TUNED, fine_tune)
    build_difference(tuned, base, data, k=k, pairs=pairs)
    quick_build(base, data, k=k, pairs=0)
