"""Parts of an index: those that are missing are added, and nothing else is touched."""

import json
import os
from dataclasses import replace
from io import StringIO
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from rich.console import Console

from lexiscope.precompute.build.build_folder import missing_pieces
from lexiscope.precompute.build.pieces import MAKERS
from lexiscope.precompute.build.progress import Progress
from lexiscope.precompute.errors import NotFound, NotStored, ShardDamaged
from lexiscope.precompute.index import layout
from lexiscope.precompute.index.index import Index
from lexiscope.precompute.index.index_files import LAYOUTS
from lexiscope.precompute.index.layout import MOMENTS, PARTS, Piece
from lexiscope.precompute.index.manifest import MANIFEST, Manifest
from lexiscope.precompute.index.tensor_file import TensorFile, write_tensors
from lexiscope.precompute.travel.in_folder import IndexInFolder
from lexiscope.precompute.travel.pull import PullOptions, pull
from lexiscope.precompute.verify.sums import check_sums
from lexiscope.precompute.weights.architectures import describe
from lexiscope.precompute.weights.checkpoint import Checkpoint
from tests.support.builds import Listener, contents, copy, faults, quick_build, stamps

STATS, HEADS = ([Piece(part, layer) for layer in range(3)] for part in ("stats", "heads"))
CHANCE = Piece("chance")


def test_every_part_has_a_layout_and_a_maker() -> None:
    assert {*PARTS} == {*LAYOUTS} == {*MAKERS}


@pytest.fixture
def before(built: Path, tmp_path: Path) -> Path:
    """An index as it was built before there were parts: without stats, heads and lines of chance, to the byte."""
    index = copy(built, tmp_path)
    manifest = Manifest.load(index)
    manifest.only(manifest.entries().keys() - {*STATS, *HEADS, CHANCE}).save(index)
    for piece in (*STATS, *HEADS, CHANCE):
        (index / piece.file(1)).unlink()
    assert "parts" not in json.loads((index / MANIFEST).read_text())
    return index


def edit(index: Path, **fields: Any) -> None:
    content = json.loads((index / MANIFEST).read_text())
    (index / MANIFEST).write_text(json.dumps(content | fields, indent=1) + "\n")


def test_an_index_of_before_is_extended_and_not_touched(source: Path, built: Path, before: Path) -> None:
    with pytest.raises(NotStored, match="stats of layer 1 of tiny: not in this index"):
        Index.open(before).part("stats", 1)
    there, output = stamps(before), StringIO()
    quick_build(source, before.parent, layers=(2,), parts=("lists",))
    assert stamps(before) == there  # nothing that was asked for is missing, and the manifest keeps its bytes

    progress = Progress(Console(file=output))
    quick_build(source, before.parent, progress)  # type: ignore[arg-type]
    assert (
        "3 of 3 layers are ready, to add: stats of layers 0-2, heads of layers 0-2, lines of chance"
        in output.getvalue()
    )
    assert contents(before) == contents(built)  # as if they had been made together
    now = stamps(before)
    assert {name for name in now if now[name] != there.get(name)} - {".lock"} == {
        MANIFEST,
        *(piece.file(1) for piece in (*STATS, *HEADS, CHANCE)),
    }


def test_some_layers_and_parts(source: Path, before: Path) -> None:
    quick_build(source, before.parent, layers=(1,), parts=("stats",))
    assert [*Manifest.load(before).parts["stats"]] == [1]
    with pytest.raises(NotFound, match="part 'status': the parts of an index are vocabulary, "):
        quick_build(source, before.parent, parts=("status",))


def test_moments_are_those_of_all_scores(source: Path, built: Path) -> None:
    index, model = Index.open(built), describe(Checkpoint.open(source))
    W = model.W_E.numpy().astype(np.float64)
    scores = model.vectors(1, "ff_value").numpy().astype(np.float64) @ W.T
    away = (scores - scores.mean(axis=1, keepdims=True)) / scores.std(axis=1, keepdims=True)
    expected = [scores.mean(axis=1), scores.std(axis=1), (away**3).mean(axis=1), (away**4).mean(axis=1) - 3]
    for row in (0, 5):
        moments = index.moments(1, "ff_value", row, "dot")
        assert moments
        assert [moments[name] for name in MOMENTS] == pytest.approx([column[row] for column in expected], abs=1e-5)  # type: ignore[literal-required]
        assert moments["z"] == pytest.approx(away[row].max(), abs=1e-5)
    assert not faults(built, source)


def test_damaged_and_wrong_parts_are_found_and_made_again(source: Path, built: Path, tmp_path: Path) -> None:
    index = copy(built, tmp_path)
    cut, wrong = (index / piece.file(1) for piece in STATS[:2])
    os.truncate(cut, 100)
    file = TensorFile(wrong)
    arrays = {name: file.array(name).copy() for name in file.tensors}
    arrays["w_q.moments"][:, :, 1] += 1
    write_tensors(wrong, arrays, file.metadata)
    with pytest.raises(ShardDamaged):
        Index.open(index).part("stats", 0)
    assert Index.open(index).moments(0, "w_q", 0, "dot") is None
    assert {name for name, fault in check_sums(Index.open(index)) if fault} == {cut.name, wrong.name}
    assert any("the moments of w_q" in fault for fault in faults(index, source))
    wrong.unlink()
    quick_build(source, tmp_path)
    assert contents(index) == contents(built)


def test_the_version_changes_with_a_part_that_pages_do_without(built: Path, tmp_path: Path) -> None:
    """Browsers keep a page by it: once the part is back, as when files arrive after their manifest, pages have its
    numbers again."""
    index = copy(built, tmp_path)
    path = index / STATS[1].file(1)
    path.rename(index / "away")
    without = Index.open(index)
    assert without.moments(1, "w_q", 0, "dot") is None
    assert without.refreshed() is without
    (index / "away").rename(path)
    restored = without.refreshed()
    assert restored.moments(1, "w_q", 0, "dot")
    assert restored.version not in ("", without.version)
    path.unlink()
    assert restored.refreshed().version != restored.version


def test_a_rebuild_of_some_layers_keeps_the_parts_of_others(source: Path, built: Path, tmp_path: Path) -> None:
    index = copy(built, tmp_path)
    quick_build(source, tmp_path, force=True, layers=(1,))
    files = [Manifest.load(index).parts["stats"][layer].file for layer in range(3)]
    assert files == [STATS[0].file(1), STATS[1].file(2), STATS[2].file(1)]
    assert not [fault for _, fault in check_sums(Index.open(index)) if fault]


def test_an_older_version_of_a_part_is_read(built: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An index from before a number was added to `stats` has its other numbers, and travels; the new one is added."""
    newer = layout.PARTS["stats"].version + 1  # type: ignore[operator]
    monkeypatch.setitem(layout.PARTS, "stats", replace(layout.PARTS["stats"], version=newer))
    monkeypatch.setitem(layout.PER_KIND_OF_STATS, newer, {"{kind}.peak": ("float32", "n")})
    index = Index.open(built)
    assert index.moments(1, "w_q", 0, "dot")
    assert index.stats(1, "w_q.peak", 0) is None
    assert not [error for _, error in check_sums(index) if error]
    assert missing_pieces(index.manifest, [*index.manifest.entries()]) == STATS[::-1]
    pulled = pull(IndexInFolder(built), str(built), tmp_path, PullOptions(), Listener(), lambda _: False)
    assert Index.open(pulled).moments(1, "w_q", 0, "dot") == index.moments(1, "w_q", 0, "dot")


def test_what_is_not_known_is_left_alone(source: Path, built: Path, tmp_path: Path) -> None:
    """Arrays, metadata, fields, parts and versions of a newer program survive a build, and a pull leaves out parts."""
    index = copy(built, tmp_path)
    manifest = Manifest.load(index)
    path = index / STATS[1].file(1)
    file = TensorFile(path)
    arrays = {name: file.array(name) for name in file.tensors} | {"w_q.new": np.zeros(3, np.uint8)}
    sha256, n_bytes = write_tensors(path, arrays, {**file.metadata, "new": "yes"})
    entry = {"file": path.name, "bytes": n_bytes, "sha256": sha256, "more": [1]}
    sha256, n_bytes = write_tensors(index / "wires-0.v1.safetensors", {"a": np.zeros(1, np.uint8)}, {})
    wires = {"file": "wires-0.v1.safetensors", "bytes": n_bytes, "sha256": sha256}
    newer = json.loads(manifest.parts["stats"][2].model_dump_json()) | {"file": "stats-2.v7.safetensors"}
    (index / STATS[2].file(1)).rename(index / "stats-2.v7.safetensors")
    chance = {"model": json.loads(manifest.parts["chance"]["model"].model_dump_json())}
    stats = {"0": json.loads(manifest.parts["stats"][0].model_dump_json()), "1": entry, "2": newer}
    heads = {str(layer): json.loads(entry.model_dump_json()) for layer, entry in manifest.parts["heads"].items()}
    edit(
        index,
        parts={"chance": chance, "heads": heads, "stats": stats, "wires": {"0": wires, "model": wires}},
        future={"a": 1},
    )
    content = json.loads((index / MANIFEST).read_text())

    listener = Listener()
    quick_build(source, tmp_path, listener)
    assert not listener.layers
    assert json.loads((index / MANIFEST).read_text()) == content
    assert (index / "wires-0.v1.safetensors").exists()
    assert not [fault for _, fault in check_sums(Index.open(index)) if fault]
    with pytest.raises(NotStored):
        Index.open(index).part("stats", 2)

    pulled = pull(IndexInFolder(index), str(index), tmp_path / "data", PullOptions(), Listener(), lambda _: False)
    theirs = Manifest.load(pulled)
    assert {*theirs.entries()} == {*manifest.entries()} - {STATS[2]}
    assert all((pulled / name).exists() for name in theirs.file_names)
    assert "future" not in (theirs.model_extra or {})


@pytest.mark.parametrize("metadata", [{"part": "lists"}, {"part": None}, {"layer": "2"}, {"layer": None}])
def test_known_metadata_must_be_those_of_the_piece(built: Path, tmp_path: Path, metadata: dict[str, str]) -> None:
    index = copy(built, tmp_path)
    path = index / STATS[1].file(1)
    file = TensorFile(path)
    said = {name: text for name, text in {**file.metadata, **metadata}.items() if text}
    write_tensors(path, {name: file.array(name) for name in file.tensors}, said)
    with pytest.raises(ShardDamaged):
        Index.open(index).part("stats", 1)
