"""An export has every entry of every list, in files that other tools read."""

import hashlib
import io
import json
import os
import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow.parquet as pq
import pytest
from rich.console import Console

from lexiscope.app.commands.cli import main
from lexiscope.precompute.errors import BuildError, NotFound, ShardDamaged
from lexiscope.precompute.export import job
from lexiscope.precompute.export.job import Entries, ExportOptions, ExportProgress, export
from lexiscope.precompute.index.index import Index
from lexiscope.precompute.index.layout import MOMENTS, Piece
from lexiscope.precompute.shape import ENDS, MATRICES, PRESETS
from tests.support.builds import quick_build
from tests.support.differences import DIFFERENCE
from tests.support.models import tiny_gpt2
from tests.support.synthetic import GPT2, make_manifest, rewrite_shard, stored_arrays, write_index


def exported(index: Index, folder: Path, **options: Any) -> Path:
    return export(index, folder, ExportOptions(**options), ExportProgress(Console(file=io.StringIO())))


@pytest.fixture(scope="module")
def index(tmp_path_factory: pytest.TempPathFactory) -> Index:
    folder = tmp_path_factory.mktemp("data") / "tiny"
    write_index(folder, make_manifest(k=5, pairs=6))
    return Index.open(folder)


@pytest.fixture(scope="module")
def folder(index: Index, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return exported(index, tmp_path_factory.mktemp("lists") / "new" / "lists")


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tiny_gpt2(tmp_path_factory.mktemp("source") / "tiny")


def vector_rows(index: Index, kind: str) -> Iterator[tuple[Any, ...]]:
    """Read list by list, as pages do."""
    for layer in index.layers:
        for number in range(index.shape.count(kind)):
            head, at = (None, number) if kind.startswith("ff") else index.shape.head_and_subhead(kind, number)
            for lens in index.stored.lenses:
                lists = index.shard(layer).vector(kind, number, lens)
                for end, ids, scores in zip(ENDS, lists.ids.tolist(), lists.scores.tolist(), strict=True):
                    for rank, (token, score) in enumerate(zip(ids, scores, strict=True), 1):
                        yield layer, head, at, lens, end, rank, token, index.tokens.text(token), score


def test_moments_are_a_file_of_their_own(source: Path, tmp_path: Path) -> None:
    """They are those that pages show; an index without them, or a layer of it, has no such file."""
    index = Index.open(quick_build(source, tmp_path, k=5, pairs=0))
    path = exported(index, tmp_path / "lists", names=("stats",)) / "stats.parquet"
    table = pq.read_table(path).to_pylist()
    assert len(table) == sum(map(index.shape.count, index.stored.kinds)) * len(index.layers) * len(index.stored.lenses)
    for row in table[:: len(table) // 50]:
        kind, head = row["kind"], row["head"]
        number = row["index"] if head is None else index.shape.row(kind, head, row["index"])
        moments = index.moments(row["layer"], kind, number, row["lens"])
        assert moments
        assert {name: row[name] for name in MOMENTS} == {name: moments[name] for name in MOMENTS}  # type: ignore[literal-required]
        assert row["z_top"] == moments["z"]
        assert row["z_bottom"] < 0
        chance, variance = index.chance(kind, row["lens"]), index.stats(row["layer"], f"{kind}.unembedding")
        assert chance
        assert (row["line95"], row["line99"]) == (chance.line95, chance.line99)
        assert row["unembedding"] == pytest.approx(np.nan if variance is None else variance[number], nan_ok=True)
        cosines = index.stats(row["layer"], "ff.cosines")
        assert cosines is not None
        expected = cosines[number].tolist() if head is None else [np.nan] * 3
        found = [row[f"cos_{name}"] for name in ("key_value", "up_value", "key_up")]
        assert found == pytest.approx(expected, nan_ok=True)
    csv = pd.read_csv(exported(index, tmp_path / "csv", names=("stats",), format="csv") / "stats.csv")
    assert [*csv.columns] == [*table[0]]
    assert csv["head"].isna().sum() == sum(row["head"] is None for row in table)
    (index.folder / Piece("stats", 1).file(1)).unlink()
    index.manifest.only(index.manifest.entries().keys() - {Piece("stats", 1)}).save(index.folder)
    left = exported(Index.open(index.folder), tmp_path / "left", names=None)
    assert not (left / "stats.parquet").exists()


def pair_rows(index: Index, matrix: str) -> Iterator[tuple[Any, ...]]:
    text = index.tokens.text
    for layer in index.layers:
        for head in range(index.shape.n_heads):
            for lens in index.stored.lenses:
                for preset in PRESETS:
                    for end in ENDS:
                        pairs = index.shard(layer).heads.pairs(matrix, head, lens, preset, end)
                        listed = zip(pairs.ids.tolist(), pairs.scores.tolist(), strict=True)
                        for rank, ((one, to), score) in enumerate(listed, 1):
                            yield layer, head, lens, preset, end, rank, one, text(one), to, text(to), score


def test_every_entry_of_every_list(index: Index, folder: Path) -> None:
    for name in (*index.stored.kinds, *MATRICES):
        table = pq.read_table(folder / f"{name}.parquet")
        rows = pair_rows(index, name) if name in MATRICES else vector_rows(index, name)
        assert [*zip(*(column.to_pylist() for column in table.columns), strict=True)] == [*rows], name


def test_a_row_group_for_each_layer(index: Index, folder: Path) -> None:
    file = pq.ParquetFile(folder / "ff_key.parquet")
    assert file.metadata.num_row_groups == len(index.layers)
    assert file.read_row_group(1, ["layer"])["layer"].unique().to_pylist() == [1]


def test_other_tools_read_it(index: Index, folder: Path) -> None:
    path = folder / "ff_value.parquet"
    expected = [row for row in vector_rows(index, "ff_value") if row[5] == 1 and row[3:5] == ("cosine", "top")]
    question = "from {} where rank = 1 and lens = 'cosine' and \"end\" = 'top' order by layer, index"
    with duckdb.connect() as database:
        assert database.execute(f"select * {question.format(repr(str(path)))}").fetchall() == expected
    frame = pd.read_parquet(path).query("rank == 1 and lens == 'cosine' and end == 'top'")
    assert frame["token"].tolist() == [row[7] for row in expected]
    lazy = pl.scan_parquet(path).filter((pl.col("rank") == 1) & (pl.col("lens") == "cosine") & (pl.col("end") == "top"))
    assert lazy.collect()["score"].to_list() == [row[8] for row in expected]


def test_csv(index: Index, tmp_path: Path) -> None:
    exported(index, tmp_path, names=("w_q", "vo"), format="csv")
    for name, rows in (("w_q", vector_rows), ("vo", pair_rows)):
        frame = pd.read_csv(tmp_path / f"{name}.csv", keep_default_na=False)
        for read, expected in zip(frame.itertuples(index=False), rows(index, name), strict=True):
            assert read[:-1] == expected[:-1]
            assert np.float32(read[-1]) == np.float32(expected[-1])


def test_the_manifest_names_every_file(index: Index, folder: Path) -> None:
    manifest = json.loads((folder / job.EXPORT_MANIFEST).read_bytes())
    assert (manifest["model"], manifest["build"]) == ("tiny", index.manifest.build)
    assert manifest["layers"] == [*index.layers]
    assert {path.name for path in folder.iterdir()} == {
        job.EXPORT_MANIFEST,
        *(file["file"] for file in manifest["files"]),
    }
    for file in manifest["files"]:
        content = (folder / file["file"]).read_bytes()
        assert (len(content), hashlib.sha256(content).hexdigest()) == (file["bytes"], file["sha256"])
        assert pq.ParquetFile(folder / file["file"]).metadata.num_rows == file["rows"]


@pytest.mark.parametrize(("options", "said"), [
    ({"names": ("ff_up",)}, "'ff_up' is not in this index: there are ff_key"),
    ({"lenses": ("euclid",)}, "'euclid' is not in this index: there are dot, cosine"),
])  # fmt: skip
def test_what_is_not_there(index: Index, tmp_path: Path, options: dict[str, Any], said: str) -> None:
    with pytest.raises(NotFound, match=said):
        exported(index, tmp_path / "lists", **options)
    assert not (tmp_path / "lists").exists()


@pytest.mark.parametrize("name", ["ff_key", "qk"])
def test_a_damaged_layer_is_named_and_no_file_is_half_there(tmp_path: Path, name: str) -> None:
    source = tmp_path / "tiny"
    manifest = write_index(source, make_manifest(k=5, pairs=6))
    arrays = stored_arrays(manifest.stored, seed=1)
    arrays[f"{name}.scores"][0, ..., 0] = np.nan
    rewrite_shard(source, manifest, 1, arrays)
    with pytest.raises(ShardDamaged, match=r"layer-1.safetensors is damaged: .* has a score that is no number"):
        exported(Index.open(source), tmp_path / "lists", names=(name,))
    assert [path.name for path in tmp_path.iterdir()] == ["tiny"]


@pytest.mark.parametrize("what", ["a folder", "a file", "a link", "a former export"])
def test_what_is_there_is_not_touched(index: Index, tmp_path: Path, what: str) -> None:
    place = tmp_path / "lists"
    if what == "a folder":
        place.mkdir()
        (place / job.EXPORT_MANIFEST).write_text("somebody's")
    elif what == "a file":
        place.write_text("somebody's")
    elif what == "a link":
        place.symlink_to(tmp_path / "elsewhere")
    else:
        exported(index, place, names=("w_o",))
    before = {path: path.lstat() for path in [*tmp_path.rglob("*")]}
    with pytest.raises(BuildError, match="lists is there already: give a new folder, or remove it first"):
        exported(index, place, names=("w_o",))
    assert {path: path.lstat() for path in [*tmp_path.rglob("*")]} == before


@pytest.mark.parametrize("name", ["lists", os.fsdecode(b"\xff")])
def test_two_at_once(index: Index, tmp_path: Path, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The first one there stays; the other leaves nothing behind."""
    of = Entries.of
    done: list[str] = []

    def first_another(entries: Entries, lists: str, layer: int) -> Any:
        if not done:
            done.append(lists)
            exported(index, tmp_path / name, names=("w_o",))
        return of(entries, lists, layer)

    monkeypatch.setattr(Entries, "of", first_another)
    with pytest.raises(BuildError, match="Directory not empty; give another folder"):
        exported(index, tmp_path / name, names=("w_q",))
    assert [path.name for path in tmp_path.iterdir()] == [name]
    assert {path.name for path in (tmp_path / name).iterdir()} == {job.EXPORT_MANIFEST, "w_o.parquet"}


def test_a_folder_that_cannot_be_made(index: Index, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(BuildError, match="give another folder"):
        exported(index, tmp_path / "file" / "lists")


def test_says_which_layers_an_unfinished_index_has(tmp_path: Path) -> None:
    write_index(tmp_path / "tiny", make_manifest(), layers=(2, 3))
    output = io.StringIO()
    progress = ExportProgress(Console(file=output))
    export(Index.open(tmp_path / "tiny"), tmp_path / "lists", ExportOptions(names=("w_o",)), progress)
    *_, files, layers = output.getvalue().splitlines()
    assert "lists has 1 file, " in files
    assert layers == "They are of 2 of 4 layers (2-3): the index of tiny is not complete yet"


def test_no_layer_is_ready(tmp_path: Path) -> None:
    write_index(tmp_path / "tiny", make_manifest(), layers=())
    with pytest.raises(BuildError, match="no layer of tiny is ready yet"):
        exported(Index.open(tmp_path / "tiny"), tmp_path / "lists")


def test_heads_that_share_keys_are_named_by_the_first(tmp_path: Path) -> None:
    shape = replace(GPT2, n_kv_heads=1)
    write_index(tmp_path / "tiny", make_manifest(shape, k=5, pairs=0))
    index = Index.open(tmp_path / "tiny")
    exported(index, tmp_path / "lists", names=("w_k",))
    assert {*pq.read_table(tmp_path / "lists" / "w_k.parquet")["head"].to_pylist()} == {0}


def test_what_did_not_change_is_left_out(difference_data: Path, tmp_path: Path) -> None:
    """Its page says that there is nothing to list."""
    index = Index.open(difference_data / DIFFERENCE)
    exported(index, tmp_path / "lists", names=("ff_value", "vo", "vo_in"))
    shards = {layer: index.shard(layer) for layer in index.layers}
    changed = {
        "ff_value": [(layer, at) for layer in shards for at in np.flatnonzero(shards[layer].all_norms("ff_value"))],
        "vo": [
            (layer, head) for layer in shards for head in np.flatnonzero(shards[layer].heads.all_matrix_norms("vo")[0])
        ],
    }
    for name, number in (("ff_value", "index"), ("vo", "head")):
        table = pq.read_table(tmp_path / "lists" / f"{name}.parquet")
        assert {*zip(table["layer"].to_pylist(), table[number].to_pylist(), strict=True)} == {*changed[name]}
        assert len(changed[name]) < index.shape.n_layers * (index.shape.d_mlp if name != "vo" else index.shape.n_heads)
    norms = sum(int((shard.all_norms("vo_in") > 0).sum()) for shard in shards.values())
    per_vector = len(index.stored.lenses) * len(ENDS) * index.stored.k
    assert pq.ParquetFile(tmp_path / "lists" / "vo_in.parquet").metadata.num_rows == norms * per_vector


def test_lists_that_are_all_empty(difference_data: Path, tmp_path: Path) -> None:
    """A layer in which nothing changed has a row group without rows."""
    index = Index.open(difference_data / DIFFERENCE)
    exported(index, tmp_path / "lists", names=("ff_value",))
    file = pq.ParquetFile(tmp_path / "lists" / "ff_value.parquet")
    assert file.metadata.num_row_groups == len(index.layers)
    assert 0 in [file.metadata.row_group(at).num_rows for at in range(len(index.layers))]


@pytest.mark.parametrize("option", ["--lens", "--lenses"])
def test_the_command_takes_a_lens(index: Index, tmp_path: Path, option: str) -> None:
    data, lists = str(index.folder.parent), tmp_path / "lists"
    assert main(["export", "tiny", "--data", data, "-o", str(lists), "--kinds", "w_o,vo", option, "dot"]) == 0
    assert {path.name for path in lists.iterdir()} == {job.EXPORT_MANIFEST, "w_o.parquet", "vo.parquet"}
    assert pq.read_table(lists / "vo.parquet")["lens"].unique().to_pylist() == ["dot"]
    columns = pq.ParquetFile(lists / "vo.parquet").metadata.row_group(0)
    assert {columns.column(at).compression for at in range(columns.num_columns)} == {"ZSTD"}


PAGE = (Path(__file__).parents[3] / "docs" / "data.md").read_text(encoding="utf-8")
QUESTIONS = [
    question
    for block in re.findall(r"^```sql\n(.+?)^```$", PAGE, re.MULTILINE | re.DOTALL)
    for question in block.split(";")
    if "select" in question
]


@pytest.mark.parametrize("question", QUESTIONS, ids=range(len(QUESTIONS)))
def test_the_questions_of_the_page_can_be_asked(folder: Path, question: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(folder)
    with duckdb.connect() as database:
        columns = [name for name, *_ in database.sql(question).description]
    assert columns in (["layer", "head", "plurals"], ["layer", "index", "shared"], ["token", "lists"])


def test_the_page_has_three_questions() -> None:
    assert len(QUESTIONS) == 3
