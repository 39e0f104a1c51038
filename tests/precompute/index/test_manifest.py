"""The manifest: round trip, fingerprint, replacement in one step, and manifests that are no good."""

import json
import os
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from precompute.errors import BuildError, IndexMissing, LexiscopeError, ManifestDamaged, NewerFormat, ShardDamaged
from precompute.files import PARTIAL
from precompute.index.manifest import DEMO_NAME, MANIFEST, FileEntry, Manifest, model_name, signature_of
from precompute.index.manifest_fields import parse_fields
from precompute.shape import Shape
from tests.support.synthetic import GPT2, LLAMA, make_manifest

ENTRY = FileEntry("vocabulary.g1.lxs", 100, "a" * 64)
FULL = make_manifest().with_vocabulary(ENTRY).with_shard(3, FileEntry("layer-3.g1.lxs", 5, "b" * 64))


@pytest.mark.parametrize(
    "manifest",
    [
        FULL,
        FULL.with_shard(0, FileEntry("layer-0.g1.lxs", 6, "c" * 64)),
        make_manifest(LLAMA, "SmolLM2-135M_x.gguf", k=1, pairs=1, generation=7).with_vocabulary(ENTRY),
        replace(FULL, source="/home/日本/modél\n\x1b", revision="main"),
    ],
)
def test_round_trip(tmp_path: Path, manifest: Manifest) -> None:
    manifest.save(tmp_path)
    assert Manifest.load(tmp_path) == manifest
    assert Manifest.load(tmp_path).build == manifest.build
    assert [path.name for path in tmp_path.iterdir()] == [MANIFEST]


def test_equal_manifests_are_equal_bytes() -> None:
    shards = {layer: FileEntry(f"layer-{layer}.g1.lxs", 5, "b" * 64) for layer in (10, 2, 0)}
    shape = replace(GPT2, n_layers=11)
    one = replace(FULL, shape=shape, shards=shards)
    other = replace(FULL, shape=shape, shards=dict(sorted(shards.items())))
    assert one.to_json() == other.to_json()
    assert list(json.loads(one.to_json())["shards"]) == ["0", "2", "10"]


@pytest.mark.parametrize(
    "change",
    [
        {"model": "other"},
        {"revision": "abc"},
        {"weights_sha256": "0" * 64},
        {"tokenizer_sha256": "0" * 64},
        {"shape": replace(GPT2, d_mlp=7)},
        {"k": 5},
        {"pairs": 5},
    ],
)
def test_the_build_changes_with_what_decides_the_contents(change: dict[str, Any]) -> None:
    assert replace(FULL, **change).build != FULL.build


@pytest.mark.parametrize("change", [{"source": "elsewhere"}, {"generation": 2}, {"vocabulary": None}, {"shards": {}}])
def test_the_build_stays_when_only_the_files_differ(change: dict[str, Any]) -> None:
    assert replace(FULL, **change).build == FULL.build


def test_the_build_is_the_same_on_every_machine() -> None:
    """A golden value: indexes that exist must stay readable."""
    shape = Shape("gpt2", 12, 12, 12, 768, 64, 3072, 50257, gated=False, tied=True, positions="learned")
    assert Manifest("gpt2", "somewhere", "abc", "1" * 64, "2" * 64, shape, 100, 500).build == "b319453dc2a85f25"


def put(*path: str, value: Any) -> Callable[[dict[str, Any]], Any]:
    def change(content: dict[str, Any]) -> Any:
        place = content
        for name in path[:-1]:
            place = place[name]
        place[path[-1]] = value
        return content

    return change


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda content: [content], "not an object"),
        (lambda _: None, "not an object"),
        (lambda content: {name: value for name, value in content.items() if name != "k"}, "missing or unknown: 'k'"),
        (put("surprise", value=1), "missing or unknown: 'surprise'"),
        (put("format_version", value="1"), "format_version is '1'"),
        (put("format_version", value=0), "format_version is 0"),
        (put("format_version", value=None), "format_version is None"),
        (put("model", value="../../etc"), "no name of a model"),
        (put("model", value=""), "no name of a model"),
        (put("model", value=".hidden"), "no name of a model"),
        (put("model", value="gpt2\n"), "no name of a model"),
        (put("model", value=3), "model is not a text"),
        (put("source", value=None), "source is not a text"),
        (put("weights_sha256", value="abc"), "weights_sha256 is not a SHA-256"),
        (put("k", value=0), "k is 0"),
        (put("k", value=True), "k is True"),
        (put("k", value=1.0), "k is 1.0"),
        (put("k", value=1 << 16), "k is 65536, more than the"),
        (put("k", value=(1 << 16) + 1), "k is 65537, not a number"),
        (put("pairs", value=-5), "pairs is -5"),
        (put("generation", value=10**400), "generation is 1000"),
        (put("lenses", value=["cosine", "dot"]), "lenses are not dot, cosine"),
        (put("presets", value="all"), "presets are not"),
        (put("shape", value=None), "shape is not an object"),
        (put("shape", "more", value=1), "shape is not an object"),
        (put("shape", "n_layers", value=0), "shape.n_layers is 0"),
        (put("shape", "d_vocab", value=1 << 40), "shape.d_vocab is"),
        (put("shape", "gated", value=0), "shape.gated is 0"),
        (put("shape", "positions", value="none"), "shape.positions is 'none'"),
        (put("shape", "positions", value=[]), "shape.positions is"),
        (put("shape", "architecture", value=1), "shape.architecture is 1"),
        (put("shape", "n_kv_heads", value=3), "cannot share"),
        (put("shape", "d_mlp", value=7), "fingerprint"),
        (put("weights_sha256", value="0" * 64), "fingerprint"),
        (put("build", value="0" * 16), "fingerprint"),
        (put("build", value=None), "fingerprint"),
        (put("vocabulary", value=None), "file of the vocabulary"),
        (put("vocabulary", "file", value="../x"), "file of the vocabulary"),
        (put("vocabulary", "bytes", value=True), "file of the vocabulary"),
        (put("vocabulary", "more", value=1), "file of the vocabulary"),
        (put("shards", value=[]), "shards is not an object"),
        (put("shards", "3", "file", value="/etc/passwd"), "file of layer 3"),
        (put("shards", "3", "bytes", value=0), "file of layer 3"),
        (put("shards", "3", "bytes", value=10**30), "file of layer 3"),
        (put("shards", "3", "sha256", value="B" * 64), "file of layer 3"),
        (put("shards", "4", value={}), "layer '4'; there are layers 0 to 3"),
        (put("shards", "-1", value={}), "layer '-1'"),
        (put("shards", "03", value={}), "layer '03'"),
        (put("shards", "٣", value={}), "a layer"),
        (put("shards", "9" * 5000, value={}), "a layer '999"),
    ],
)
def test_a_manifest_with_wrong_fields(tmp_path: Path, change: Callable[[Any], Any], said: str) -> None:
    content = change(json.loads(FULL.to_json()))
    (tmp_path / MANIFEST).write_text(json.dumps(content))
    with pytest.raises(ManifestDamaged, match=said) as caught:
        Manifest.load(tmp_path)
    assert str(tmp_path / MANIFEST) in str(caught.value)
    assert f"`lexiscope precompute {tmp_path.name}`" in str(caught.value)
    assert len(str(caught.value)) < 1000


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"", "not JSON"),
        (FULL.to_json()[:-20], "not JSON"),
        (b"\xff\xfe", "not UTF-8"),
        (b"[" * 100_000, "nested too deeply"),
        (b'{"k": 1, "k": 1}', "twice"),
        (b'{"k": NaN}', "NaN"),
        (b'{"k": Infinity}', "Infinity"),
        (b" " * ((1 << 24) + 1), "longer than"),
    ],
)
def test_a_manifest_that_is_no_json(tmp_path: Path, content: bytes, said: str) -> None:
    (tmp_path / MANIFEST).write_bytes(content)
    with pytest.raises(ManifestDamaged, match=said):
        Manifest.load(tmp_path)


@pytest.mark.parametrize(
    "content", [b'{"format_version": 2}', FULL.to_json().replace(b'_version": 1', b'_version": 99')]
)
def test_a_manifest_of_a_newer_version(tmp_path: Path, content: bytes) -> None:
    (tmp_path / MANIFEST).write_bytes(content)
    with pytest.raises(NewerFormat, match=r"versions up to 1\. Upgrade lexiscope") as caught:
        Manifest.load(tmp_path)
    assert str(tmp_path / MANIFEST) in str(caught.value)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(position=st.integers(0, len(FULL.to_json()) - 1), byte=st.integers(0, 255))
def test_any_changed_byte_is_refused_or_harmless(tmp_path: Path, position: int, byte: int) -> None:
    content = bytearray(FULL.to_json())
    content[position] = byte
    (tmp_path / MANIFEST).write_bytes(content)
    try:
        loaded = Manifest.load(tmp_path)
    except LexiscopeError:
        return
    assert loaded.build == FULL.build


def test_no_manifest_no_index(tmp_path: Path) -> None:
    for folder in (tmp_path, tmp_path / "gpt2"):
        with pytest.raises(IndexMissing, match=f"no index in .*`lexiscope precompute {folder.name}`"):
            Manifest.load(folder)


def test_a_manifest_that_cannot_be_read(tmp_path: Path) -> None:
    (tmp_path / MANIFEST).mkdir()
    with pytest.raises(ManifestDamaged, match="cannot be read: Is a directory"):
        Manifest.load(tmp_path)


@pytest.mark.parametrize("name", [MANIFEST, "a"])
def test_pipes_and_devices_are_not_waited_for(tmp_path: Path, name: str) -> None:
    for make in (os.mkfifo, lambda path: path.symlink_to("/dev/zero")):
        make(tmp_path / name)
        with pytest.raises((ManifestDamaged, ShardDamaged), match=rf"{name} cannot be read: Not a regular file"):
            Manifest.load(tmp_path) if name == MANIFEST else FileEntry("a", 3, "0" * 64).check_sum(tmp_path)
        (tmp_path / name).unlink()


def test_a_manifest_without_a_vocabulary_is_not_saved(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="vocabulary"):
        make_manifest().save(tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_a_failed_save_leaves_the_old_manifest(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    FULL.save(tmp_path)

    def fail(*_: Any) -> None:
        raise OSError(5, "Input/output error")

    monkeypatch.setattr(os, "replace", fail)
    with pytest.raises(BuildError, match="Input/output error"):
        replace(FULL, generation=2).save(tmp_path)
    assert Manifest.load(tmp_path) == FULL
    assert not (tmp_path / (MANIFEST + PARTIAL)).exists()


def test_the_signature_follows_the_manifest(tmp_path: Path) -> None:
    assert signature_of(tmp_path) is None
    FULL.save(tmp_path)
    loaded, signature = Manifest.load_signed(tmp_path)
    assert loaded == FULL
    assert signature_of(tmp_path) == signature
    FULL.save(tmp_path)
    assert signature_of(tmp_path) not in (None, signature)


def test_check_sum(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"abc")
    entry = FileEntry("a", 3, "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad")  # FIPS 180-2
    entry.check_sum(tmp_path)
    (tmp_path / "a").write_bytes(b"abd")
    with pytest.raises(ShardDamaged, match="checksum"):
        entry.check_sum(tmp_path)
    (tmp_path / "a").unlink()
    with pytest.raises(ShardDamaged, match="is missing"):
        entry.check_sum(tmp_path)


@pytest.mark.parametrize(
    ("asked", "name"),
    [
        ("gpt2", "gpt2"),
        ("demo", DEMO_NAME),
        ("openai-community/gpt2", "gpt2"),
        ("a/b/c", "a/b/c"),
        ("gpt2/", "gpt2/"),
    ],
)
def test_names_of_models(asked: str, name: str) -> None:
    assert model_name(asked) == name


@pytest.mark.parametrize("name", ["source", "revision"])
def test_texts_that_cannot_be_written_are_refused(name: str) -> None:
    manifest = replace(make_manifest(), vocabulary=FileEntry("v.lxs", 1, "0" * 64))
    said: Any = {name: "é 日本 🐕"}
    parse_fields(replace(manifest, **said).to_json())
    half: Any = {name: "a\udce9"}
    with pytest.raises(ValueError, match=f"{name} holds halves of characters"):
        parse_fields(replace(manifest, **half).to_json())


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_a_folder_that_may_not_be_looked_into_is_there(tmp_path: Path) -> None:
    tmp_path.chmod(0)
    try:
        assert signature_of(tmp_path)
        with pytest.raises(ManifestDamaged, match="cannot be read"):
            Manifest.load(tmp_path)
    finally:
        tmp_path.chmod(0o700)
