"""A repository grows layer by layer, never lists what it does not hold, and keeps what others put there."""

import hashlib
import json
import re
import shutil
from collections.abc import Iterator
from pathlib import Path

import huggingface_hub
import pytest
from huggingface_hub import constants

from lexiscope.precompute.index.lab_record import LAB, LabRecord
from lexiscope.precompute.index.manifest import MANIFEST, FileEntry, Manifest
from lexiscope.precompute.travel import push as push_job
from lexiscope.precompute.travel.card import BEGIN, END
from tests.precompute.travel.conftest import REPOSITORY, Run, files, publish
from tests.support.dataset_hub import DatasetHub, Files
from tests.support.synthetic import make_manifest, write_index

CARD = "README.md"


@pytest.fixture
def data(tiny: Path, tmp_path: Path) -> Path:
    shutil.copytree(tiny, tmp_path / "data" / "tiny")
    return tmp_path / "data"


def published(files: Files) -> Manifest:
    """The manifest of a commit, all of whose files are there."""
    manifest = Manifest.parse(files[MANIFEST])
    for entry in manifest.entries().values():
        assert hashlib.sha256(files[entry.file]).hexdigest() == entry.sha256
    assert hashlib.sha256(files["tokenizer.json"]).hexdigest() == manifest.tokenizer_sha256
    return manifest


def layers_of_commits(hub: DatasetHub) -> list[list[int]]:
    return [[*published(files).shards] for files in hub.repositories[REPOSITORY].commits.values() if MANIFEST in files]


def test_every_commit_is_an_index(data: Path, hub: DatasetHub, monkeypatch: pytest.MonkeyPatch, run: Run) -> None:
    monkeypatch.setattr(push_job, "COMMIT_LAYERS", 2)
    code, said = run("push", "tiny", REPOSITORY, "--private", "--data", data)
    assert code == 0
    assert layers_of_commits(hub) == [[2, 3], [0, 1, 2, 3]]
    repository = hub.repositories[REPOSITORY]
    assert repository.private
    assert repository.messages[1:] == ["tiny: layers 2-3", "tiny: layers 0-1"]
    mine = {name: content for name, content in (repository.files() or {}).items() if not name.startswith(".")}
    assert {name: content for name, content in mine.items() if name != CARD} == files(data / "tiny")
    assert f"`lexiscope pull {REPOSITORY}` takes them elsewhere" in said


def test_only_what_is_missing_is_sent(data: Path, hub: DatasetHub, run: Run) -> None:
    """An index that is not finished is published, and goes on; twice the same changes nothing."""
    whole = Manifest.load(data / "tiny")
    upper = {layer: entry for layer, entry in whole.shards.items() if layer >= 2}
    whole.with_changes(shards=upper, reads_best=None).save(data / "tiny")
    run("push", "tiny", REPOSITORY, "--data", data)
    assert len(hub.uploads) == 3
    whole.save(data / "tiny")
    hub.uploads.clear()
    run("push", "tiny", REPOSITORY, "--data", data)
    assert hub.uploads == [whole.shards[1].sha256, whole.shards[0].sha256]
    assert layers_of_commits(hub) == [[2, 3], [0, 1, 2, 3]]
    assert published(hub.repositories[REPOSITORY].files() or {}) == whole
    code, said = run("push", "tiny", REPOSITORY, "--data", data)
    assert (code, len(layers_of_commits(hub)), len(hub.uploads)) == (0, 2, 2)
    assert "4 of 4 layers are ready, 0 to push" in said


def test_stopped_again_and_again(data: Path, hub: DatasetHub, monkeypatch: pytest.MonkeyPatch, run: Run) -> None:
    """Before each file that is sent; the repository is an index at every commit, and complete at the end."""
    monkeypatch.setattr(push_job, "COMMIT_LAYERS", 2)
    check_sum = FileEntry.check_sum
    for files_before in (0, 1, 2, 3):
        left = iter(range(files_before, -1, -1))

        def stop(entry: FileEntry, folder: Path, left: Iterator[int] = left) -> None:
            if next(left) == 0:
                raise KeyboardInterrupt
            check_sum(entry, folder)

        monkeypatch.setattr(FileEntry, "check_sum", stop)
        if run("push", "tiny", REPOSITORY, "--data", data)[0] == 0:
            break
    monkeypatch.setattr(FileEntry, "check_sum", check_sum)
    assert run("push", "tiny", REPOSITORY, "--data", data)[0] == 0
    assert layers_of_commits(hub) == [[2, 3], [0, 1, 2, 3]]
    assert sorted(hub.uploads) == sorted(entry.sha256 for entry in Manifest.load(data / "tiny").entries().values())


def test_two_machines_with_some_layers_each(tiny: Path, hub: DatasetHub, tmp_path: Path, run: Run) -> None:
    """What the other one published stays, also if it is called otherwise."""
    write_index(tmp_path / "b" / "tiny", make_manifest(k=5), layers=(0,))
    run("pull", tiny, "--layers", "0,1", "--data", tmp_path / "a")
    run("pull", tiny, "--force", "--data", tmp_path / "b")  # generation 2
    run("push", "tiny", REPOSITORY, "--data", tmp_path / "a")
    run("push", "tiny", REPOSITORY, "--data", tmp_path / "b")
    last = published(hub.repositories[REPOSITORY].files() or {})
    assert {layer: entry.file for layer, entry in last.shards.items()} == {
        0: "layer-0.safetensors", 1: "layer-1.safetensors", 2: "layer-2.g2.safetensors", 3: "layer-3.g2.safetensors",
    }  # fmt: skip
    assert (last.generation, last.reads_best) == (2, "dot")
    assert run("pull", REPOSITORY, "--data", tmp_path / "c")[0] == 0
    assert run("verify", "tiny", "--sums-only", "--data", tmp_path / "c")[0] == 0


def test_a_file_that_somebody_deleted_is_sent_again(data: Path, hub: DatasetHub, run: Run) -> None:
    run("push", "tiny", REPOSITORY, "--data", data)
    repository = hub.repositories[REPOSITORY]
    whole = repository.files() or {}
    for gone in ("layer-2.safetensors", "vocabulary.safetensors", "tokenizer.json"):
        repository.commit({name: content for name, content in whole.items() if name != gone})
        assert run("push", "tiny", REPOSITORY, "--data", data)[0] == 0
        assert repository.files() == whole


def test_somebody_else_commits_meanwhile(
    data: Path, hub: DatasetHub, monkeypatch: pytest.MonkeyPatch, run: Run
) -> None:
    hub.make(REPOSITORY)
    upload = FileEntry.check_sum

    def interfere(entry: FileEntry, folder: Path) -> None:
        repository = hub.repositories[REPOSITORY]
        repository.commit({**(repository.files() or {}), "LICENSE": b"mine"})
        upload(entry, folder)

    monkeypatch.setattr(FileEntry, "check_sum", interfere)
    code, said = run("push", "tiny", REPOSITORY, "--data", data)
    assert (code, layers_of_commits(hub)) == (1, [])
    assert "was changed by somebody else meanwhile: run the same command again" in said
    monkeypatch.setattr(FileEntry, "check_sum", upload)
    assert run("push", "tiny", REPOSITORY, "--data", data)[0] == 0
    assert (hub.repositories[REPOSITORY].files() or {})["LICENSE"] == b"mine"


def test_another_index_is_replaced_only_if_that_is_meant(tiny: Path, hub: DatasetHub, tmp_path: Path, run: Run) -> None:
    publish(hub, tiny)
    write_index(tmp_path / "tiny", make_manifest(k=5), layers=(3,))
    code, said = run("push", "tiny", REPOSITORY, "--data", tmp_path)
    assert (code, len(layers_of_commits(hub))) == (1, 1)
    assert re.search("holds another index .*: add --force to replace it, or push to another repository", said)
    assert run("push", "tiny", REPOSITORY, "--force", "--data", tmp_path)[0] == 0
    after = hub.repositories[REPOSITORY].files() or {}
    assert (published(after).k, [*published(after).shards]) == (5, [3])
    assert [name for name in after if name.startswith("layer")] == ["layer-3.safetensors"]


@pytest.mark.parametrize(("there", "said"), [
    ({"train.parquet": b"PAR1"}, r"holds other things than an index \(train\.parquet\): give a repository of its own"),
    ({MANIFEST: b"{}"}, "is not that of an index"),
    ({MANIFEST: b'{"format": 9}'}, "has format 9"),
])  # fmt: skip
def test_a_foreign_repository_is_left_alone(there: Files, said: str, data: Path, hub: DatasetHub, run: Run) -> None:
    hub.make(REPOSITORY, there)
    code, err = run("push", "tiny", REPOSITORY, "--data", data)
    assert (code, len(hub.repositories[REPOSITORY].commits), hub.uploads) == (1, 1, [])
    assert re.search(said, err), err


@pytest.mark.parametrize("command", ["push", "pull"])
@pytest.mark.parametrize(("path", "status", "code", "said"), [
    ("/api/", 401, "", {"push": "does not let you write to me/tiny-lists: run `hf auth login`", "pull": "no public"}),
    ("/api/", 403, "", {"push": "does not let you write", "pull": "no public dataset repository me/tiny-lists"}),
    ("/api/datasets", 404, "RepoNotFound", {"push": "no public dataset", "pull": "no public dataset repository"}),
    ("/api/datasets", 403, "GatedRepo", {"push": "accepted its terms", "pull": "accepted its terms"}),
    ("/api/datasets", 500, "", {"push": "status 500", "pull": "The Hub answers with status 500"}),
    ("/resolve/", 404, "EntryNotFound", {"push": "", "pull": "answers with status 404"}),
])  # fmt: skip
def test_what_the_hub_refuses(
    command: str,
    path: str,
    status: int,
    code: str,
    said: dict[str, str],
    tiny: Path,
    hub: DatasetHub,
    tmp_path: Path,
    run: Run,
) -> None:
    publish(hub, tiny)
    hub.failures[path] = (status, code)
    words = {"push": ("tiny", REPOSITORY, "--data", tiny.parent), "pull": (REPOSITORY, "--data", tmp_path)}[command]
    ended, err = run(command, *words)
    assert ended == 1
    assert said[command] in err, err
    assert hub.uploads == []


@pytest.mark.parametrize(("offline", "said"), [
    (False, "The Hub cannot be reached for me/tiny-lists (.*): check the network, then run this again"),
    (True, "me/tiny-lists is on the Hub, and HF_HUB_OFFLINE is set: unset it"),
])  # fmt: skip
@pytest.mark.usefixtures("hub")
def test_no_network(offline: bool, said: str, data: Path, monkeypatch: pytest.MonkeyPatch, run: Run) -> None:
    monkeypatch.setattr(constants, "ENDPOINT", "http://127.0.0.1:9")
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", offline)
    for words in (("push", "tiny", REPOSITORY), ("pull", REPOSITORY)):
        huggingface_hub.close_session()
        code, err = run(*words, "--data", data)
        assert (code, re.search(said, err) is not None) == (1, True), err


def test_what_the_hub_does_not_take(data: Path, hub: DatasetHub, run: Run) -> None:
    """No room left; a card around ours that is no YAML."""
    hub.is_full = True
    code, err = run("push", "tiny", REPOSITORY, "--data", data)
    assert (code, "The Hub does not take this for me/tiny-lists: LFS batch API" in err) == (1, True), err
    assert "storage limit reached" in err
    hub.is_full = False
    assert run("push", "tiny", REPOSITORY, "--data", data)[0] == 0
    repository = hub.repositories[REPOSITORY]
    whole = repository.files() or {}
    mine = whole[CARD].replace(b"viewer: false", b"license: [").replace(b"4 of 4", b"3 of 4")
    repository.commit({**whole, CARD: mine})
    code, err = run("push", "tiny", REPOSITORY, "--data", data)
    assert (code, "Invalid metadata in README.md. - no YAML" in err) == (1, True), err


def test_no_token(data: Path, hub: DatasetHub, monkeypatch: pytest.MonkeyPatch, run: Run) -> None:
    monkeypatch.setenv("HF_TOKEN", "hf_wrong")
    code, said = run("push", "tiny", REPOSITORY, "--data", data)
    assert (code, hub.repositories) == (1, {})
    assert "run `hf auth login` with a token that may write, or set HF_TOKEN" in said
    assert "hf_wrong" not in said


@pytest.mark.parametrize(("words", "said"), [
    (("push", "tiny", "not a repository"), "'not a repository' is no repository of the Hub: give owner/name"),
    (("push", "nothing", REPOSITORY), "no index of 'nothing'"),
    (("pull", "me/nothing"), "There is no public dataset repository me/nothing on the Hub, and no folder of this name"),
    (("pull", REPOSITORY, "--revision", "v9"), "me/tiny-lists has no revision v9: give a branch, tag or commit"),
])  # fmt: skip
def test_what_is_not_there(
    words: tuple[str, ...], said: str, tiny: Path, data: Path, hub: DatasetHub, run: Run
) -> None:
    publish(hub, tiny)
    code, err = run(*words, "--data", data)
    assert (code, said in err) == (1, True), err


def test_nothing_damaged_is_published(data: Path, hub: DatasetHub, run: Run) -> None:
    content = bytearray((data / "tiny" / "layer-1.safetensors").read_bytes())
    content[-1] ^= 1
    (data / "tiny" / "layer-1.safetensors").write_bytes(content)
    code, said = run("push", "tiny", REPOSITORY, "--data", data)
    assert (code, layers_of_commits(hub)) == (1, [])
    assert "layer-1.safetensors is damaged" in said
    (data / "tiny" / "layer-1.safetensors").unlink()
    assert "layer-1.safetensors is missing" in run("push", "tiny", REPOSITORY, "--data", data)[1]
    (data / "tiny" / "tokenizer.json").write_text("{}")
    shutil.copy(data / "tiny" / "layer-2.safetensors", data / "tiny" / "layer-1.safetensors")
    assert run("push", "tiny", REPOSITORY, "--data", data)[0] == 1
    assert layers_of_commits(hub) == []


def test_an_index_without_layers(hub: DatasetHub, tmp_path: Path, run: Run) -> None:
    write_index(tmp_path / "tiny", make_manifest(), layers=())
    code, said = run("push", "tiny", REPOSITORY, "--data", tmp_path)
    assert (code, hub.repositories) == (1, {})
    assert "no layer of tiny is ready yet" in said


def test_neither_folders_nor_other_measurements_nor_leftovers_travel(hub: DatasetHub, tmp_path: Path, run: Run) -> None:
    folder = tmp_path / "tiny"
    manifest = write_index(folder, make_manifest().with_changes(source="/home/me/secret/tiny"), layers=(3,))
    LabRecord.of(make_manifest(model="another")).save(folder)
    for name in ("layer-2.safetensors.partial", "layer-1.safetensors", ".lock", "pulled.json", "manifest.next.json"):
        (folder / name).write_bytes(b"x")
    run("push", "tiny", REPOSITORY, "--data", tmp_path)
    there = hub.repositories[REPOSITORY].files() or {}
    assert sorted(there) == [
        ".gitattributes", CARD, "layer-3.safetensors", MANIFEST, "tokenizer.json", "vocabulary.safetensors",
    ]  # fmt: skip
    assert not any(b"secret" in content for content in there.values())
    assert (json.loads(there[MANIFEST])["source"], published(there).build) == ("tiny", manifest.build)
    LabRecord.of(manifest).save(folder)
    run("push", "tiny", REPOSITORY, "--data", tmp_path)
    assert (hub.repositories[REPOSITORY].files() or {})[LAB] == (folder / LAB).read_bytes()


def test_the_card(data: Path, hub: DatasetHub, monkeypatch: pytest.MonkeyPatch, run: Run) -> None:
    """What people write around ours stays; a card of their own stays as it is."""
    monkeypatch.setattr(push_job, "COMMIT_LAYERS", 3)
    run("push", "tiny", REPOSITORY, "--data", data)
    repository = hub.repositories[REPOSITORY]
    cards = [files[CARD].decode() for files in repository.commits.values() if CARD in files]
    manifest = Manifest.load(data / "tiny")
    for text in (manifest.build, manifest.weights_sha256, "`someone/tiny`", "`dot`, `cosine`", "`ff_key`, `ff_value`"):
        assert text in cards[-1]
    for text in ("10 tokens at either end", "7 pairs", f"lexiscope pull {REPOSITORY}", "**Licence.**", "213 kB"):
        assert text in cards[-1]
    assert [re.findall(r"\d of 4 \(.+\)", card) for card in cards] == [["3 of 4 (1-3)"], ["4 of 4 (0-3)"]]
    assert cards[-1].startswith("---\npretty_name: tiny as words\n")
    files_there = repository.files() or {}
    mine = cards[0].replace("viewer: false", "license: mit").replace(END, f"{END}\nMade on a Sunday.")
    repository.commit({**files_there, CARD: mine.encode()})
    run("push", "tiny", REPOSITORY, "--data", data)
    after = (repository.files() or {})[CARD].decode()
    assert "license: mit" in after
    assert after.endswith("Made on a Sunday.\n")
    assert "4 of 4 (0-3)" in after
    repository.commit({**files_there, CARD: b"# My own"})
    run("push", "tiny", REPOSITORY, "--data", data)
    assert (repository.files() or {})[CARD] == b"# My own"
    assert BEGIN in cards[0]
