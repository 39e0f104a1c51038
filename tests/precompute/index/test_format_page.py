"""docs/format.md says what the code does."""

import dataclasses
import hashlib
import json
import re
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from pydantic import BaseModel
from safetensors import safe_open

from lexiscope.precompute.build.build_folder import ARRIVING, NEXT
from lexiscope.precompute.build.lock import LOCK
from lexiscope.precompute.files import PARTIAL
from lexiscope.precompute.index import comparison_record as record
from lexiscope.precompute.index import lab_record, layout, tensor_file
from lexiscope.precompute.index.label_address import KINDS, parse_label_address
from lexiscope.precompute.index.label_files import (
    LABELS,
    MOST_FILE_BYTES,
    MOST_FILES,
    MOST_FOLDER_BYTES,
    MOST_LABELS,
    Label,
)
from lexiscope.precompute.index.layer import hubs
from lexiscope.precompute.index.layout import Piece
from lexiscope.precompute.index.manifest import (
    IDENTITY,
    MANIFEST,
    OPTIONAL,
    TOKENIZER,
    ClassifierEntry,
    FileEntry,
    Manifest,
    Minus,
)
from lexiscope.precompute.index.stitching import STITCHING, StitchingRun
from lexiscope.precompute.lab import coverage, inverse, similarity
from lexiscope.precompute.lab.coverage import PARTIAL_COVERAGE
from lexiscope.precompute.project import chance, coherence, in_and_out, positions, readability
from lexiscope.precompute.rebuild_command import COMPARISON, COMPARISONS
from lexiscope.precompute.shape import ENDS, HUB_FACTOR, LENSES, MATRICES, PART_NAMES, PRESETS, SIDES, Shape
from lexiscope.precompute.travel.pull import PULLED, PulledRecord
from lexiscope.precompute.verify import brute_lists
from lexiscope.precompute.verify import positions as brute_positions
from tests.support.synthetic import GPT2, LLAMA, make_manifest, raw_tokens, stored_arrays, write_index

PAGE = (Path(__file__).parents[3] / "docs" / "format.md").read_text(encoding="utf-8")


def section(title: str) -> str:
    return re.split(r"^## ", PAGE, flags=re.MULTILINE)[[*re.findall(r"^## (.+)$", PAGE, re.MULTILINE)].index(title) + 1]


def rows(text: str, heading: str) -> list[list[str]]:
    """The cells of the table whose first heading this is."""
    table = text.split(f"| {heading} |", 1)[1].split("\n\n", 1)[0].splitlines()[2:]
    return [[cell.strip().replace("`", "") for cell in line.strip("|").split("|")] for line in table]


def words(text: str) -> list[str]:
    return re.findall(r"`([^`]+)`", text)


def fields_of_page() -> dict[str, str]:
    return {row[0]: row[1] for row in rows(section("Manifest"), "field")}


@pytest.mark.parametrize(("title", "tables"), [
    ("Vocabulary", (layout.VOCABULARY, layout.UNTIED)),
    ("Nearest tokens", (layout.NEIGHBOURS,)),
    ("Moments of lists", tuple(layout.PER_KIND_OF_STATS.values())),
    ("Lines of chance", (layout.PER_KIND_OF_CHANCE,)),
    ("Heads", tuple(layout.OF_HEADS.values())),
    ("Shard", (
        layout.PER_KIND, layout.PER_NEURON, layout.PER_SUBHEAD, layout.PER_DIRECTION, layout.PER_MATRIX,
        layout.PER_KIND_OF_DIFFERENCE, layout.PER_MATRIX_OF_DIFFERENCE, layout.INVERTED, layout.PAIRED,
    )),
])  # fmt: skip
def test_arrays(title: str, tables: tuple[dict[str, tuple[str, str]], ...]) -> None:
    code = [[name, dtype, shape] for table in tables for name, (dtype, shape) in table.items()]
    assert rows(section(title), "array") == code


def test_axes_kinds_and_types() -> None:
    axes = dict(rows(section("Shard"), "axis"))
    for axis, names in {"L": LENSES, "E": ENDS, "P": PRESETS, "M": MATRICES}.items():
        assert axes[axis].split(": ")[1] == ", ".join(names)
    sentence = section("Shard").split("The kinds are")[1].split(". ")[0]
    assert words(sentence) == list(SIDES)
    assert layout.number_dtype(65536) == "uint16"
    assert layout.number_dtype(65537) == "uint32"
    assert layout.rank_dtype(256) == "uint8"
    assert layout.rank_dtype(257) == "uint16"


def test_moments() -> None:
    assert words(section("Moments of lists").split("`moments` are")[1].split(": ")[0]) == [*layout.MOMENTS]
    text, added = section("Moments of lists"), (layout.PER_WRITING_KIND_OF_STATS, layout.PER_NEURON_OF_STATS)
    code = [[name, *of] for versions in added for arrays in versions.values() for name, of in arrays.items()]
    assert rows(text, "array of version 2") == code
    assert f"from 0 to {in_and_out.MISMATCHED - 1}" in text
    assert chance.SHARES == (0.95, 0.99)
    assert f"standard_normal(({chance.DRAWS}, d_model))" in section("Lines of chance")
    assert words(PAGE.split("It has parts")[1].split(": ")[0]) == [*layout.PARTS] == [*PART_NAMES]


def test_heads() -> None:
    text = " ".join(section("Heads").split())
    assert set(layout.LOOKS) < {*words(text)}
    assert f"N = {positions.POSITIONS} or all" in text
    assert f"over distances 0 to {positions.POSITIONS - 1};" in text
    assert f"positions {positions.FIRST_ROW} to N − 2" in text
    assert (brute_positions.POSITIONS, brute_positions.FIRST_ROW) == (positions.POSITIONS, positions.FIRST_ROW)


def test_similarity_and_coherence() -> None:
    text = " ".join(section("Shard").split())
    assert f"from the first {coherence.DEPTH} tokens of a list" in text
    assert f"first {coherence.COHERENT_TOKENS} tokens that are not hubs" in text
    assert f"more than {HUB_FACTOR} times as many" in text
    assert f"{HUB_FACTOR} × {coherence.DEPTH} / d_vocab" in text
    assert brute_lists.SIMILARITY_K == brute_lists.DEPTH == coherence.DEPTH
    assert f"among the first {hubs.TOKENS_SEEN} tokens" in " ".join(section("Manifest").split())
    assert brute_lists.READ_FIRST == hubs.TOKENS_SEEN
    assert brute_lists.COHERENT_TOKENS == coherence.COHERENT_TOKENS
    assert f"first {readability.PAIRS_READ} pairs of a list" in text
    assert f"over the {readability.LIKE_IT} other pairs" in text
    assert (brute_lists.PAIRS_READ, brute_lists.LIKE_IT) == (readability.PAIRS_READ, readability.LIKE_IT)
    assert brute_lists.HUB_FACTOR == HUB_FACTOR


def test_container() -> None:
    text = " ".join(PAGE.split("## ")[0].split())
    assert words(text.split("The types of arrays are")[1].split(". ")[0]) == list(tensor_file.DTYPES.values())
    assert f"at most {tensor_file.MAX_HEADER} bytes long" in text
    assert f"Format {tensor_file.FORMAT}." in PAGE
    for part in ("lists", "stats"):
        assert f"`{layout.PARTS[part].file(11, 2)}`" in text
    assert (f"`{NEXT}`" in text, f"`{LOCK}`" in text) == (True, True)


def test_files_and_fields(tmp_path: Path) -> None:
    names = [row[0] for row in rows(PAGE, "file")]
    parts = ("vocabulary", "neighbours", "classifier", "lists", "stats", "heads", "chance")
    listed = [layout.PARTS[part].file(11, 1) for part in parts]
    assert names == [MANIFEST, *listed, TOKENIZER, lab_record.LAB, PULLED]
    assert [row[0] for row in rows(PAGE, "field of pulled.json")] == [*PulledRecord.model_fields]
    assert f"`{ARRIVING}`" in PAGE
    assert f"`{PARTIAL}`" in PAGE
    fields = fields_of_page()
    write_index(tmp_path, make_manifest(), layers=(0,))
    stored = json.loads((tmp_path / MANIFEST).read_text())
    assert set(fields) == {*stored, *OPTIONAL} == {*Manifest.model_fields, "build"}
    named = re.findall(r"`([^`]+)`", next(line for line in PAGE.splitlines() if line.startswith("| `minus`")))
    assert named == ["minus", *Minus.model_fields]
    named = words(next(line for line in PAGE.splitlines() if line.startswith("| `classifier` |")))
    assert named == [
        "classifier",
        *(name for name in ClassifierEntry.model_fields if name not in FileEntry.model_fields),
    ]
    assert tuple(fields)[: len(IDENTITY)] == IDENTITY
    assert fields["shape"].split(", ") == [field.name for field in dataclasses.fields(Shape)]
    assert {path.name for path in tmp_path.iterdir()} == {
        MANIFEST,
        TOKENIZER,
        Piece("vocabulary").file(1),
        Piece("lists", 0).file(1),
    }


MINUS = Minus(tuned="tuned", model="base", source="someone/base", revision="", weights_sha256="0" * 64)
PARTS: list[dict[str, Any]] = [
    {"kinds": None},
    {},
    {"kinds": ("ff_value", "vo_out")},
    {"kinds": ("ff_key", "w_o"), "lenses": ("cosine",)},
    {"lenses": ("dot",), "pairs": 0},
    {"minus": MINUS},
    {"minus": MINUS, "kinds": ("ff_value",), "pairs": 0},
]  # what is stored


@pytest.mark.parametrize("parts", PARTS)
@pytest.mark.parametrize("shape", [GPT2, LLAMA])
def test_a_reader_written_from_the_page_finds_the_same(tmp_path: Path, shape: Shape, parts: dict[str, Any]) -> None:
    """Nothing of the package is used to read here, only what the page says."""
    made = write_index(tmp_path, make_manifest(shape, **parts), layers=(2,))
    manifest = json.loads((tmp_path / "manifest.json").read_text())
    assert ("kinds" in manifest) == (parts.get("kinds", ()) is not None)
    identity = {name: manifest[name] for name in list(fields_of_page())[:12] if name in manifest}
    left_out = ("name", "left_out", "left_out_writing", "d_rotary", "predicts", "causal" if shape.causal else "")
    if "minus" in identity:
        identity["minus"] = {name: manifest["minus"][name] for name in ("revision", "weights_sha256")}
    identity["shape"] = {name: value for name, value in manifest["shape"].items() if name not in left_out}
    text = json.dumps(identity, sort_keys=True, separators=(",", ":"))
    assert manifest["build"] == hashlib.sha256(text.encode()).hexdigest()[:16]
    about = {"model": "tiny", "build": manifest["build"], "format": "3"}
    with safe_open(tmp_path / "layer-2.safetensors", "np") as shard:
        assert shard.metadata() == about | {"layer": "2"}
        assert set(shard.keys()) == _arrays_by_the_page(shape, manifest)
        for name, expected in stored_arrays(made.stored, seed=2).items():
            assert np.array_equal(shard.get_tensor(name), expected)
    with safe_open(tmp_path / "vocabulary.safetensors", "np") as vocabulary:
        assert vocabulary.metadata() == about
        offsets, data = (vocabulary.get_tensor(f"token.{part}") for part in ("offsets", "bytes"))
        assert [data[a:b].tobytes() for a, b in pairwise(offsets.tolist())] == raw_tokens()


def _arrays_by_the_page(shape: Shape, manifest: dict[str, Any]) -> set[str]:
    usual = ("ff_key", "ff_up", "ff_value", "w_q", "w_k", "w_v", "w_o")
    kinds = manifest.get("kinds", [kind for kind in usual if kind != "ff_up" or shape.gated])
    names: set[str] = set()
    for name, _, _ in rows(section("Shard"), "array"):
        if name.endswith(("base_norm", "{matrix}.norm")) and "minus" not in manifest:
            continue
        if name in ("{matrix}.norm", "{matrix}.base_norm"):
            names |= {name.format(matrix=matrix) for matrix in MATRICES}
        elif name == "{matrix}.singular":
            names |= {name.format(matrix=kind[:2]) for kind in kinds if kind.startswith(("vo", "qk"))}
        elif name == "{kind}.base_norm":
            names |= {name.format(kind=kind) for kind in kinds if kind in usual}
        elif "{kind}" in name:
            names |= {name.format(kind=kind) for kind in kinds}
        elif name.endswith((".similarity", ".shuffled")):
            compared = (
                {"vo": {"w_v", "w_o"}, "qk": {"w_q", "w_k"}} if "{matrix}" in name else {"ff": {"ff_key", "ff_value"}}
            )
            names |= {name.format(matrix=matrix) for matrix, both in compared.items() if both <= {*kinds}}
        elif name.startswith(("{matrix}", "paired")):
            names |= {name.format(matrix=matrix) for matrix in MATRICES} if manifest["pairs"] else set()
        else:
            names.add(name)
    return names


def test_comparison() -> None:
    page = section("Comparison")
    in_kind = record.PER_KIND | record.IN_FEATURE_SPACE
    assert rows(page, "array of a kind") == [[name, dtype, shape] for name, (dtype, shape) in in_kind.items()]
    assert rows(page, "array of the kernel") == [[name, *described] for name, described in record.KERNEL_ARRAYS.items()]
    assert [row[0] for row in rows(page, "compared")] == [
        COMPARISON,
        record.comparison_file("ff_value"),
        record.comparison_file(record.KERNEL),
        STITCHING,
    ]
    fields = {row[0]: row[1] for row in rows(page, "field of comparison.json")}
    assert [*fields] == [*record.ComparisonRecord.model_fields, "build"]
    assert fields["a"].partition(" (")[0].split(", ") == [*record.ComparedModel.model_fields]
    assert [row[0] for row in rows(page, "field of a run")] == [*StitchingRun.model_fields]
    assert f"format {record.COMPARISON_FORMAT}:" in page
    assert f"matches_A is {record.MATCHES}," in page
    assert f"`{COMPARISONS}/A/B`" in page


def test_labels() -> None:
    page = section("Labels")
    assert f"`{LABELS}/*.json`" in page
    for limit in (MOST_FILE_BYTES, MOST_LABELS, MOST_FOLDER_BYTES, MOST_FILES):
        assert f" {limit:,} " in page
    assert [row[0] for row in rows(page, "field of a label")] == [*Label.model_fields]
    addresses = rows(page, "address of a label")
    kinds = [kind for address, what in addresses[1:] for kind in (address.split("/")[1], *re.findall(r"\w+", what))]
    assert {*KINDS} <= {*kinds}
    for address, _ in addresses:
        parse_label_address(re.sub(r"(?<=/)[A-Z]+", "0", address))


def test_the_fingerprint_of_a_comparison_is_as_the_page_says() -> None:
    model: dict[str, Any] = {
        "model": "one",
        "source": "x",
        "revision": "",
        "weights_sha256": "0" * 64,
        "tokenizer_sha256": "1" * 64,
    }
    model |= {"n_layers": 2, "d_model": 8, "kinds": {"ff_key": 4}}
    fields: dict[str, Any] = {"format": 1, "a": model, "b": {**model, "model": "other"}, "tokens": 9, "matched": "ids"}
    made = record.ComparisonRecord.model_validate_json(json.dumps(fields))
    for side in ("a", "b"):
        fields[side] = {name: value for name, value in fields[side].items() if name != "source"}
    text = json.dumps(fields, sort_keys=True, separators=(",", ":"))
    assert made.build == hashlib.sha256(text.encode()).hexdigest()[:16]
    assert json.loads(made.to_json())["build"] == made.build


@pytest.mark.parametrize(("heading", "fields"), [
    ("field of lab.json", lab_record.LabRecord), ("field of similarity", lab_record.SimilarityPart),
    ("of a pair of kinds, by layer", lab_record.Similarities), ("field of inverse", lab_record.InversePart),
    ("of a sample", lab_record.KeepKOfStates), ("field of coverage", lab_record.CoveragePart),
    ("of a kind, by layer", lab_record.Coverages),
])  # fmt: skip
def test_lab(heading: str, fields: type[BaseModel]) -> None:
    table = rows(section("Lab"), heading)
    assert [row[0] for row in table] == [*fields.model_fields]
    if heading == "field of coverage":
        named = re.findall(r"\w+", re.sub(r"\([^)]*\)| of the file", "", table[-1][1]))
        assert named == [*lab_record.TextsUsed.model_fields]


def test_numbers_of_the_lab() -> None:
    text = " ".join(section("Lab").split())
    assert f"| {similarity.SHUFFLES} |" in text
    assert f"| {coverage.DRAWN}: positions" in text
    assert f"size={coverage.DRAWN})[n mod {coverage.DRAWN}]" in text
    assert f"size={2 * inverse.SAMPLE_SIZE})" in text
    assert f"`{PARTIAL_COVERAGE}`" in text
