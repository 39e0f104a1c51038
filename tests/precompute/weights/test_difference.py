"""The difference of two checkpoints as a source of vectors, and which two have none."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file

from lexiscope.precompute.errors import BadWeights
from lexiscope.precompute.shape import MATRICES
from tests.support.differences import difference_of, nudged, tuned_from
from tests.support.models import tiny_gpt2, tiny_llama


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tiny_gpt2(tmp_path_factory.mktemp("base") / "base", d_model=8, n_heads=2, d_mlp=6, tied=False)


def tuned_everywhere(name: str, tensor: torch.Tensor) -> torch.Tensor:
    return nudged(tensor, seed=len(name))


def change_config(folder: Path, **fields: object) -> None:
    path = folder / "config.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | fields))


def change_tokens(folder: Path, change: Callable[[dict[str, int]], None]) -> None:
    path = folder / "tokenizer.json"
    document = json.loads(path.read_text())
    change(document["model"]["vocab"])
    path.write_text(json.dumps(document))


@pytest.mark.parametrize("family", [tiny_gpt2, tiny_llama])
def test_vectors_and_factors_are_subtracted(tmp_path: Path, family: Callable[[Path], Path]) -> None:
    base = family(tmp_path / "base")
    difference = difference_of(tuned_from(base, tmp_path / "tuned", tuned_everywhere), base)
    shape = difference.shape
    assert (difference.checkpoint.name, difference.checkpoint.source) == ("tuned-minus-base", str(tmp_path / "tuned"))
    for kind in shape.weight_kinds:
        tuned, own = (model.vectors(1, kind).numpy() for model in (difference.tuned, difference.base))
        np.testing.assert_array_equal(difference.vectors(1, kind).numpy(), tuned - own)
    for matrix in MATRICES:
        left, right = difference.factors(1, matrix)
        assert left.shape == (shape.n_heads, shape.d_model, 2 * shape.d_head)
        tuned, own = (
            (a @ b).numpy() for a, b in (model.factors(1, matrix) for model in (difference.tuned, difference.base))
        )
        np.testing.assert_allclose((left @ right).numpy(), tuned - own, atol=1e-6)
    assert difference.W_E is difference.base.W_E
    assert difference.embedding_changes["W_E"] == pytest.approx(0.05, rel=0.1)


def test_names_of_tensors_need_not_agree(tmp_path: Path) -> None:
    """One with a head has a prefix before its names, one without has none; tied or not is the base's matter."""
    base, whole = tiny_gpt2(tmp_path / "base", bare=True), tiny_gpt2(tmp_path / "whole")
    tuned = tuned_from(whole, tmp_path / "tuned", lambda name, tensor: tensor + 1 if "c_fc.weight" in name else tensor)
    difference = difference_of(tuned, base)
    np.testing.assert_allclose(difference.vectors(0, "ff_key").numpy(), 1, atol=1e-6)
    assert not difference.vectors(0, "ff_value").any()
    assert difference.embedding_changes == {"W_E": 0}


def test_more_tokens_at_the_end_of_the_tuned_model(base: Path, tmp_path: Path) -> None:
    """A fine-tune for chats has a few tokens more, with rows of their own."""

    def more_rows(name: str, tensor: torch.Tensor) -> torch.Tensor:
        return torch.cat([tensor, torch.ones(3, 8)]) if name.endswith(("wte.weight", "lm_head.weight")) else tensor

    tuned = tuned_from(base, tmp_path / "tuned", more_rows)
    d_vocab = json.loads((base / "config.json").read_text())["vocab_size"]
    change_config(tuned, vocab_size=d_vocab + 3)
    change_tokens(tuned, lambda vocabulary: vocabulary.update({"<chat>": d_vocab}))
    difference = difference_of(tuned, base)
    assert (difference.shape.d_vocab, len(difference.W_E), len(difference.W_U)) == (d_vocab,) * 3
    assert difference.embedding_changes == {"W_E": 0, "W_U": 0}
    with pytest.raises(BadWeights, match=rf"{d_vocab} rows in base and {d_vocab + 3} in tuned"):
        difference_of(base, tuned)


@pytest.mark.parametrize(("other", "said"), [
    ({"n_layers": 3}, "n_layers is 3 in other and 2 in base"),
    ({"n_heads": 4}, "n_heads is 4 in other and 2 in base"),
    ({"d_model": 16}, "d_model is 16 in other and 8 in base"),
    ({"d_mlp": 7}, "d_mlp is 7 in other and 6 in base"),
])  # fmt: skip
def test_other_shapes(base: Path, tmp_path: Path, other: dict[str, int], said: str) -> None:
    sizes: dict[str, Any] = {"d_model": 8, "n_heads": 2, "d_mlp": 6} | other
    with pytest.raises(BadWeights, match=said):
        difference_of(tiny_gpt2(tmp_path / "other", **sizes), base)


def test_another_family(base: Path, tmp_path: Path) -> None:
    llama = tiny_llama(tmp_path / "llama", n_heads=2, n_kv_heads=2, d_model=8, d_mlp=6)
    with pytest.raises(BadWeights, match="gated is True in llama and False in base"):
        difference_of(llama, base)


def test_other_tokens(base: Path, tmp_path: Path) -> None:
    tuned = tuned_from(base, tmp_path / "tuned", tuned_everywhere)

    def rename(vocabulary: dict[str, int]) -> None:
        by_id = {token: piece for piece, token in vocabulary.items()}
        for token in (40, 300):
            vocabulary[f"other{token}"] = vocabulary.pop(by_id[token])

    change_tokens(tuned, rename)
    with pytest.raises(BadWeights, match=r"token 40 is 'other40' in tuned and .+ in base \(and 1 more differ\)"):
        difference_of(tuned, base)


def test_a_missing_tensor(base: Path, tmp_path: Path) -> None:
    tuned = tuned_from(base, tmp_path / "tuned", tuned_everywhere)
    tensors = load_file(tuned / "model.safetensors")
    del tensors["transformer.h.1.mlp.c_proj.weight"]
    save_file(tensors, tuned / "model.safetensors")
    with pytest.raises(BadWeights, match=r"no tensor transformer\.h\.1\.mlp\.c_proj\.weight"):
        difference_of(tuned, base)
