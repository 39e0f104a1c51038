"""What `transformers` loads for a run: checkpoints as the Hub has them, and never code from outside."""

import json
import pickle
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file

from lexiscope.precompute.errors import BadWeights, NoSafetensors
from lexiscope.precompute.live.engine import Engine
from lexiscope.precompute.live.wire.asks import PromptAsk
from lexiscope.precompute.weights.checkpoint import Checkpoint
from tests.precompute.live.reference import TEXT, Case, close
from tests.support.families import FAMILIES

WEIGHTS = "model.safetensors"


def load(folder: Path) -> Engine:
    return Engine.load(Checkpoint.open(folder), device="cpu")


@pytest.fixture
def copied(every: Case, tmp_path: Path) -> Path:
    return Path(shutil.copytree(every.folder, tmp_path / "copy"))


def test_a_norm_that_is_missing_is_named(every: Case, copied: Path) -> None:
    """A build does not need it, a run does."""
    tensors = load_file(copied / WEIGHTS)
    norm = every.net.norm("ff", 1)
    (name,) = (name for name, module in every.net.body.named_modules() if module is norm)
    (missing,) = (each for each in tensors if each.endswith(f"{name}.weight"))
    save_file({name: tensor for name, tensor in tensors.items() if name != missing}, copied / WEIGHTS)
    with pytest.raises(BadWeights, match=f"has no tensor .*{name}.weight, which a run needs"):
        load(copied)


def test_a_checkpoint_without_a_head_runs_as_with_it(every: Case, tmp_path: Path) -> None:
    """Where W_U is tied. An encoder's nearest tokens are then those of its stream."""
    shape = every.engine.shape
    if not shape.tied:
        pytest.skip("without its head it has no W_U")
    every.net.body.save_pretrained(tmp_path)
    shutil.copy(every.folder / "tokenizer.json", tmp_path)
    engine, tokens = load(tmp_path), every.engine.words.prompt(TEXT)
    assert engine.shape.predicts == ("next" if shape.causal else "nearest")
    last = every.run(tokens).streams[shape.n_layers - 1, "ff"]
    with torch.inference_mode():
        if shape.causal:
            logits = every.run(tokens).logits
            assert logits is not None
            close(engine.weights.model.logits(last), logits)
        else:
            assert engine.weights.cosines(last).abs().max() <= 1 + 1e-5


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_half_the_bytes_are_run_in_float32(case: Case, tmp_path: Path, dtype: torch.dtype) -> None:
    folder = Path(shutil.copytree(case.folder, tmp_path / "half"))
    save_file({name: t.to(dtype) for name, t in load_file(folder / WEIGHTS).items()}, folder / WEIGHTS)
    w = load(folder).weights
    assert {parameter.dtype for parameter in w.net.parameters()} == {torch.float32}
    assert w.vectors("w_q", 1).equal(case.engine.weights.vectors("w_q", 1).to(dtype).float())


class Trap:
    """Unpickled, it leaves a file."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> tuple[Callable[..., Any], tuple[Any, ...]]:
        return open, (str(self.path), "w")


def test_code_and_pickles_of_a_checkpoint_are_never_run(case: Case, tmp_path: Path) -> None:
    folder, ran = Path(shutil.copytree(case.folder, tmp_path / "trap")), tmp_path / "ran"
    config = json.loads((folder / "config.json").read_text())
    names = ("AutoConfig", "AutoModel", "AutoModelForCausalLM", "AutoModelForMaskedLM")
    config["auto_map"] = {name: f"modeling_trap.{name}" for name in names} | {"AutoConfig": "modeling_trap.Config"}
    (folder / "config.json").write_text(json.dumps(config))
    (folder / "modeling_trap.py").write_text(f"open({str(ran)!r}, 'w')\n")
    (folder / "pytorch_model.bin").write_bytes(pickle.dumps(Trap(ran)))
    engine = load(folder)
    assert type(engine.weights.net).__module__.startswith("transformers.models.")
    (folder / WEIGHTS).unlink()
    with pytest.raises(NoSafetensors, match="pickled weights"):
        load(folder)
    assert not ran.exists()


@pytest.mark.parametrize("padding", [None, -1, 10**9])
def test_a_padding_token_that_does_not_exist(tmp_path: Path, padding: int | None) -> None:
    """GPT-2 needs none; RoBERTa counts its positions from it, and says so."""
    for family in ("gpt2", "roberta"):
        folder = FAMILIES[family].save(tmp_path / family)
        path = folder / "config.json"
        path.write_text(json.dumps(json.loads(path.read_text()) | {"pad_token_id": padding}))
    texts = ("the dog", "the dog and the lion")
    answers = load(tmp_path / "gpt2").prompts([PromptAsk(text=text) for text in texts])
    assert all(isinstance(answer, dict) for answer in answers)
    with pytest.raises(BadWeights, match=r"pad_token_id|cannot load"):
        load(tmp_path / "roberta")
