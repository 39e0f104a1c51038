"""FORMAT.md says what the code does."""

import dataclasses
import hashlib
import json
import re
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from safetensors import safe_open

from precompute.build.build_folder import NEXT
from precompute.build.lock import LOCK
from precompute.files import PARTIAL
from precompute.index import layout, tensor_file
from precompute.index.manifest import IDENTITY, MANIFEST, TOKENIZER, Manifest
from precompute.project import coherence
from precompute.shape import ENDS, HUB_FACTOR, LENSES, MATRICES, PRESETS, SIDES, Shape
from precompute.verify import brute_coherence
from precompute.verify import sample as verify
from tests.support.synthetic import GPT2, LLAMA, make_manifest, raw_tokens, stored_arrays, write_index

PAGE = (Path(__file__).parents[3] / "FORMAT.md").read_text(encoding="utf-8")


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
    ("Shard", (layout.PER_KIND, layout.PER_NEURON, layout.PER_MATRIX, layout.INVERTED, layout.PAIRED)),
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


def test_similarity_and_coherence() -> None:
    text = " ".join(section("Shard").split())
    assert f"from the first {coherence.DEPTH} tokens of a list" in text
    assert f"first {coherence.FIRST_TOKENS} tokens that are not hubs" in text
    assert f"more than {HUB_FACTOR} times as many" in text
    assert f"{HUB_FACTOR} × {coherence.DEPTH} / d_vocab" in text
    assert verify.SIMILARITY_K == brute_coherence.DEPTH == coherence.DEPTH
    assert brute_coherence.FIRST_TOKENS == coherence.FIRST_TOKENS
    assert brute_coherence.HUB_FACTOR == HUB_FACTOR


def test_container() -> None:
    text = " ".join(PAGE.split("## ")[0].split())
    assert words(text.split("The types of arrays are")[1].split(". ")[0]) == list(tensor_file.DTYPES.values())
    assert f"at most {tensor_file.MAX_HEADER} bytes long" in text
    assert f"Format {tensor_file.FORMAT}." in PAGE
    assert f"`{layout.shard_file(11, 2)}`" in text
    assert (f"`{NEXT}`" in text, f"`{LOCK}`" in text) == (True, True)


def test_files_and_fields(tmp_path: Path) -> None:
    names = [row[0] for row in rows(PAGE, "file")]
    listed = [layout.vocabulary_file(1), layout.neighbours_file(1), layout.shard_file(11, 1)]
    assert names == [MANIFEST, *listed, TOKENIZER]
    assert f"`{PARTIAL}`" in PAGE
    fields = fields_of_page()
    write_index(tmp_path, make_manifest(), layers=(0,))
    stored = json.loads((tmp_path / MANIFEST).read_text())
    assert set(fields) == {*stored, "kinds"} == {*Manifest.model_fields, "build"}
    assert tuple(fields)[: len(IDENTITY)] == IDENTITY
    assert fields["shape"].split(", ") == [field.name for field in dataclasses.fields(Shape)]
    assert {path.name for path in tmp_path.iterdir()} == {
        MANIFEST,
        TOKENIZER,
        layout.vocabulary_file(1),
        layout.shard_file(0, 1),
    }


PARTS: list[dict[str, Any]] = [
    {},
    {"kinds": ("ff_value",)},
    {"kinds": ("ff_key", "w_o"), "lenses": ("cosine",)},
    {"lenses": ("dot",), "pairs": 0},
]  # what is stored


@pytest.mark.parametrize("parts", PARTS)
@pytest.mark.parametrize("shape", [GPT2, LLAMA])
def test_a_reader_written_from_the_page_finds_the_same(tmp_path: Path, shape: Shape, parts: dict[str, Any]) -> None:
    """Nothing of the package is used to read here, only what the page says."""
    made = write_index(tmp_path, make_manifest(shape, **parts), layers=(2,))
    manifest = json.loads((tmp_path / "manifest.json").read_text())
    assert ("kinds" in manifest) == ("kinds" in parts)
    identity = {name: manifest[name] for name in list(fields_of_page())[:11] if name in manifest}
    left_out = ("name", "left_out", "left_out_writing", "d_rotary", "predicts", "causal" if shape.causal else "")
    identity["shape"] = {name: value for name, value in manifest["shape"].items() if name not in left_out}
    text = json.dumps(identity, sort_keys=True, separators=(",", ":"))
    assert manifest["build"] == hashlib.sha256(text.encode()).hexdigest()[:16]
    about = {"model": "tiny", "build": manifest["build"], "format": "2"}
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
    kinds = manifest.get("kinds", [kind for kind in SIDES if kind != "ff_up" or shape.gated])
    names: set[str] = set()
    for name, _, _ in rows(section("Shard"), "array"):
        if "{kind}" in name:
            names |= {name.format(kind=kind) for kind in kinds}
        elif name == "ff.similarity":
            names |= {name} if {"ff_key", "ff_value"} <= {*kinds} else set()
        elif name.startswith(("{matrix}", "paired")):
            names |= {name.format(matrix=matrix) for matrix in MATRICES} if manifest["pairs"] else set()
        else:
            names.add(name)
    return names
