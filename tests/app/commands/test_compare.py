"""`lexiscope compare` as a user runs it: words in, text and exit code out, signals in between."""

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from safetensors.torch import load_file, save_file

from lexiscope.precompute.index.comparison import Comparison
from tests.app.commands.conftest import Refused, Run
from tests.support.builds import quick_build
from tests.support.models import tiny_gpt2

N_TOKENS = 1100


@pytest.fixture(autouse=True)
def offline(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    monkeypatch.chdir(tmp_path)


def with_more_tokens(folder: Path, count: int = N_TOKENS) -> Path:
    """A checkpoint whose tokenizer has as many tokens as the embedding has rows."""
    path = folder / "tokenizer.json"
    document = json.loads(path.read_text())
    vocabulary = document["model"]["vocab"]
    vocabulary |= {f"word{token}": token for token in range(max(vocabulary.values()) + 1, count)}
    path.write_text(json.dumps(document))
    return folder


def model(folder: Path, **options: Any) -> Path:
    sizes: dict[str, Any] = {"n_layers": 2, "n_heads": 1, "d_model": 8, "d_mlp": 6} | options
    return with_more_tokens(tiny_gpt2(folder, d_vocab=N_TOKENS, **sizes))


@pytest.fixture(scope="module")
def sources(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    folder = tmp_path_factory.mktemp("sources")
    return model(folder / "one"), model(folder / "other", d_model=16, seed=1)


def test_compare_then_again(run: Run, sources: tuple[Path, Path]) -> None:
    code, out, err = run("compare", *sources, "--data", "data")
    assert (code, out) == (0, "")
    assert f"one and other have {N_TOKENS} tokens in common: their ids mean the same" in err
    assert "kind qk_key is ready; 10 of 10 kinds" in err
    assert Comparison.open(Path("data/vs/one/other")).feature_space("w_o") is None
    code, _, err = run("compare", *sources, "--data", "data")
    assert code == 0
    assert "nothing to do" in err


def test_models_by_the_names_of_their_indexes_which_may_go_later(run: Run, sources: tuple[Path, Path]) -> None:
    for source in sources:
        quick_build(source, Path("data"), layers=(1,))
    code, _, err = run("compare", "one", "other", "--data", "data", "--kinds", "ff_value")
    assert code == 0, err
    shutil.rmtree("data/one")
    assert Comparison.open(Path("data/vs/one/other")).similarity("ff_value").shape == (2, 2)


def test_too_few_tokens(refused: Refused, tmp_path: Path) -> None:
    one, other = (tiny_gpt2(tmp_path / name, n_layers=1, n_heads=1, d_model=8) for name in ("one", "other"))
    err = refused("compare", one, other, "--data", "data")
    assert "one and other have 481 tokens in common (their ids mean the same)" in err
    assert "needs at least 1000" in err
    assert not Path("data/vs").exists()


def test_what_is_no_checkpoint_or_lacks_a_tensor(refused: Refused, sources: tuple[Path, Path], tmp_path: Path) -> None:
    assert "There is no folder or file './missing'" in refused("compare", sources[0], "./missing", "--data", "data")
    (tmp_path / "empty").mkdir()
    assert "has no config.json" in refused("compare", "./empty", sources[0], "--data", "data")
    broken = Path(shutil.copytree(sources[1], tmp_path / "broken"))
    tensors = load_file(broken / "model.safetensors")
    del tensors["transformer.h.1.mlp.c_fc.weight"]
    save_file(tensors, broken / "model.safetensors", metadata={"format": "pt"})
    err = refused("compare", sources[0], broken, "--data", "data")
    assert "has no tensor transformer.h.1.mlp.c_fc.weight" in err
    assert not Path("data/vs").exists()


def test_other_weights_need_force(refused: Refused, run: Run, sources: tuple[Path, Path], tmp_path: Path) -> None:
    assert run("compare", *sources, "--data", "data", "--kinds", "w_q")[0] == 0
    changed = model(tmp_path / "one", seed=7)
    assert "one had other weights" in refused("compare", changed, sources[1], "--data", "data")
    assert run("compare", changed, sources[1], "--data", "data", "--kinds", "w_q", "--force")[0] == 0


def test_a_model_named_vs_gets_another_name(run: Run, sources: tuple[Path, Path], tmp_path: Path) -> None:
    named = Path(shutil.copytree(sources[0], tmp_path / "vs"))
    assert run("compare", named, sources[1], "--data", "data", "--kinds", "w_q")[0] == 0
    assert Path("data/vs/vs-model/other").is_dir()
