"""Where heads look by position alone is what `transformers` computes when every token is the same, and a head that was
made to look at one place is named for it."""

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file

from lexiscope.precompute.index.index import Index
from lexiscope.precompute.index.layout import Piece
from lexiscope.precompute.index.tensor_file import TensorFile, write_tensors
from lexiscope.precompute.project.positions import position_arrays
from lexiscope.precompute.weights.architectures import describe
from lexiscope.precompute.weights.checkpoint import Checkpoint
from tests.support.builds import copy, faults, quick_build
from tests.support.families import FAMILIES, archetype_parameters
from tests.support.nets import Net

# Windows are left out of what is stored: here they are longer than the text.
WIDE = {"sliding_window": 128, "window_size": 128}


def saved(name: str, folder: Path) -> Path:
    wide: dict[str, Any] = {field: WIDE[field] for field in WIDE if field in FAMILIES[name].sizes}
    return FAMILIES[name].save(folder / name, **wide)


def attention_of_one_token(net: Net, layer: int, rotary: bool) -> torch.Tensor:
    """Return the attention (n_heads, T, T) of a layer in a text whose tokens all are the mean token, where positions
    are rotary; where they are learned, of a text of which only the vectors of positions are left."""
    body, T = net.net, 65
    if rotary:
        tokens = torch.arange(body.config.vocab_size)[:, None]
        norm = net.norm("attention", layer)
        mean = norm(body(tokens, output_hidden_states=True).hidden_states[0][:, 0]).mean(dim=0)
        handle = norm.register_forward_hook(lambda _, __, output: mean.expand_as(output))
    else:
        T = min(T, body.config.max_position_embeddings - (2 if "roberta" in body.config.model_type else 0))
        kept = net.norm("attention", layer)
        for module in net.body.modules():
            if isinstance(module, torch.nn.LayerNorm) and module is not kept:  # norms before it do nothing more
                module.weight.fill_(1), module.bias.fill_(0)
        for at in range(len(net.blocks)):
            for written in (net.module(at, "w_o"), net.module(at, "ff_value")):
                written.weight.zero_(), written.bias.zero_()
        for name, table in net.body.named_modules():
            if isinstance(table, torch.nn.Embedding) and "position" not in name and not name.endswith("wpe"):
                table.weight.zero_()
        handle = None
    looks: torch.Tensor = body(torch.full((1, T), 7), output_attentions=True).attentions[layer][0]
    if handle:
        handle.remove()
    return looks.double()


def expected(looks: torch.Tensor, rotary: bool, causal: bool) -> tuple[list[list[float]], list[list[float]]]:
    """Sum attention up head by head and position by position."""
    n, shares, by_distance = looks.shape[1], list[list[float]](), list[list[float]]()
    for head in looks.tolist():
        if rotary:
            by_distance.append(head[-1][::-1])
            shares.append([np.nan, head[-1][-2], head[-1][-1], np.nan])
            continue
        rows = range(2, n - 1)
        distances = range(0 if causal else 1 - n, n)
        by_distance.append([sum(head[i][i - d] for i in rows if 0 <= i - d < n) / len(rows) for d in distances])
        places = (lambda _: 0), (lambda i: i - 1), (lambda i: i), (lambda i: i + 1)
        shares.append([sum(head[i][place(i)] for i in rows) / len(rows) for place in places])
        if causal:
            shares[-1][3] = np.nan
    return shares, by_distance


@pytest.mark.parametrize("name", archetype_parameters())
def test_shares_are_those_of_a_run_without_content(tmp_path: Path, name: str) -> None:
    folder = saved(name, tmp_path)
    model = describe(Checkpoint.open(folder))
    rotary, causal = model.shape.positions == "rotary", model.shape.causal
    for layer in (0, 1):
        with ThreadPoolExecutor(1) as pool:
            arrays = position_arrays(model, layer, model.W_E, pool)
        shares, by_distance = expected(attention_of_one_token(Net(folder), layer, rotary), rotary, causal)
        np.testing.assert_allclose(arrays["positions.by_distance"], by_distance, rtol=1e-4, atol=1e-6)
        np.testing.assert_allclose(arrays["positions.shares"], shares, rtol=1e-4, atol=1e-6)


@pytest.fixture(scope="module")
def planted(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """A small GPT-2 whose first three heads of layer 1 look one back, at themselves and at the first position: the
    vectors of its positions are points on circles, which one head turns back by a step. And its index."""
    folder = FAMILIES["gpt2"].save(tmp_path_factory.mktemp("planted") / "gpt2")
    tensors = load_file(folder / "model.safetensors")
    angles = torch.arange(64)[:, None] * torch.tensor([1, 5, 11, 23]) * 2 * torch.pi / 64  # (positions, circles)
    wpe = torch.zeros(64, 32)
    wpe[:, :8] = torch.cat([angles.cos(), angles.sin()], dim=1)
    wpe[:, 8:16] = -wpe[:, :8]  # so that the norm finds a mean of 0
    steps, at = torch.diag_embed(angles[1].cos()), torch.diag_embed(angles[1].sin())
    back = torch.cat([torch.cat([steps, -at], dim=1), torch.cat([at, steps], dim=1)])  # turns a row back by a position
    weight, bias = torch.zeros(32, 96), torch.zeros(96)
    for head, turn in enumerate((back, torch.eye(8), torch.zeros(8, 8))):
        weight[:8, 8 * head : 8 * head + 8] = 5 * turn
        weight[:8, 32 + 8 * head : 40 + 8 * head] = torch.eye(8)
    bias[16:24] = 10 * wpe[0, :8]
    tensors |= {"transformer.wpe.weight": wpe, "transformer.h.1.ln_1.weight": torch.ones(32)}
    tensors |= {"transformer.h.1.ln_1.bias": torch.zeros(32)}
    tensors |= {"transformer.h.1.attn.c_attn.weight": weight, "transformer.h.1.attn.c_attn.bias": bias}
    save_file(tensors, folder / "model.safetensors", {"format": "pt"})
    return folder, quick_build(folder, tmp_path_factory.mktemp("built"), pairs=0, kinds=("w_q",))


def test_planted_heads_are_named(planted: tuple[Path, Path]) -> None:
    index = Index.open(planted[1])
    heads = [index.positions(1, head) for head in range(4)]
    assert [head and head["words"] for head in heads] == ["previous token", "same position", "first token", None]
    previous = heads[0]
    assert previous
    assert previous["share"] == previous["shares"]["previous"] > 0.9
    assert (previous["by"], previous["distances"][:2], [*previous["shares"]]) == (
        "position", [0, 1], ["first", "previous", "same", "spread"],
    )  # fmt: skip
    assert sum(previous["by_distance"]) == pytest.approx(1)
    assert previous["by_distance"][1] == pytest.approx(previous["share"])


def test_verify_finds_wrong_shares(planted: tuple[Path, Path], tmp_path: Path) -> None:
    folder, built = planted
    assert not faults(built, folder)
    for array in ("positions.shares", "positions.by_distance"):
        index = copy(built, tmp_path / array)
        path = index / Piece("heads", 1).file(1)
        file = TensorFile(path)
        arrays = {name: file.array(name).copy() for name in file.tensors}
        arrays[array][2] += np.float32(0.01)
        write_tensors(path, arrays, file.metadata)
        assert any("where head 2 looks by position" in fault for fault in faults(index, folder))
