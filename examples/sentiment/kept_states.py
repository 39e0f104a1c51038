"""Runs a net's frozen layers once and keeps their states, so that the layers above can be trained on these alone."""

import random
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import torch
from rich.progress import track
from torch import Tensor
from torch.nn.utils.rnn import pad_sequence


@dataclass(frozen=True)
class Tokenised:
    ids: list[Tensor]  # of each text, (n_tokens,)
    labels: Tensor  # (n_texts,)


@contextmanager
def only(net: Any, chosen: slice) -> Iterator[list[Any]]:
    """The net with some of its layers alone, for a while."""
    parent, name, layers = next(
        (parent, name, child)
        for parent in net.base_model.modules()
        for name, child in parent.named_children()
        if isinstance(child, torch.nn.ModuleList) and len(child) == net.config.num_hidden_layers
    )
    setattr(parent, name, layers[chosen])
    try:
        yield list(layers[chosen])
    finally:
        setattr(parent, name, layers)


@contextmanager
def trained_part(net: Any, n_layers: int) -> Iterator[tuple[list[Any], list[Tensor]]]:
    """The net with its last layers alone, and a list: its one entry is what they read, whatever is below them."""
    kept: list[Tensor] = []
    with only(net, slice(-n_layers, None)) as layers:
        hook = layers[0].register_forward_pre_hook(lambda _, args: (kept[0], *args[1:]))
        try:
            yield layers, kept
        finally:
            hook.remove()


def inputs(net: Any, ids: list[Tensor]) -> dict[str, Tensor]:
    """The texts of a batch, padded on the right: (batch, longest)."""
    lengths = torch.tensor([len(row) for row in ids])
    mask = (torch.arange(int(lengths.max())) < lengths[:, None]).long()
    padded = pad_sequence(ids, batch_first=True, padding_value=net.config.pad_token_id)
    return {"input_ids": padded, "attention_mask": mask}


def batches(ids: list[Tensor], size: int, draw: random.Random | None = None) -> list[list[int]]:
    """Numbers of texts, those of about the same length together, which saves padding.

    With `draw`, texts are shuffled and only eight batches' worth are sorted at a time, so that epochs differ.
    """
    order = list(range(len(ids)))
    group = 8 * size if draw else len(ids)
    if draw:
        draw.shuffle(order)
    found = []
    for start in range(0, len(order), group):
        by_length = sorted(order[start : start + group], key=lambda text: len(ids[text]))
        found += [by_length[first : first + size] for first in range(0, len(by_length), size)]
    if draw:
        draw.shuffle(found)
    return found


def products(bfloat16: bool) -> Any:
    """Whether products of matrices are made in bfloat16, for a while."""
    return torch.autocast("cpu", dtype=torch.bfloat16, enabled=bfloat16)


@torch.no_grad()
def frozen_states(net: Any, texts: Tokenised, n_trained: int, size: int, bfloat16: bool) -> list[Tensor]:
    """Of each text what its first trained layer reads: (n_tokens, d_model)."""
    states: list[Tensor] = [torch.empty(0)] * len(texts.ids)
    with only(net, slice(0, -n_trained)) as layers, products(bfloat16):
        outputs: list[Any] = []
        hook = layers[-1].register_forward_hook(lambda _, __, output: outputs.append(output))
        for batch in track(batches(texts.ids, size), "Frozen layers"):
            net.base_model(**inputs(net, [texts.ids[text] for text in batch]))
            output = outputs.pop()
            stream = output if isinstance(output, Tensor) else output[0]  # (batch, longest, d_model)
            for row, text in enumerate(batch):
                states[text] = stream[row, : len(texts.ids[text])].float().clone()
        hook.remove()
    return states
