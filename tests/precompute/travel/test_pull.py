"""An index arrives as it was published, from wherever; what is in the way is said, and nothing is half there."""

import io
import json
import os
import re
import shutil
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from rich.console import Console

from lexiscope.app.urls import is_reserved
from lexiscope.precompute.build.build_folder import ARRIVING, NEXT
from lexiscope.precompute.build.lock import build_lock
from lexiscope.precompute.files import PARTIAL
from lexiscope.precompute.index.index import Index
from lexiscope.precompute.index.lab_record import LAB, LabRecord
from lexiscope.precompute.index.layout import Piece
from lexiscope.precompute.index.manifest import MANIFEST, TOKENIZER, Manifest
from lexiscope.precompute.travel.in_folder import IndexInFolder
from lexiscope.precompute.travel.pull import PULLED, PullOptions, PullProgress, open_published, pull
from tests.precompute.travel.conftest import REPOSITORY, Run, files, publish
from tests.support.builds import faults
from tests.support.dataset_hub import DatasetHub
from tests.support.site import DIFFERENCE, GPT2, LLAMA, visit
from tests.support.small_disk import small_disk
from tests.support.static_server import StaticServer
from tests.support.synthetic import make_manifest, write_index

SHARD = "layer-2.safetensors"


@pytest.mark.usefixtures("hub")
@pytest.mark.parametrize("model", [GPT2, LLAMA, DIFFERENCE])  # unfinished; with measurements; with a head and a base
def test_pushed_and_pulled_it_is_the_same_to_the_byte(model: str, site_data: Path, tmp_path: Path, run: Run) -> None:
    assert run("push", model, REPOSITORY, "--data", site_data)[0] == 0
    assert run("pull", REPOSITORY, "--data", tmp_path)[0] == 0
    assert run("verify", model, "--sums-only", "--data", tmp_path)[0] == 0
    before, after = files(site_data / model), files(tmp_path / model)
    assert (LAB in before) == (model != GPT2)
    manifests = [json.loads(content.pop(MANIFEST)) for content in (before, after)]
    assert after == before
    for told in (manifests[0], manifests[0].get("minus", {})):  # the folders of who pushed it are nobody's business
        if "source" in told:
            told["source"] = Path(told["source"]).name
    assert manifests[1] == manifests[0]
    if model == LLAMA:
        assert faults(tmp_path / model, site_data.parent / "sources" / model, sample=3) == []


@pytest.mark.parametrize("where", ["hub", "web", "folder"])
def test_from_anywhere(
    where: str, tiny: Path, web: tuple[StaticServer, str], hub: DatasetHub, tmp_path: Path, run: Run
) -> None:
    commit = publish(hub, tiny)
    asked = {"hub": REPOSITORY, "web": web[1], "folder": str(tiny)}[where]
    code, said = run("pull", asked, "--data", tmp_path)
    assert code == 0
    assert re.findall(r"layer (\d) is ready", said) == ["3", "2", "1", "0"]
    assert files(tmp_path / "tiny") == files(tiny)
    assert not (tmp_path / "tiny" / ARRIVING).exists()
    record = json.loads((tmp_path / "tiny" / PULLED).read_text())
    assert (record["asked"], record["commit"]) == (asked, commit if where == "hub" else "")
    assert record["complete"]
    stamps = {path.name: path.stat().st_mtime_ns for path in (tmp_path / "tiny").iterdir() if path.name != ".lock"}
    assert "nothing to do" in run("pull", asked, "--data", tmp_path)[1]
    assert stamps == {
        path.name: path.stat().st_mtime_ns for path in (tmp_path / "tiny").iterdir() if path.name != ".lock"
    }


@pytest.mark.parametrize("where", ["hub", "web", "folder"])
def test_the_bar_moves_with_the_bytes(
    where: str, tiny: Path, web: tuple[StaticServer, str], hub: DatasetHub, tmp_path: Path
) -> None:
    publish(hub, tiny)
    published = open_published({"hub": REPOSITORY, "web": web[1], "folder": str(tiny)}[where])
    shares: list[float] = []
    arrived = published.fetch(Manifest.load(tiny).shards[2], tmp_path, shares.append)
    assert arrived.read_bytes() == (tiny / SHARD).read_bytes()
    assert sum(shares) == pytest.approx(1)


@pytest.mark.parametrize("asked", [
    f"https://huggingface.co/datasets/{REPOSITORY}", f"https://hf.co/datasets/{REPOSITORY}/tree/v1/",
    f"hf://datasets/{REPOSITORY}",
])  # fmt: skip
def test_addresses_that_people_copy(asked: str, tiny: Path, hub: DatasetHub, tmp_path: Path, run: Run) -> None:
    publish(hub, tiny)
    hub.repositories[REPOSITORY].branches["v1"] = hub.repositories[REPOSITORY].branches["main"]
    assert run("pull", asked, "--data", tmp_path)[0] == 0


def test_some_layers_then_the_others(tiny: Path, web: tuple[StaticServer, str], tmp_path: Path, run: Run) -> None:
    site, address = web
    run("pull", address, "--layers", "1-2", "--data", tmp_path)
    assert Index.open(tmp_path / "tiny").layers == (1, 2)
    assert Index.open(tmp_path / "tiny").manifest.reads_best is None
    site.asked.clear()
    run("pull", f"{address}/", "--data", tmp_path)
    assert files(tmp_path / "tiny") == files(tiny)
    assert site.names() == [MANIFEST, "layer-3.safetensors", "layer-0.safetensors", LAB]


def test_what_was_published_since(hub: DatasetHub, tiny: Path, tmp_path: Path, run: Run) -> None:
    """A revision is a commit from the start; a later pull takes what is new."""
    manifest = Manifest.load(tiny)
    upper = {layer: entry for layer, entry in manifest.shards.items() if layer >= 2}
    content = files(tiny)
    unfinished = manifest.with_changes(shards=upper, reads_best=None).to_json()
    publish(hub, tiny)
    repository = hub.repositories[REPOSITORY]
    first = repository.commit(
        {name: content[name] for name in content if name not in ("layer-0.safetensors", "layer-1.safetensors")}
        | {MANIFEST: unfinished}
    )
    run("pull", REPOSITORY, "--data", tmp_path)
    assert Index.open(tmp_path / "tiny").layers == (2, 3)
    repository.commit(content)
    hub.downloads.clear()
    run("pull", REPOSITORY, "--revision", first, "--data", tmp_path)
    assert {*hub.downloads} == {MANIFEST}
    run("pull", REPOSITORY, "--data", tmp_path)
    assert files(tmp_path / "tiny") == content


def test_a_server_shows_layers_while_they_arrive(tiny: Path, tmp_path: Path) -> None:
    seen: list[list[int]] = []
    with visit(tmp_path, refresh=0, worker="off") as visitor:
        assert visitor.get("/tiny").status_code == 404

        class Looking(PullProgress):
            def layer_done(self, layer: int) -> None:
                super().layer_done(layer)
                seen.append([visitor.get(f"/tiny/layer/{number}.json").status_code for number in (3, 2, 1, 0)])

        pull(IndexInFolder(tiny), "x", tmp_path, PullOptions(), Looking(Console(file=io.StringIO())), is_reserved)
    assert seen == [[200, 404, 404, 404], [200, 200, 404, 404], [200, 200, 200, 404], [200, 200, 200, 200]]


def test_files_that_are_here_are_kept(tiny: Path, web: tuple[StaticServer, str], tmp_path: Path, run: Run) -> None:
    """A layer that was built here, a file that a kill left unlisted, one that is damaged: only the last is fetched."""
    index = Path(shutil.copytree(tiny, tmp_path / "tiny"))
    manifest = Manifest.load(index)
    local = manifest.with_changes(source="/models/mine", shards={layer: manifest.shards[layer] for layer in (2, 3)})
    local.with_changes(reads_best=None).save(index)
    (index / "layer-0.safetensors").unlink()  # and layer 1 is there, but not listed
    (index / SHARD).write_bytes(b"damaged")
    assert run("pull", web[1], "--data", tmp_path)[0] == 0
    assert [name for name in web[0].names() if name.startswith("layer")] == [SHARD, "layer-0.safetensors"]
    after = files(index)
    assert Manifest.parse(after.pop(MANIFEST)) == manifest.with_changes(source="/models/mine")
    assert after == {name: content for name, content in files(tiny).items() if name != MANIFEST}


def test_an_index_of_another_generation(tiny: Path, tmp_path: Path, run: Run) -> None:
    """Its files get the names that a build would give them here, so that a rebuild never writes over one."""
    write_index(tmp_path / "a" / "tiny", make_manifest(k=5), layers=(3,))
    run("pull", tiny, "--data", tmp_path / "a", "--force")
    rebuilt = Manifest.load(tmp_path / "a" / "tiny")
    assert (rebuilt.generation, {entry.file.split(".")[1] for entry in rebuilt.entries().values()}) == (2, {"g2"})
    run("pull", tiny, "--data", tmp_path / "b", "--layers", "3")
    run("pull", tmp_path / "a" / "tiny", "--data", tmp_path / "b")
    assert files(tmp_path / "b" / "tiny") == files(tiny)
    run("pull", tmp_path / "a" / "tiny", "--data", tmp_path / "c")
    assert files(tmp_path / "c" / "tiny") == files(tmp_path / "a" / "tiny")


def test_another_index_in_its_place(tiny: Path, tmp_path: Path, run: Run) -> None:
    """--force: the old one serves until the new one is complete; stopped in between, the same command goes on."""
    write_index(tmp_path / "tiny", make_manifest(k=5))
    old = files(tmp_path / "tiny")
    code, said = run("pull", tiny, "--data", tmp_path)
    assert (code, files(tmp_path / "tiny")) == (1, old)
    assert "its k is 5, not 10" in said
    assert "add --force to replace it, or choose another --data DIR" in said

    class Stopped(PullProgress):
        def layer_done(self, layer: int) -> None:
            super().layer_done(layer)
            if layer == 2:
                raise KeyboardInterrupt

    stopped = Stopped(Console(file=io.StringIO()))
    with pytest.raises(KeyboardInterrupt):
        pull(IndexInFolder(tiny), "x", tmp_path, PullOptions(force=True), stopped, is_reserved)
    assert Index.open(tmp_path / "tiny").stored.k == 5
    assert Manifest.load(tmp_path / "tiny", NEXT).shards.keys() == {2, 3}
    code, said = run("pull", tiny, "--data", tmp_path, "--force")
    assert re.findall(r"layer (\d) is ready", said) == ["1", "0"]
    wanted = {re.sub(r"^(layer-\d|vocabulary)", r"\1.g2", name): content for name, content in files(tiny).items()}
    now = files(tmp_path / "tiny")
    assert Manifest.parse(now.pop(MANIFEST)).build == Manifest.parse(wanted.pop(MANIFEST)).build
    assert now == wanted


def test_a_build_that_runs_here(tiny: Path, tmp_path: Path, run: Run) -> None:
    with build_lock(tmp_path / "tiny"):
        code, said = run("pull", tiny, "--data", tmp_path)
    assert (code, os.listdir(tmp_path / "tiny")) == (1, [".lock"])
    assert f"is being built by another process (pid {os.getpid()})" in said


def test_measurements_of_other_weights_are_left_out(tiny: Path, tmp_path: Path, run: Run) -> None:
    source = Path(shutil.copytree(tiny, tmp_path / "source" / "tiny"))
    LabRecord.of(make_manifest(model="another")).save(source)
    code, said = run("pull", source, "--data", tmp_path / "data")
    assert (code, (tmp_path / "data" / "tiny" / LAB).exists()) == (0, False)
    assert "lab.json" in said
    assert "of other weights, and left out" in said
    (source / LAB).write_bytes(b"{")
    assert "is damaged, and left out" in run("pull", source, "--data", tmp_path / "data")[1]
    mine = LabRecord.of(Manifest.load(tiny))
    mine.save(source)
    run("pull", source, "--data", tmp_path / "data")
    assert LabRecord.load(tmp_path / "data" / "tiny") == mine


def changed(**changes: Any) -> Callable[[Path], None]:
    """A manifest with other fields."""

    def change(folder: Path) -> None:
        fields = json.loads((folder / MANIFEST).read_text())
        for name, value in changes.items():
            *path, last = name.split("__")
            part = fields
            for step in path:
                part = part[step]
            part[last] = value
        (folder / MANIFEST).write_text(json.dumps(fields))

    return change


def renamed(name: str) -> Callable[[Path], None]:
    """A whole and valid index of a model of this name."""

    def change(folder: Path) -> None:
        shutil.rmtree(folder)
        write_index(folder, make_manifest(model=name))

    return change


def swapped_layers(folder: Path) -> None:
    """With a manifest that vouches for it."""
    manifest = Manifest.load(folder)
    (folder / SHARD).write_bytes((folder / "layer-1.safetensors").read_bytes())
    entry = manifest.shards[1].model_copy(update={"file": SHARD})
    manifest.with_entry(Piece("lists", 2), entry).save(folder)


def other_bytes(name: str) -> Callable[[Path], None]:
    def change(folder: Path) -> None:
        content = bytearray((folder / name).read_bytes())
        content[-1] ^= 1
        (folder / name).write_bytes(content)

    return change


def longer(folder: Path) -> None:
    with (folder / SHARD).open("ab") as file:
        file.write(b"more")


TROUBLE: dict[str, tuple[Callable[[Path], object], str]] = {
    "no manifest": (lambda folder: (folder / MANIFEST).unlink(), "There is no index in .*: it has no manifest.json"),
    "not JSON": (lambda folder: (folder / MANIFEST).write_text("<html>"), "is not that of an index, or is damaged"),
    "too long": (lambda folder: (folder / MANIFEST).write_bytes(b" " * ((1 << 24) + 1)), "longer than 16777216 bytes"),
    "newer format": (changed(format=9), "has format 9; this Lexiscope reads format 3"),
    "endless source": (changed(source="x" * 10_000), "source has 10000 characters, and can have 1000 at most"),
    "endless list": (changed(shape__left_out=["x"] * 101), "shape.left_out has 101 texts, and can have 100 at most"),
    "older format": (changed(format=2), "published by an older Lexiscope"),
    "path upwards": (changed(shards__2__file="../layer-2.safetensors"), r"shards\.2\.file"),
    "manifest as a layer": (changed(shards__2__file=MANIFEST), "the file of layer 2 is called 'manifest.json'"),
    "absurd size": (changed(shards__2__bytes=1 << 45), r"layer-2\.safetensors is to have 35\.2 TB, and can have"),
    "absurd generation": (changed(generation=1 << 24), "its generation is 16777216, and can be 1048576 at most"),
    "endless file name": (changed(shards__2__file=f"layer-2.g{'9' * 99}.safetensors"), "the file of layer 2 is called"),
    "name of a page": (renamed("labels"), "holds an index called 'labels', a name that no model can have"),
    "name of comparisons": (renamed("vs"), "holds an index called 'vs'"),
    "endless name": (renamed("x" * 120), "a name that no model can have"),
    "another layer": (swapped_layers, r"layer-2\.safetensors from .* is as its manifest lists it, but no file of this"),
    "other tokenizer": (lambda folder: (folder / TOKENIZER).write_text("{}"), "does not have the tokenizer.json"),
}


@pytest.mark.parametrize("trouble", TROUBLE)
def test_what_is_no_index_is_refused(trouble: str, tiny: Path, tmp_path: Path, run: Run) -> None:
    source, data = Path(shutil.copytree(tiny, tmp_path / "source" / "tiny")), tmp_path / "data"
    change, said = TROUBLE[trouble]
    change(source)
    code, err = run("pull", source, "--data", data)
    assert code == 1
    assert re.search(said, err), err
    assert_nothing_half(data, {3} if trouble == "another layer" else set())
    assert sorted(path.name for path in tmp_path.iterdir()) == ["data", "source"] or not data.exists()


@pytest.mark.parametrize("where", ["hub", "web", "folder"])
@pytest.mark.parametrize(("change", "said"), [
    (other_bytes(SHARD), "does not have the checksum|is not the file that its manifest lists"),
    (longer, "longer than the|is not the file that its manifest lists"),
    (lambda folder: (folder / SHARD).unlink(), r"layer-2\.safetensors"),
])  # fmt: skip
def test_a_file_that_is_not_the_published_one(
    where: str, change: Callable[[Path], None], said: str, tiny: Path, hub: DatasetHub, tmp_path: Path, run: Run
) -> None:
    source, data = Path(shutil.copytree(tiny, tmp_path / "source" / "tiny")), tmp_path / "data"
    change(source)
    publish(hub, source)
    with StaticServer(source.parent).serve() as url:
        asked = {"hub": REPOSITORY, "web": f"{url}/tiny", "folder": str(source)}[where]
        code, err = run("pull", asked, "--data", data)
        assert (code, re.search(said, err) is not None) == (1, True), err
        assert_nothing_half(data, {3})
        shutil.copy(tiny / SHARD, source / SHARD)
        hub.repositories[REPOSITORY].commit(files(source))
        assert run("pull", asked, "--data", data)[0] == 0
    assert files(data / "tiny") == files(tiny)


def test_a_repository_that_gives_out_other_bytes(tiny: Path, hub: DatasetHub, tmp_path: Path, run: Run) -> None:
    """Its list of files is right, and the file is not."""
    publish(hub, tiny)
    hub.altered[SHARD] = bytes(len((tiny / SHARD).read_bytes()))
    code, err = run("pull", REPOSITORY, "--data", tmp_path)
    assert code == 1
    assert "layer-2.safetensors from me/tiny-lists at" in err
    assert_nothing_half(tmp_path, {3})
    hub.altered.clear()
    assert run("pull", REPOSITORY, "--data", tmp_path)[0] == 0
    assert files(tmp_path / "tiny") == files(tiny)


@pytest.mark.parametrize("where", ["hub", "web", "folder"])
def test_a_full_disk(
    where: str, tiny: Path, web: tuple[StaticServer, str], hub: DatasetHub, tmp_path: Path, run: Run
) -> None:
    publish(hub, tiny)
    asked = {"hub": REPOSITORY, "web": web[1], "folder": str(tiny)}[where]
    with small_disk((tiny / SHARD).stat().st_size - 1000):
        code, err = run("pull", asked, "--data", tmp_path)
    assert code == 1
    assert re.search("no space left in|Writing to .* failed", err), err
    assert "run the same command again" in err
    assert_nothing_half(tmp_path, set())
    assert run("pull", asked, "--data", tmp_path)[0] == 0
    assert files(tmp_path / "tiny") == files(tiny)


def test_too_little_room_is_said_before_anything_is_fetched(
    tmp_path: Path, web: tuple[StaticServer, str], monkeypatch: pytest.MonkeyPatch, run: Run
) -> None:
    monkeypatch.setattr(shutil, "disk_usage", lambda _: SimpleNamespace(free=100_000))
    code, err = run("pull", web[1], "--data", tmp_path)
    assert (code, web[0].names()) == (1, [MANIFEST])
    assert re.search(r"tiny takes 2\d\d kB more, and .* has 100 kB left", err), err


@pytest.mark.parametrize(("words", "said"), [
    (("pull", "tiny", "--layers", "1,7"), "layer 7 of tiny is not in .*: it has 0-3 of 4 layers"),
    (("pull", "tiny", "--revision", "v1"), "is no repository of the Hub"),
    (("pull", "nowhere"), "nowhere is neither a folder here, nor an address"),
    (("pull", "."), "There is no index in"),
    (("pull", "tiny", "--data", "."), "is the very index that is to be pulled"),
    (("pull", "https://user:secret@example.org/x"), "https://example.org/x is not the address of a folder"),
    (("pull", "http://example.org/x?token=secret"), "is not the address of a folder"),
    (("pull", "https://"), "is not the address of a folder"),
    (("pull", "http://["), "is no address of a web server"),
    (("pull", "http://a..b/"), "is no address of a web server"),
    (("pull", "x" * 5000), "x{80} cannot be looked for .File name too long"),
    (("pull", "~nobody-of-this-name/x"), "cannot be looked for"),
    (("pull", "tiny", "--data", "x" * 300), "--data x{80} cannot be used .File name too long"),
])  # fmt: skip
def test_what_cannot_be_meant(
    words: tuple[str, ...], said: str, tiny: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, run: Run
) -> None:
    monkeypatch.chdir(tiny.parent)
    data = () if "--data" in words else ("--data", tmp_path / "data")
    code, err = run(*words, *data)
    assert (code, re.search(said, err) is not None) == (1, True), err
    assert "secret" not in err
    assert not (tmp_path / "data").exists()


def test_links_are_not_followed(tiny: Path, tmp_path: Path, run: Run) -> None:
    precious, index = tmp_path / "precious", tmp_path / "data" / "tiny"
    (precious / "inside").mkdir(parents=True)
    index.mkdir(parents=True)
    (index / ARRIVING).symlink_to(precious)
    for name in (SHARD, TOKENIZER, PULLED + PARTIAL):
        (index / name).symlink_to(precious / "inside")
    assert run("pull", tiny, "--data", index.parent)[0] == 0
    assert files(index) == files(tiny)
    assert [path.name for path in precious.rglob("*")] == ["inside"]


def test_the_folder_of_an_index_may_be_elsewhere(tiny: Path, tmp_path: Path, run: Run) -> None:
    """As with `precompute`: whoever owns the data folder may have put it on a larger disk."""
    (tmp_path / "data").mkdir()
    (tmp_path / "larger").mkdir()
    (tmp_path / "data" / "tiny").symlink_to(tmp_path / "larger")
    assert run("pull", tiny, "--data", tmp_path / "data")[0] == 0
    assert files(tmp_path / "larger") == files(tiny)


def assert_nothing_half(data: Path, layers: set[int]) -> None:
    """These layers are whole, and nothing else is called by the name of a file of an index."""
    for folder in data.iterdir() if data.exists() else ():
        shards = {int(path.name[6:-12]) for path in folder.glob("layer-*.safetensors")}
        assert shards == layers
        assert not list(folder.glob(f"*{PARTIAL}"))
        if (folder / MANIFEST).exists():
            index = Index.open(folder)
            assert ({*index.layers}, index.faults) == (layers, {})
