"""What a checkpoint's shape says for people, beside its sizes: its name, how it sees, predicts and turns."""

import json
from pathlib import Path
from typing import Any

import pytest

from lexiscope.precompute.errors import BadWeights
from lexiscope.precompute.shape import Shape
from lexiscope.precompute.weights.architectures import describe
from lexiscope.precompute.weights.checkpoint import Checkpoint
from tests.support.families import FAMILIES

pytestmark = pytest.mark.slow


def shape_of(folder: Path) -> Shape:
    return describe(Checkpoint.open(folder)).shape


@pytest.mark.parametrize(("family", "name", "causal", "predicts", "d_rotary"), [
    ("gpt2", "GPT-2", True, "next", None),
    ("gpt_neox", "GPT-NeoX", True, "next", 4),  # a quarter of 16 channels
    ("phi3", "Phi-3", True, "next", 4),  # half of 8
    ("falcon", "Falcon", True, "next", None),
    ("bert", "BERT", False, "masked", None),
    ("bert-bare", "BERT", False, "nearest", None),
    ("distilbert", "DistilBERT", False, "masked", None),
])  # fmt: skip
def test_what_is_for_people(
    tmp_path: Path, family: str, name: str, causal: bool, predicts: str, d_rotary: int | None
) -> None:
    shape = shape_of(FAMILIES[family].save(tmp_path / "model"))
    assert (shape.name, shape.causal, shape.predicts, shape.d_rotary) == (name, causal, predicts, d_rotary)


@pytest.mark.parametrize(("family", "some"), [("stablelm", False), ("stablelm-12b", True), ("qwen3", True)])
def test_norms_of_queries_and_keys_are_told_where_there_are_some(tmp_path: Path, family: str, some: bool) -> None:
    shape = shape_of(FAMILIES[family].save(tmp_path / "model"))
    assert shape.left_out == (("the norms of queries and keys",) if some else ())


@pytest.mark.parametrize(("fields", "d_rotary"), [
    ({"rope_parameters": None}, 4),  # GPT-NeoX's own share, a quarter
    ({"rope_parameters": None, "rotary_pct": 0.5}, 8),  # as older versions of transformers write it
    ({"rope_parameters": {"partial_rotary_factor": 1.0}}, None),
    ({"rope_parameters": {"rope_type": "default"}, "partial_rotary_factor": 0.75}, 12),
])  # fmt: skip
def test_partial_rotary_by_any_of_its_names(tmp_path: Path, fields: dict[str, Any], d_rotary: int | None) -> None:
    folder = FAMILIES["gpt_neox"].save(tmp_path / "model")
    _change_config(folder, fields)
    assert shape_of(folder).d_rotary == d_rotary


@pytest.mark.parametrize("share", ["half", 1.5, -1, True])
def test_a_share_that_is_none_is_refused(tmp_path: Path, share: Any) -> None:
    folder = FAMILIES["gpt_neox"].save(tmp_path / "model")
    _change_config(folder, {"rope_parameters": {"partial_rotary_factor": share}})
    with pytest.raises(BadWeights, match="partial_rotary_factor is"):
        shape_of(folder)


def _change_config(folder: Path, fields: dict[str, Any]) -> None:
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps(config | fields))
