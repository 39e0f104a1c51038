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

from lexiscope.precompute.errors import (
    IndexMissing,
    LexiscopeError,
    ManifestDamaged,
    NewerFormat,
    NotFound,
    NotStored,
    OldFormat,
    ShardDamaged,
)
from lexiscope.precompute.files import stamp_of
from lexiscope.precompute.index.index import Index
from lexiscope.precompute.index.layout import Piece
from lexiscope.precompute.index.manifest import MANIFEST, FileEntry, Manifest, Minus, has_manifest
from lexiscope.precompute.index.not_stored import check_kinds
from lexiscope.precompute.shape import Shape
from tests.support.synthetic import GPT2, LLAMA, make_manifest, write_index

ENTRY = FileEntry(file="vocabulary.safetensors", bytes=100, sha256="a" * 64)
FILE = json.loads(ENTRY.model_dump_json())
FULL = (
    make_manifest()
    .with_changes(vocabulary=ENTRY)
    .with_entry(Piece("lists", 3), FileEntry(file="layer-3.safetensors", bytes=5, sha256="b" * 64))
)


@pytest.mark.parametrize("manifest", [
    FULL,
    FULL.with_entry(Piece("lists", 0), FileEntry(file="layer-0.safetensors", bytes=6, sha256="c" * 64)),
    make_manifest(LLAMA, "SmolLM2-135M_x.gguf", k=1, pairs=1, generation=7).with_changes(vocabulary=ENTRY),
    FULL.with_changes(reads_best="cosine"),
    FULL.with_changes(source="/home/日本/modél\n\x1b", revision="main"),
])  # fmt: skip
def test_round_trip(tmp_path: Path, manifest: Manifest) -> None:
    manifest.save(tmp_path)
    assert Manifest.load(tmp_path) == manifest
    assert Manifest.load(tmp_path).build == manifest.build
    assert [path.name for path in tmp_path.iterdir()] == [MANIFEST]


def test_equal_manifests_are_equal_bytes() -> None:
    shards = {layer: FileEntry(file=f"layer-{layer}.safetensors", bytes=5, sha256="b" * 64) for layer in (10, 2, 0)}
    shape = replace(GPT2, n_layers=11)
    one = FULL.with_changes(shape=shape, shards=shards)
    other = FULL.with_changes(shape=shape, shards=dict(sorted(shards.items())))
    assert one.to_json() == other.to_json()
    assert list(json.loads(one.to_json())["shards"]) == ["0", "2", "10"]
    assert list(Manifest.parse(one.to_json()).shards) == [0, 2, 10]


@pytest.mark.parametrize("change", [
    {"model": "other"}, {"revision": "abc"}, {"weights_sha256": "0" * 64}, {"tokenizer_sha256": "0" * 64},
    {"shape": replace(GPT2, d_mlp=7)}, {"k": 5}, {"pairs": 5},
])  # fmt: skip
def test_the_build_changes_with_what_decides_the_contents(change: dict[str, Any]) -> None:
    assert FULL.with_changes(**change).build != FULL.build


@pytest.mark.parametrize("change", [
    {"source": "elsewhere"}, {"generation": 2}, {"reads_best": "cosine"}, {"vocabulary": None}, {"shards": {}},
    {"shape": replace(GPT2, name="GPT-2", left_out=("a",), left_out_writing=("b",), d_rotary=4, predicts="masked")},
])  # fmt: skip
def test_the_build_stays_when_only_the_files_differ_or_what_is_for_people(change: dict[str, Any]) -> None:
    assert FULL.with_changes(**change).build == FULL.build


def test_the_build_is_the_same_on_every_machine() -> None:
    """A golden value: indexes that exist must stay readable."""
    shape = Shape("gpt2", 12, 12, 12, 768, 64, 3072, 50257, gated=False, tied=True, positions="learned")
    hashes = {"weights_sha256": "1" * 64, "tokenizer_sha256": "2" * 64}
    manifest = make_manifest(shape, "gpt2", 100, 500, kinds=None, **hashes).with_changes(revision="abc")
    assert manifest.build == "862f869ba7d8769f"


def test_a_manifest_from_before_shapes_had_these_fields_is_still_read(tmp_path: Path) -> None:
    content = json.loads(FULL.to_json())
    for name in ("causal", "name", "left_out", "left_out_writing", "d_rotary", "predicts"):
        del content["shape"][name]
    (tmp_path / MANIFEST).write_text(json.dumps(content))
    assert Manifest.load(tmp_path) == FULL


MINUS = Minus(tuned="tuned", model="base", source="someone/base", revision="", weights_sha256="0" * 64)


def test_how_far_the_embedding_of_a_difference_moved() -> None:
    """It decides no list, so the build is that of a difference from before it was recorded, which is still read."""
    older = FULL.with_changes(minus=MINUS)
    assert "embedding_change" not in json.loads(older.to_json())
    assert Manifest.parse(older.to_json()).embedding_change is None
    newer = older.with_changes(embedding_change={"W_E": 0.25, "W_U": 0.0})
    assert Manifest.parse(newer.to_json()) == newer
    assert newer.build == older.build


@pytest.mark.parametrize("change", [{"W_E": -0.5}, {"W_E": None}, {"W_Q": 0.5}, 0.5])
def test_no_such_change_of_an_embedding(change: Any) -> None:
    content = json.loads(FULL.with_changes(minus=MINUS).to_json()) | {"embedding_change": change}
    with pytest.raises(ValueError, match="embedding_change"):
        Manifest.parse(json.dumps(content).encode())


def test_only_a_difference_has_a_change_of_its_embedding() -> None:
    with pytest.raises(ValueError, match="embedding_change is of a difference"):
        FULL.with_changes(embedding_change={"W_E": 0.25})


def test_an_index_from_before_directions_is_still_read(tmp_path: Path) -> None:
    older = write_index(tmp_path / "tiny", make_manifest(kinds=None))
    assert "kinds" not in json.loads((tmp_path / "tiny" / MANIFEST).read_text())
    assert older.stored.kinds == ("ff_key", "ff_value", "w_q", "w_k", "w_v", "w_o")
    index = Index.open(tmp_path / "tiny")
    assert index.layers == (0, 1, 2, 3)
    assert index.stored.options == ""
    assert not index.faults
    assert index.shard(0).vector("w_o", 1, "dot").norm > 0
    with pytest.raises(NotFound, match="there are "):
        index.shard(0).vector("vo_in", 0, "dot")
    with pytest.raises(NotFound, match="directions 'vo'"):
        index.shard(0).heads.all_singular("vo")
    with pytest.raises(NotStored, match=r"has no directions\. `lexiscope precompute someone/tiny --force` builds"):
        check_kinds(index, "vo_in", "vo_out")


def put(*path: str, value: Any) -> Callable[[dict[str, Any]], Any]:
    def change(content: dict[str, Any]) -> Any:
        place = content
        for name in path[:-1]:
            place = place[name]
        place[path[-1]] = value
        return content

    return change


@pytest.mark.parametrize(("change", "said"), [
    (lambda content: [content], "not an object"),
    (lambda content: {name: value for name, value in content.items() if name != "k"}, "k: Field required"),
    (put("format", value="3"), "format: "),
    (put("model", value="../../etc"), "model: "),
    (put("model", value=".hidden"), "model: "),
    (put("model", value="gpt2\n"), "model: "),
    (put("source", value="a\udce9"), "surrogate"),
    (put("weights_sha256", value="abc"), "weights_sha256: "),
    (put("k", value=0), "k: .*greater than or equal to 1"),
    (put("k", value=True), "k: .*valid integer"),
    (put("k", value=1 << 16), "k is 65536, more than the"),
    (put("reads_best", value="l2"), "reads_best is not one of dot, cosine"),
    (lambda content: {name: value for name, value in content.items() if name != "reads_best"}, "lacks some"),
    (put("generation", value=10**400), "generation: "),
    (put("lenses", value=["cosine", "dot"]), "lenses are not some of dot, cosine, in this order"),
    (put("lenses", value=["dot"]), "fingerprint"),
    (put("kinds", value=["ff_value", "ff_key"]), "kinds are not some of ff_key, .*, in this order"),
    (put("kinds", value=["ff_key", "ff_value", "w_q", "w_k", "w_v", "w_o"]), "kinds are all there are but directions"),
    (put("kinds", value=["ff_key"]), "fingerprint"),
    (put("presets", value="all"), "presets: "),
    (put("shape", value=None), "shape: "),
    (put("shape", "more", value=1), "fields that a manifest does not have"),
    (put("shape", "n_layers", value=0), "shape.n_layers is 0"),
    (put("shape", "d_vocab", value=1 << 40), "shape.d_vocab is"),
    (put("pairs", value=1 << 32), "pairs"),
    (put("shape", "gated", value=0), "shape.gated: "),
    (put("shape", "positions", value="none"), "shape.positions: "),
    (put("shape", "n_kv_heads", value=3), "cannot share"),
    (put("shape", "d_mlp", value=7), "fingerprint"),
    (put("build", value="0" * 16), "fingerprint"),
    (put("vocabulary", value=None), "lists no vocabulary"),
    (put("vocabulary", "file", value="../x"), "vocabulary.file: "),
    (put("shards", value=[]), "shards: "),
    (put("shards", "3", "file", value="/etc/passwd"), "shards.3.file: "),
    (put("shards", "3", "bytes", value=0), "shards.3.bytes: "),
    (put("shards", "3", "sha256", value="B" * 64), "shards.3.sha256: "),
    (put("shards", "4", value=FILE), "a layer 4; there are layers 0 to 3"),
    (put("shards", "02", value=FILE), "fields that a manifest does not have"),
    (put("shards", "9" * 5000, value={}), "shards"),
    *(
        (put("parts", value={part: {layer: FILE}}), f"parts holds {part}, which has")
        for part, layer in (("lists", "3"), ("vocabulary", "model"), ("neighbours", "model"), ("classifier", "model"))
    ),
    (put("parts", value={"../x": {"model": FILE}}), r"parts\.\.\./x"),
    (put("parts", value={"stats": {"3": FILE | {"file": "../x"}}}), "parts.stats.3.file: "),
])  # fmt: skip
def test_a_manifest_with_wrong_fields(tmp_path: Path, change: Callable[[Any], Any], said: str) -> None:
    content = change(json.loads(FULL.to_json()))
    (tmp_path / MANIFEST).write_text(json.dumps(content))
    with pytest.raises(ManifestDamaged, match=said) as caught:
        Manifest.load(tmp_path)
    assert str(tmp_path / MANIFEST) in str(caught.value)
    assert f"`lexiscope precompute {tmp_path.name}`" in str(caught.value)
    assert len(str(caught.value)) < 1000


@pytest.mark.parametrize(("content", "said"), [
    (b"", "not JSON"), (FULL.to_json()[:-20], "not JSON"), (b"\xff\xfe", "not UTF-8"),
    (b"[" * 100_000, "nested too deeply"), (b'{"k": 1, "k": 1}', "twice"), (b'{"k": NaN}', "NaN"),
    (b'{"k": Infinity}', "Infinity"),
    (b" " * ((1 << 24) + 1), "longer than"),
])  # fmt: skip
def test_a_manifest_that_is_no_json(tmp_path: Path, content: bytes, said: str) -> None:
    (tmp_path / MANIFEST).write_bytes(content)
    with pytest.raises(ManifestDamaged, match=said):
        Manifest.load(tmp_path)


@pytest.mark.parametrize("content", [b'{"format": 4}', FULL.to_json().replace(b'"format": 3', b'"format": 99')])
def test_a_manifest_of_a_newer_format(tmp_path: Path, content: bytes) -> None:
    (tmp_path / MANIFEST).write_bytes(content)
    with pytest.raises(NewerFormat, match=r"this Lexiscope reads format 3\. Upgrade lexiscope") as caught:
        Manifest.load(tmp_path)
    assert str(tmp_path / MANIFEST) in str(caught.value)


@pytest.mark.parametrize(("content", "source"), [
    (b'{"format_version": 1, "source": "demo"}', "demo"),
    (FULL.to_json().replace(b'"format": 3', b'"format_version": 1'), "someone/tiny"),
    (FULL.to_json().replace(b'"format": 3', b'"format": 1'), "someone/tiny"),
    (FULL.to_json().replace(b'"format": 3', b'"format": 2'), "someone/tiny"),
])  # fmt: skip
def test_a_manifest_of_an_older_format_names_the_command_that_rebuilds(
    tmp_path: Path, content: bytes, source: str
) -> None:
    (tmp_path / MANIFEST).write_bytes(content)
    with pytest.raises(OldFormat, match=f"has format [12]; this one reads format 3. `lexiscope precompute {source}`"):
        Manifest.load(tmp_path)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
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


@pytest.mark.parametrize("name", [MANIFEST, "a"])
def test_pipes_and_devices_are_not_waited_for(tmp_path: Path, name: str) -> None:
    for make in (os.mkfifo, lambda path: path.symlink_to("/dev/zero")):
        make(tmp_path / name)
        with pytest.raises((ManifestDamaged, ShardDamaged), match=rf"{name} cannot be read: Not a regular file"):
            Manifest.load(tmp_path) if name == MANIFEST else ENTRY.model_copy(update={"file": "a"}).check_sum(tmp_path)
        (tmp_path / name).unlink()


def test_a_manifest_without_a_vocabulary_is_not_saved(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="vocabulary"):
        make_manifest().save(tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_the_stamp_follows_the_manifest(tmp_path: Path) -> None:
    assert not has_manifest(tmp_path)
    FULL.save(tmp_path)
    assert has_manifest(tmp_path)
    loaded, stamp = Manifest.load_stamped(tmp_path)
    assert loaded == FULL
    assert stamp_of(tmp_path / MANIFEST) == stamp
    FULL.save(tmp_path)
    assert stamp_of(tmp_path / MANIFEST) not in (None, stamp)


def test_check_sum(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"abc")
    fips_180_2 = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
    entry = FileEntry(file="a", bytes=3, sha256=fips_180_2)
    entry.check_sum(tmp_path)
    (tmp_path / "a").write_bytes(b"abd")
    with pytest.raises(ShardDamaged, match="checksum"):
        entry.check_sum(tmp_path)
    (tmp_path / "a").unlink()
    with pytest.raises(ShardDamaged, match="is missing"):
        entry.check_sum(tmp_path)


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_a_folder_that_may_not_be_looked_into_is_there(tmp_path: Path) -> None:
    tmp_path.chmod(0)
    try:
        assert has_manifest(tmp_path)
        with pytest.raises(ManifestDamaged, match="cannot be read"):
            Manifest.load(tmp_path)
    finally:
        tmp_path.chmod(0o700)
