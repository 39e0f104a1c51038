"""What a user may name as a model: aliases, folders, GGUF files; and what is said of everything else."""

from pathlib import Path

import pytest

from lexiscope.precompute.errors import BadWeights, NoSafetensors, SourceNotFound, WeightsError
from lexiscope.precompute.weights.sources import ALIASES, resolve
from tests.precompute.weights.gguf_files import write_gguf
from tests.support.models import tiny_gpt2, tiny_llama


@pytest.mark.parametrize("spelling", ["{}", "{}/", "{}/../model", "./model", "model", "~/model"])
def test_a_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, spelling: str) -> None:
    folder = tiny_gpt2(tmp_path / "model")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path))
    checkpoint = resolve(spelling.format(folder), cache=tmp_path / "cache")
    assert (checkpoint.name, checkpoint.source, checkpoint.revision) == ("model", str(folder), "")
    assert (checkpoint.folder, checkpoint.cache) == (folder, tmp_path / "cache")
    assert resolve(checkpoint.source, cache=tmp_path / "cache") == checkpoint


def test_a_gguf_file_is_converted_once(tmp_path: Path) -> None:
    path = write_gguf(tiny_llama(tmp_path / "hub"), tmp_path / "My model.Q8.gguf")
    first = resolve(str(path), cache=tmp_path / "cache")
    assert (first.name, first.source) == ("My-model.Q8", str(path))
    stamp = first.folder.stat().st_mtime_ns
    again = resolve(str(path), cache=tmp_path / "cache")
    assert (again.folder, again.folder.stat().st_mtime_ns) == (first.folder, stamp)
    assert again == resolve(first.source, cache=tmp_path / "cache") == first
    write_gguf(tiny_llama(tmp_path / "hub2", seed=1), path)  # the same name, other contents
    assert resolve(str(path), cache=tmp_path / "cache").folder != first.folder


def test_aliases_lead_to_their_owners() -> None:
    assert {name: owner.split("/")[1] for name, owner in ALIASES.items()} == {name: name for name in ALIASES}


@pytest.mark.parametrize(("name", "error", "said"), [
    ("", SourceNotFound, "no folder or file ''.*distilgpt2"),
    ("./nothing", SourceNotFound, "'./nothing'.*Hub id"),
    ("~/no-such-folder", SourceNotFound, "no-such-folder"),
    ("~nobody-of-this-name/model", SourceNotFound, "no folder or file"),
    ("a\0b", SourceNotFound, "possible Hub id"),
    ("..\\models\\gpt2", SourceNotFound, "no folder or file"),
    ("missing.gguf", SourceNotFound, "no GGUF file missing.gguf"),
    ("model.safetensors", SourceNotFound, "Give its folder"),
    ("notes.txt", SourceNotFound, "is a file, but not GGUF"),
    ("weights.bin", NoSafetensors, "never loaded"),
    ("./empty", SourceNotFound, "no config.json"),
    ("a/b.git", SourceNotFound, "possible Hub id"),
    ("text.gguf", BadWeights, "not a GGUF file"),
])  # fmt: skip
def test_names_that_mean_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, error: type[WeightsError], said: str
) -> None:
    for file in ("model.safetensors", "notes.txt", "weights.bin", "text.gguf"):
        (tmp_path / file).write_text("just some text, long enough to be read as a header")
    (tmp_path / "empty").mkdir()
    monkeypatch.chdir(tmp_path)
    with pytest.raises(error, match=said):
        resolve(name, cache=tmp_path / "cache")


@pytest.mark.parametrize("name", ["demo", "model", "m.gguf"])
def test_only_hub_models_have_revisions(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    tiny_gpt2(tmp_path / "model")
    monkeypatch.chdir(tmp_path)
    with pytest.raises(SourceNotFound, match=f"{name} has no revisions"):
        resolve(name, revision="main", cache=tmp_path)


def test_an_index_folder_of_the_same_name_does_not_hide_the_hub(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "gpt2").mkdir()
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(tmp_path / "hub-cache"))
    with pytest.raises(WeightsError, match="openai-community/gpt2"):
        resolve("gpt2", cache=tmp_path)
