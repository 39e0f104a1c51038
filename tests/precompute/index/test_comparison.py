"""Comparisons on disk as a reader meets them: finished, unfinished, damaged, of something else. No torch is needed."""

import hashlib
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from lexiscope.precompute.errors import IndexMissing, ManifestDamaged, NewerFormat, NotBuilt, NotFound, ShardDamaged
from lexiscope.precompute.files import write_beside
from lexiscope.precompute.index.comparison import Comparison, comparison_folders
from lexiscope.precompute.index.comparison_record import KERNEL, ComparisonRecord, comparison_file, comparison_folder
from lexiscope.precompute.index.manifest import FileEntry
from lexiscope.precompute.index.stitching import STITCHING
from lexiscope.precompute.index.tensor_file import Array, write_tensors
from lexiscope.precompute.rebuild_command import COMPARISON

KINDS = {"ff_key": 6, "ff_value": 6, "w_q": 4}


def make_record(**changes: Any) -> ComparisonRecord:
    def side(name: str, n_layers: int) -> dict[str, Any]:
        hashes = {"weights_sha256": hashlib.sha256(name.encode()).hexdigest(), "tokenizer_sha256": "0" * 64}
        source = f"someone/{name}"
        return {
            "model": name,
            "source": source,
            "revision": "",
            "n_layers": n_layers,
            "d_model": 4,
            "kinds": KINDS,
        } | hashes

    fields = {"a": side("one", 3), "b": side("other", 2), "tokens": 1234, "matched": "ids"} | changes
    return ComparisonRecord.model_validate_json(json.dumps(fields))


def arrays(record: ComparisonRecord, name: str) -> dict[str, Array]:
    """Random ones, in order: of matches the r falls, layers and indexes are those of vectors that there are."""
    dice = np.random.default_rng(len(name))
    made: dict[str, Array] = {}
    for array, (dtype, shape) in record.layout(name).items():
        if array.endswith("assignment"):
            made[array] = np.stack([dice.permutation(3)[:2], dice.permutation(2)], axis=1).astype(dtype)
        elif array.endswith(".r"):
            made[array] = -np.sort(-dice.random(shape, np.float32)) * dice.choice([-1, 1], shape).astype(dtype)
        elif array.endswith(".layer"):
            made[array] = dice.integers(0, 2, shape).astype(dtype)
        elif array.endswith(".index"):
            made[array] = dice.integers(0, record.a.kinds[name], shape).astype(dtype)
        else:
            made[array] = dice.random(shape).astype(dtype)
    return made


def write(
    folder: Path, record: ComparisonRecord, names: tuple[str, ...], change: dict[str, Array] | None = None
) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    files = {}
    for name in names:
        made = arrays(record, name) | (change or {})
        sha256, n_bytes = write_tensors(folder / comparison_file(name), made, record.metadata)
        files[name] = FileEntry(file=comparison_file(name), bytes=n_bytes, sha256=sha256)
    record.with_files(files).save(folder)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Of three kinds, two are compared."""
    folder = comparison_folder(tmp_path, "one", "other")
    write(folder, make_record(), ("ff_key", "w_q", KERNEL))
    return folder


def test_what_is_there(folder: Path) -> None:
    comparison, made = Comparison.open(folder), arrays(make_record(), "w_q")
    assert (comparison.a.model, comparison.b.model, comparison.tokens) == ("one", "other", 1234)
    assert comparison.kinds == ("ff_key", "w_q")
    assert comparison.record.kinds == ("ff_key", "ff_value", "w_q")
    for name, read in (("similarity", comparison.similarity), ("feature_space", comparison.feature_space)):
        assert np.array_equal(read("w_q"), made[name])  # type: ignore[arg-type]
    assert comparison.assignment("w_q") == [(int(a), int(b)) for a, b in made["assignment"]]
    assert comparison.feature_assignment("w_q") == [(int(a), int(b)) for a, b in made["feature_assignment"]]
    assert np.array_equal(comparison.kernel(), arrays(make_record(), KERNEL)["kernel"])
    for side, n_layers in (("a", 3), ("b", 2)):
        for layer in range(n_layers):
            for index in range(4):
                expected = [made[f"{side}.{part}"][layer * 4 + index].tolist() for part in ("layer", "index", "r")]
                found = comparison.matches("a" if side == "a" else "b", "w_q", layer, index)
                assert found == [*zip(*expected, strict=True)]
    best = np.argsort(-np.abs(made["a.r"][:, 0]), kind="stable")[:3]
    assert [(pair.a_layer, pair.a_index) for pair in comparison.strongest("w_q", 3)] == [divmod(at, 4) for at in best]
    assert len(comparison.strongest("w_q", 99)) == 12


def test_other_widths_have_no_feature_space(tmp_path: Path) -> None:
    record = make_record()
    record = record.model_copy(update={"b": record.b.model_copy(update={"d_model": 8})})
    folder = comparison_folder(tmp_path, "one", "other")
    write(folder, record, ("w_q",))
    comparison = Comparison.open(folder)
    assert comparison.feature_space("w_q") is None
    assert comparison.feature_assignment("w_q") is None
    assert comparison.similarity("w_q").shape == (3, 2)


@pytest.mark.parametrize(("read", "error", "said"), [
    (lambda found: found.similarity("ff_value"), NotBuilt, "`lexiscope compare someone/one someone/other` goes on"),
    (lambda found: found.similarity("ff_up"), NotFound, "one and other do not both have it"),
    (lambda found: found.matches("a", "w_q", 3, 0), NotFound, "one has layers 0 to 2, each with w_q 0 to 3"),
    (lambda found: found.matches("b", "w_q", 2, 0), NotFound, "other has layers 0 to 1"),
    (lambda found: found.matches("b", "w_q", 0, -1), NotFound, "w_q -1 of layer 0"),
])  # fmt: skip
def test_what_is_not_there(
    folder: Path, read: Callable[[Comparison], object], error: type[Exception], said: str
) -> None:
    with pytest.raises(error, match=said):
        read(Comparison.open(folder))


@pytest.mark.parametrize(("spoil", "said"), [
    (Path.unlink, "is missing. Run `lexiscope compare someone/one someone/other` again to make it"),
    (lambda path: path.write_bytes(path.read_bytes()[:-1]), "cut short.*Delete this file and run `lexiscope compare"),
    (lambda path: path.write_bytes((path.parent / "w_q.safetensors").read_bytes()), "does not fit comparison.json"),
])  # fmt: skip
def test_a_damaged_file_says_so_and_the_others_serve(folder: Path, spoil: Callable[[Path], object], said: str) -> None:
    spoil(folder / comparison_file("ff_key"))
    comparison = Comparison.open(folder)
    with pytest.raises(ShardDamaged, match=said) as raised:
        comparison.similarity("ff_key")
    assert "verify" not in str(raised.value)
    assert comparison.similarity("w_q").shape == (3, 2)


@pytest.mark.parametrize(("change", "read"), [
    ({"similarity": np.full((3, 2), np.nan, np.float32)}, lambda found: found.similarity("w_q")),
    ({"assignment": np.array([[0, 0], [1, 2]], np.uint16)}, lambda found: found.assignment("w_q")),
    ({"a.layer": np.full((12, 8), 2, np.uint16)}, lambda found: found.matches("a", "w_q", 0, 0)),
    ({"a.index": np.full((12, 8), 4, np.uint32)}, lambda found: found.strongest("w_q", 1)),
    ({"a.r": np.tile(np.linspace(0, 1, 8, dtype=np.float32), (12, 1))}, lambda found: found.matches("a", "w_q", 0, 0)),
])  # fmt: skip
def test_numbers_that_cannot_be(folder: Path, change: dict[str, Array], read: Callable[[Comparison], object]) -> None:
    write(folder, make_record(), ("w_q",), change)
    with pytest.raises(ShardDamaged, match="is damaged"):
        read(Comparison.open(folder))


def test_a_file_of_another_comparison(folder: Path) -> None:
    other = make_record(tokens=999)
    write_tensors(folder / comparison_file("w_q"), arrays(other, "w_q"), other.metadata)
    with pytest.raises(ShardDamaged, match="belongs to another comparison"):
        Comparison.open(folder).similarity("w_q")


@pytest.mark.parametrize(("change", "error", "said"), [
    (lambda fields: fields | {"format": 2}, NewerFormat, "Upgrade lexiscope"),
    (lambda fields: fields | {"tokens": 1}, ManifestDamaged, "fingerprint"),
    (lambda fields: fields | {"tokens": "many"}, ManifestDamaged, "tokens: Input should be a valid integer"),
    (lambda fields: [fields], ManifestDamaged, "it is not an object"),
    (lambda fields: fields | {"files": {"ff_up": fields["files"]["w_q"]}}, ManifestDamaged, "a file of 'ff_up'"),
    (lambda fields: fields | {"a": fields["a"] | {"kinds": {"x": 1}}}, ManifestDamaged, "kinds are not some of"),
    (lambda fields: fields | {"a": fields["a"] | {"model": "../x"}}, ManifestDamaged, "a.model"),
])  # fmt: skip
def test_a_record_that_is_none(
    folder: Path, change: Callable[[dict[str, Any]], object], error: type[Exception], said: str
) -> None:
    fields = json.loads((folder / COMPARISON).read_text())
    (folder / COMPARISON).write_text(json.dumps(change(fields)))
    with pytest.raises(error, match=said):
        Comparison.open(folder)


def test_no_comparison(tmp_path: Path, folder: Path) -> None:
    with pytest.raises(IndexMissing, match="run `lexiscope compare one third` to make it"):
        Comparison.open(comparison_folder(tmp_path, "one", "third"))
    folder.rename(folder.with_name("third"))
    with pytest.raises(ShardDamaged, match="compares one with other"):
        Comparison.open(folder.with_name("third"))


def test_what_changes_is_noticed(folder: Path) -> None:
    comparison = Comparison.open(folder)
    assert not comparison.is_changed()
    write_beside(folder / STITCHING, [b"[]"])
    assert comparison.is_changed()
    assert Comparison.open(folder).stamp != comparison.stamp
    comparison = Comparison.open(folder)
    write(folder, make_record(), ("ff_key", "ff_value", "w_q"))
    assert comparison.is_changed()


def test_the_comparisons_of_a_data_folder(tmp_path: Path, folder: Path) -> None:
    assert comparison_folders(tmp_path / "nothing") == []
    (tmp_path / "vs" / "one" / "empty").mkdir()
    (tmp_path / "vs" / ".hidden" / "other").mkdir(parents=True)
    (tmp_path / "vs" / ".hidden" / "other" / COMPARISON).write_text("{}")
    (tmp_path / "vs" / "file").write_text("")
    assert comparison_folders(tmp_path) == [folder]
