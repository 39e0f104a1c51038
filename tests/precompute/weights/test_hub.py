"""Checkpoints from a Hub: pinned commits, only the files that are wanted, its cache, and every way it can fail."""

import json
from collections.abc import Callable, Iterator
from pathlib import Path

import huggingface_hub
import pytest
from huggingface_hub import constants

from lexiscope.precompute.errors import (
    BadWeights,
    DiskFull,
    NoSafetensors,
    Offline,
    SourceNotFound,
    UnsupportedArchitecture,
)
from lexiscope.precompute.weights.sources import resolve
from tests.support.dataset_hub import DatasetHub
from tests.support.models import tiny_gpt2, tiny_llama
from tests.support.small_disk import small_disk

GPT2 = "openai-community/gpt2"


@pytest.fixture
def hub(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[DatasetHub]:
    server = DatasetHub()
    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path / "hub-cache"))
    huggingface_hub.close_session()
    with server.serve() as url:
        point_to(url, monkeypatch)
        yield server
        huggingface_hub.close_session()


def point_to(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(constants, "ENDPOINT", url)
    monkeypatch.setattr(constants, "HUGGINGFACE_CO_URL_TEMPLATE", url + "/{repo_id}/resolve/{revision}/{filename}")


def unreachable(monkeypatch: pytest.MonkeyPatch) -> None:
    point_to("http://127.0.0.1:9", monkeypatch)
    huggingface_hub.close_session()


def test_a_model_at_its_commit(hub: DatasetHub, tmp_path: Path) -> None:
    commit = hub.add(GPT2, tiny_gpt2(tmp_path / "model"))
    checkpoint = resolve("gpt2", cache=tmp_path / "cache")
    assert (checkpoint.name, checkpoint.source, checkpoint.revision) == ("gpt2", GPT2, commit)
    assert checkpoint.folder.name == commit
    assert checkpoint.names()
    assert checkpoint.tokenizer_file().read_bytes() == (tmp_path / "model" / "tokenizer.json").read_bytes()


def test_only_wanted_files_are_fetched_and_only_once(hub: DatasetHub, tmp_path: Path) -> None:
    folder = tiny_gpt2(tmp_path / "model", shard_size="30KB")
    for extra in ("pytorch_model.bin", "model.onnx", "modeling_evil.py", "README.md", "consolidated.safetensors"):
        (folder / extra).write_bytes(b"x")
    hub.add(GPT2, folder)
    resolve("gpt2", cache=tmp_path / "cache")
    shards = {path.name for path in folder.glob("model-*.safetensors")}
    assert set(hub.downloads) == {"config.json", "tokenizer.json", "model.safetensors.index.json", *shards}
    assert len(hub.downloads) == len(set(hub.downloads))
    hub.downloads.clear()
    resolve("gpt2", cache=tmp_path / "cache")
    assert hub.downloads == []


def test_a_pinned_revision(hub: DatasetHub, tmp_path: Path) -> None:
    old = hub.add("me/m", tiny_gpt2(tmp_path / "old", seed=1), "v1")
    new = hub.add("me/m", tiny_gpt2(tmp_path / "new", seed=2))
    for revision, commit in (("v1", old), (old, old), (None, new), ("main", new)):
        assert resolve("me/m", revision=revision, cache=tmp_path / "cache").revision == commit


@pytest.mark.parametrize("how", ["unreachable", "HF_HUB_OFFLINE"])
def test_the_cache_serves_without_network(
    hub: DatasetHub, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, how: str
) -> None:
    commit = hub.add(GPT2, tiny_gpt2(tmp_path / "model"))
    resolve("gpt2", cache=tmp_path / "cache")
    unreachable(monkeypatch)
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", how == "HF_HUB_OFFLINE")
    assert resolve("gpt2", cache=tmp_path / "cache").revision == commit
    assert resolve(GPT2, revision=commit, cache=tmp_path / "cache").revision == commit


def test_a_cache_that_another_tool_filled(hub: DatasetHub, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    commit = hub.add(GPT2, tiny_gpt2(tmp_path / "model"))
    for name in ("config.json", "model.safetensors", "tokenizer.json"):
        huggingface_hub.hf_hub_download(GPT2, name)
    unreachable(monkeypatch)
    assert resolve("gpt2", cache=tmp_path / "cache").revision == commit


@pytest.mark.parametrize(("offline", "said"), [(False, "Check the network"), (True, "HF_HUB_OFFLINE is set")])
def test_no_network_and_nothing_cached(
    hub: DatasetHub, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, offline: bool, said: str
) -> None:
    del hub
    unreachable(monkeypatch)
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", offline)
    with pytest.raises(Offline, match=f"{GPT2}.*{said}"):
        resolve("gpt2", cache=tmp_path)


def test_no_network_and_half_cached(hub: DatasetHub, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    hub.add(GPT2, tiny_gpt2(tmp_path / "model"))
    huggingface_hub.snapshot_download(GPT2, allow_patterns=["config.json", "tokenizer.json"])
    unreachable(monkeypatch)
    with pytest.raises(Offline, match=GPT2):
        resolve("gpt2", cache=tmp_path)


@pytest.mark.parametrize(("status", "code", "error", "said"), [
    (404, "RepoNotFound", SourceNotFound, "no public Hub model some/model"),
    (401, "RepoNotFound", SourceNotFound, "no public Hub model some/model"),
    (401, "", SourceNotFound, "no public Hub model some/model"),
    (403, "GatedRepo", SourceNotFound, "accepted its licence"),
    (500, "", Offline, "status 500"), (503, "", Offline, "status 503"),
    (403, "", SourceNotFound, "hf auth login"),
    (429, "", Offline, "status 429"),
])  # fmt: skip
def test_what_the_hub_answers(
    hub: DatasetHub, tmp_path: Path, status: int, code: str, error: type[Exception], said: str
) -> None:
    hub.failures["some/model"] = (status, code)
    with pytest.raises(error, match=said):
        resolve("some/model", cache=tmp_path)


def test_an_unknown_revision(hub: DatasetHub, tmp_path: Path) -> None:
    hub.add("me/m", tiny_gpt2(tmp_path / "model"))
    for revision in ("nope", "0" * 40):
        with pytest.raises(SourceNotFound, match=f"no revision {revision}"):
            resolve("me/m", revision=revision, cache=tmp_path)


def test_a_connection_that_breaks(hub: DatasetHub, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("huggingface_hub.file_download.time.sleep", lambda _: None)  # its pauses between attempts
    hub.add("me/m", tiny_gpt2(tmp_path / "model"))
    hub.broken = "model.safetensors"
    with pytest.raises(Offline, match="me/m"):
        resolve("me/m", cache=tmp_path)
    hub.broken = ""
    assert resolve("me/m", cache=tmp_path).names()


def pickled(folder: Path) -> None:
    (folder / "model.safetensors").rename(folder / "pytorch_model.bin")


def only_gguf(folder: Path) -> None:
    for path in folder.iterdir():
        path.unlink()
    (folder / "m.Q4_1.gguf").write_bytes(b"GGUF")


def unsupported(folder: Path) -> None:
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps(config | {"model_type": "mamba"}))


@pytest.mark.parametrize(("change", "error", "said"), [
    (pickled, NoSafetensors, r"me/m.*only pickled weights \(pytorch_model.bin\)"),
    (only_gguf, NoSafetensors, r"GGUF files.*m.Q4_1.gguf"),
    (lambda folder: (folder / "config.json").unlink(), BadWeights, r"no config\.json"),
    (unsupported, UnsupportedArchitecture, r"me/m.*mamba.*GPT-2, .*Llama"),
])  # fmt: skip
def test_a_model_that_cannot_be_used_is_refused_before_its_weights_are_fetched(
    hub: DatasetHub, tmp_path: Path, change: Callable[[Path], None], error: type[Exception], said: str
) -> None:
    change(tiny_llama(tmp_path / "model"))
    hub.add("me/m", tmp_path / "model")
    with pytest.raises(error, match=said):
        resolve("me/m", cache=tmp_path)
    assert not {"model.safetensors", "pytorch_model.bin", "m.Q4_1.gguf"} & set(hub.downloads)


def test_a_full_disk(hub: DatasetHub, tmp_path: Path) -> None:
    hub.add("me/m", tiny_gpt2(tmp_path / "model", d_model=64))
    with small_disk(60_000), pytest.raises(DiskFull, match="hub-cache"):
        resolve("me/m", cache=tmp_path)
    assert resolve("me/m", cache=tmp_path).names()
